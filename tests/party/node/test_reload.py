"""A node takes up other settings while it runs: what jobs began with stays, and no limit begins again."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from jobs.audit.catalogue import read_event
from jobs.audit.events import CertificateChanged, SettingsReloaded
from jobs.privacy_account import Charge
from link.errors import ConfigurationError, IdentityError
from link.pki.authority import write_identity
from link.pki.certificates import read_certificate
from link.pki.trust import fingerprint
from party.node.settings import read_settings
from party.state.ledger import Entry
from protos.v1.control_pb2 import SUCCEEDED
from tests.errors import fails
from tests.integration.processes import Process, Ran, command
from tests.looped import looped
from tests.party.files import write_federation
from tests.party.nodes import DATA, Nodes, audited, brief, hold, refused, running

FLOOR = "min_support = 0.5\n"


def edit(folder: Path, *pairs: tuple[str, str], file: str = "north.toml") -> Path:
    """Changes a file; the path of it."""
    path = folder / file
    text = path.read_text()
    for before, after in pairs:
        assert before in text
        text = text.replace(before, after)
    path.write_text(text)
    return path


async def reload(nodes: Nodes, *pairs: tuple[str, str], file: str = "north.toml") -> tuple[str, ...]:
    """Changes a file of north, which takes it up."""
    edit(nodes.folder, *pairs, file=file)
    return await nodes.nodes["north"].reload(nodes.folder / "north.toml")


def reloads(folder: Path) -> list[SettingsReloaded]:
    found = (read_event(entry["event"], entry["fields"]) for entry in audited(folder, "north"))
    return [event for event in found if isinstance(event, SettingsReloaded)]


@looped
async def test_a_job_goes_on_as_approved_and_the_next_meets_the_new_policy(tmp_path: Path) -> None:
    async with running(tmp_path) as nodes:
        release = hold(nodes.nodes["north"])
        job_id = await nodes.begin(brief())
        assert await reload(nodes, ('approve = "auto"\n', f'approve = "auto"\n{FLOOR}')) == ("[policy]",)
        refusal = await refused(nodes.clients["north"].propose(brief(name="next")))
        assert (refusal.code, refusal.party) == ("E300", "north")
        release.set()
        assert {event.state for event in (await nodes.ends(job_id)).values()} == {SUCCEEDED}
        assert await nodes.nodes["north"].reload(tmp_path / "north.toml") == ()
        (event,) = reloads(tmp_path)
        assert event.changed == ("[policy]",)
        assert event.file == read_settings(tmp_path / "north.toml")[1]["file"]
        assert '"settings reloaded"' in nodes.logs["north"].getvalue()


@looped
async def test_an_approved_job_that_has_not_begun_meets_the_new_policy(tmp_path: Path) -> None:
    async with running(tmp_path) as nodes:
        job_id, approvals = await nodes.agree(brief())
        await reload(nodes, ('approve = "auto"\n', f'approve = "auto"\n{FLOOR}'))
        assert (await refused(nodes.clients["north"].start(job_id, approvals))).code == "E300"


BAD = [
    ((('approve = "auto"', 'approve = "perhaps"'),), "north.toml"),
    ((("[policy]", "[policy"),), "north.toml"),
    ((('name = "north"\nlisten', 'name = "south"\nlisten'),), "north.toml"),
    ((("127.0.0.1:", "127.0.0.2:"),), "north.toml"),
    ((("pki/north.key", "pki/south.key"),), "north.toml"),
    ((("pki/north.crt", "pki/south.crt"), ("pki/north.key", "pki/south.key")), "north.toml"),
    ((('name = "north"', 'name = "west"'),), "federation.toml"),
    ((("[policy]", "[shuffler]\n[policy]"),), "north.toml"),
]


@looped
async def test_what_cannot_be_taken_up_changes_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as nodes:
        node = nodes.nodes["north"]
        before, judge, logged = node.settings, node.host.context.consent.judge, audited(tmp_path, "north")
        for pairs, file in BAD:
            text = (tmp_path / file).read_text()
            edit(tmp_path, *pairs, file=file)
            with pytest.raises((ConfigurationError, IdentityError)):
                await node.reload(tmp_path / "north.toml")
            (tmp_path / file).write_text(text)
        assert node.settings is before
        assert node.host.context.consent.judge is judge
        assert audited(tmp_path, "north") == logged
        assert await nodes.clients["north"].propose(brief())


@looped
async def test_what_only_a_start_can_bring_about_is_said(tmp_path: Path) -> None:
    async with running(tmp_path) as nodes:
        edit(tmp_path, ("state/north", "state/other"))
        with fails("E100"):
            await nodes.nodes["north"].reload(tmp_path / "north.toml")


@looped
async def test_datasets_come_go_and_change(tmp_path: Path) -> None:
    other = '[[dataset]]\nname = "more"\nkind = "transactions"\nsource = "more.dat"\nformat = "basket"\n[policy]'
    async with running(tmp_path) as nodes:
        client, spec = nodes.clients["north"], brief(dataset="more")
        assert (await refused(client.propose(spec))).code == "E100"
        shutil.copy(tmp_path / "north.dat", tmp_path / "more.dat")
        assert await reload(nodes, ("[policy]", other)) == ("dataset more added",)
        assert await client.propose(spec, os.urandom(16))
        assert (await nodes.run(brief()))[1]["north"].state == SUCCEEDED
        assert await reload(nodes, ('"north.dat"', '"more.dat"')) == ("dataset baskets changed",)
        assert (await nodes.run(brief()))[1]["north"].state == SUCCEEDED
        assert await reload(nodes, (other, "[policy]")) == ("dataset more removed",)
        assert (await refused(client.propose(brief(dataset="more", name="again")))).code == "E100"


@looped
async def test_members_come_and_go(tmp_path: Path) -> None:
    async with running(tmp_path) as nodes:
        spec, federation = brief(), tmp_path / "federation.toml"
        before = federation.read_text()
        head, *members = before.split("[[party]]\n")
        without = head + "".join(f"[[party]]\n{each}" for each in members if '"east"' not in each)
        release = hold(nodes.nodes["north"])
        job_id = await nodes.begin(spec)
        federation.write_text(without)
        assert await nodes.nodes["north"].reload(tmp_path / "north.toml") == ("federation",)
        assert (await refused(nodes.clients["north"].propose(brief(name="next")))).code == "E100"
        release.set()
        assert {event.state for event in (await nodes.ends(job_id)).values()} == {SUCCEEDED}
        federation.write_text(before)
        assert await nodes.nodes["north"].reload(tmp_path / "north.toml") == ("federation",)
        assert (await nodes.run(spec))[1]["north"].state == SUCCEEDED


@looped
async def test_a_renewed_certificate_is_shown_and_signs_from_then_on(tmp_path: Path) -> None:
    async with running(tmp_path) as nodes:
        release = hold(nodes.nodes["north"])
        job_id = await nodes.begin(brief())
        renewed = nodes.authority.issue("north")
        write_identity(renewed, tmp_path / "pki", force=True)
        assert await nodes.nodes["north"].reload(tmp_path / "north.toml") == ("[tls]",)
        release.set()
        assert {event.state for event in (await nodes.ends(job_id)).values()} == {SUCCEEDED}
        print_ = fingerprint(read_certificate(renewed.certificate_pem))
        assert await asyncio.to_thread(shown_to, nodes.addresses["north"], tmp_path) == print_
        _, approvals = await nodes.agree(brief(name="next"))
        assert [each.certificate for each in approvals if each.certificate == renewed.certificate_pem]
        assert (await nodes.run(brief(name="again")))[1]["north"].state == SUCCEEDED
        entries = audited(tmp_path, "north")
        (changed,) = (entry for entry in entries if entry["event"] == CertificateChanged.event)
        (event,) = reloads(tmp_path)
        assert event.certificate.hex() == print_ == entries[-1]["certificate"]
        assert changed["seq"] > next(entry["seq"] for entry in entries if entry["event"] == SettingsReloaded.event)


def shown_to(address: str, folder: Path) -> str:
    """The certificate that a node shows on a new connection."""
    host, _, port = address.rpartition(":")
    context = ssl.create_default_context(cafile=str(folder / "pki/ca.crt"))
    context.check_hostname = False
    context.load_cert_chain(folder / "pki/south.crt", folder / "pki/south.key")
    context.set_alpn_protocols(["h2"])
    with socket.create_connection((host, int(port))) as raw, context.wrap_socket(raw, server_hostname="north") as tls:
        der = tls.getpeercert(binary_form=True)
    assert der is not None
    return fingerprint(read_certificate(ssl.DER_cert_to_PEM_cert(der).encode()))


@looped
async def test_an_older_list_of_revoked_certificates_is_not_taken_up(tmp_path: Path) -> None:
    async with running(tmp_path) as nodes:
        node, pki = nodes.nodes["north"], tmp_path / "pki"
        nodes.authority.revoke(pki, ())
        shutil.copy(pki / "ca.crl", tmp_path / "first.crl")
        nodes.authority.revoke(pki, ())
        assert node.settings.identity.trust.number == 2
        edit(tmp_path, ('ca = "pki/ca.crt"\n', 'ca = "pki/ca.crt"\ncrl = "first.crl"\n'))
        with fails("E201"):
            await node.reload(tmp_path / "north.toml")


# -- who would have limits begin again -------------------------------------------------------------------------------
@looped
async def test_reloads_between_jobs_reset_no_count(tmp_path: Path) -> None:
    policy = 'max_jobs = 2\nmax_jobs_period = "10d"\n'
    async with running(tmp_path, policy=policy) as nodes:
        for number in range(2):
            assert (await nodes.run(brief(name=f"job-{number}")))[1]["north"].state == SUCCEEDED
            for most in (1, 9, 2):
                await reload(nodes, *_limit(tmp_path, most))
                await nodes.nodes["north"].upkeep.look()
        assert (await refused(nodes.clients["north"].propose(brief(name="third"), os.urandom(16)))).code == "E300"
        await reload(nodes, *_limit(tmp_path, 3))
        assert await nodes.clients["north"].propose(brief(name="third"), os.urandom(16))


def _limit(folder: Path, most: int) -> Iterator[tuple[str, str]]:
    line = next(line for line in (folder / "north.toml").read_text().splitlines() if line.startswith("max_jobs ="))
    yield line + "\n", f"max_jobs = {most}\n"


@looped
async def test_a_limit_that_is_lowered_and_raised_forgets_no_job(tmp_path: Path) -> None:
    """What is older than `keep_jobs` is forgotten, unless a limit has needed it since the node began."""
    async with running(tmp_path, policy='max_jobs = 2\nmax_jobs_period = "10d"\n') as nodes:
        node = nodes.nodes["north"]
        for number in range(2):
            assert (await nodes.run(brief(name=f"job-{number}")))[1]["north"].state == SUCCEEDED
        await reload(nodes, *_limit(tmp_path, 1), ("[tls]", 'keep_jobs = "1s"\n[tls]'))
        node.upkeep.now = lambda: time.time() + 3 * 86400
        await node.upkeep.look()
        await reload(nodes, *_limit(tmp_path, 2))
        assert (await refused(nodes.clients["north"].propose(brief(name="third"), os.urandom(16)))).code == "E300"


@pytest.mark.parametrize("renamed", [False, True])
@looped
async def test_a_dataset_that_goes_and_comes_back_has_its_past(tmp_path: Path, renamed: bool) -> None:
    """Under another name, too, and however it is called meanwhile."""
    policy = 'max_jobs = 1\nmax_jobs_period = "10d"\nmin_new_rows = 50\n'
    async with running(tmp_path, policy=policy) as nodes:
        assert (await nodes.run(brief()))[1]["north"].state == SUCCEEDED
        name, spec = ("others", brief(dataset="others")) if renamed else ("baskets", brief(name="next"))
        await reload(nodes, ('name = "baskets"', 'name = "elsewhere"'), ('"north.dat"', '"south.dat"'))
        await reload(nodes, ('name = "elsewhere"', f'name = "{name}"'), ('"south.dat"', '"north.dat"'))
        assert (await refused(nodes.clients["north"].propose(spec))).code == "E300"


@looped
async def test_a_budget_that_is_spent_stays_spent(tmp_path: Path) -> None:
    async with running(tmp_path) as nodes:
        node, budget = nodes.nodes["north"], "[dataset.privacy]\nepsilon = {}\ndelta = 1e-5\n[policy]"
        await reload(nodes, ("[policy]", budget.format(1)))
        spec = brief()
        judge = node.host.context.consent.judge
        assert judge.left(spec)
        cost = Charge("distributed", None, Decimal("0.75"), Decimal("1e-6"))
        node.ledger.record(Entry(bytes(32), 1, 1.0, "baskets", "brief", "analyst", cost, 0))
        left = judge.left(spec)
        for most in (5, 1):
            await reload(nodes, (node_budget(tmp_path), f"epsilon = {most}"))
        edit(tmp_path, ('name = "baskets"', 'name = "other"'))
        await node.reload(tmp_path / "north.toml")
        assert node.host.context.consent.judge.left(brief(dataset="other")) == left
        edit(tmp_path, ('name = "other"', 'name = "baskets"'))
        await node.reload(tmp_path / "north.toml")
        assert node.host.context.consent.judge.left(spec) == left


def node_budget(folder: Path) -> str:
    return next(line for line in (folder / "north.toml").read_text().splitlines() if line.startswith("epsilon ="))


# -- a process of its own --------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_people_reload_a_node_by_command_and_by_hanging_up(tmp_path: Path) -> None:
    write_federation(tmp_path, DATA)

    def reload(file: str = "north.toml", *more: str) -> Ran:
        return command("party", "reload", file, *more, cwd=tmp_path)

    assert reload().code == 10
    node = Process("party", "serve", "north.toml", cwd=tmp_path)
    try:
        node.until(" is ready at ")
        assert "nothing has changed" in reload().out
        edit(tmp_path, ('approve = "auto"\n', f'approve = "auto"\n{FLOOR}'))
        ran = reload("north.toml", "--json")
        assert json.loads(ran.out) == {"schema": "comine.reload/1", "party": "north", "changed": ["[policy]"]}
        edit(tmp_path, ("127.0.0.1:", "127.0.0.2:"))
        ran = reload()
        assert ran.code == 10
        assert "[party] listen cannot change while the node runs" in ran.err
        shutil.copy(tmp_path / "north.toml", tmp_path / "copy.toml")
        assert reload("copy.toml").code == 10
        edit(tmp_path, ("127.0.0.2:", "127.0.0.1:"), ("0.5", "0.25"))
        before = len(node.lines)
        node.send(signal.SIGHUP)
        node.until('"settings reloaded"', after=before)
        node.send(signal.SIGTERM)
        assert node.end().code == 0
    finally:
        node.kill()
    assert len(reloads(tmp_path)) == 2
