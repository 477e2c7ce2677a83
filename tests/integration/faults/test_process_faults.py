"""Hostile and clumsy hands on real processes: kills, hangs, Ctrl-C, full disks, wrong files and keys.

Each fault must end with one sentence on standard error, the right exit code and nothing left behind, and the next job
must succeed. The nodes are shared by the tests; one that a test has ended is started again.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import link.pki.authority
from link.pki.authority import Authority, write_identity
from link.pki.identity import Role
from protos.v1 import control_pb2 as control
from tests.integration.processes import START_S, Organisations, Process, Ran, comine, command
from tests.party.files import free_ports
from tests.party.nodes import DATA, Client

pytestmark = [pytest.mark.slow, pytest.mark.turn(3)]

DEADLINES_S = (8, 25)  # in which a long job reaches its midst, and does so on a busy machine
LONG = 6_000  # items of each party; their union keeps three nodes busy for far longer than a test takes to act
DATASETS = """
[[dataset]]
name = "long"
kind = "transactions"
source = "{name}-long.dat"
format = "basket"
[[dataset]]
name = "columns"
kind = "transactions"
source = "columns.csv"
format = "long"
[[dataset]]
name = "corrupt"
kind = "transactions"
source = "corrupt.dat.gz"
format = "basket"
[[dataset]]
name = "absent"
kind = "transactions"
source = "absent.dat"
format = "basket"
"""


@pytest.fixture(scope="module")
def organisations(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisations]:
    folder = tmp_path_factory.mktemp("organisations")
    made = Organisations.create(folder, DATA)
    for name in DATA:
        file = folder / f"{name}.toml"
        file.write_text(file.read_text().replace("[policy]", DATASETS.format(name=name) + "[policy]"))
        (folder / f"{name}-long.dat").write_text("".join(f"{name}{i}\n" for i in range(LONG)))
    (folder / "columns.csv").write_text("basket,what\n1,milk\n")
    (folder / "corrupt.dat.gz").write_bytes(b"\x1f\x8b\x08 this is no gzip")
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
def quiet(organisations: Organisations) -> Iterator[Organisations]:
    """The running nodes; after the test no result is left."""
    yield organisations
    assert not [path.name for path in organisations.folder.iterdir() if path.name.startswith((".out", "out"))]


@pytest.fixture
def world(quiet: Organisations) -> Iterator[Organisations]:
    """The running nodes; after the test they do their next job."""
    yield quiet
    all_is_well(quiet)


def all_is_well(world: Organisations) -> None:
    ran = world.run_here(world.job("next.toml"), "next")
    assert (ran.code, ran.out) == (0, ""), ran.err
    assert (world.folder / "next" / "itemsets.csv").read_bytes().count(b"\n") == 27


def long_job(world: Organisations, deadline: str = "10m") -> Path:
    job = world.job(deadline=deadline, min_support="1", more='universe = "all-items"\nmax_length = 1')
    job.write_text(job.read_text().replace('"baskets"', '"long"'))
    return job


def under_way(world: Organisations, deadline: str = "10m") -> tuple[Process, bytes]:
    """A long job in the midst of its union at all parties, and its id."""
    seen = {name: len(node.lines) for name, node in world.nodes.items()}
    process = world.begin(long_job(world, deadline))
    job_id = b""
    for name, node in world.nodes.items():
        job_id = bytes.fromhex(json.loads(node.until('"job started"', after=seen[name]))["job"])
    hub = world.authority.issue("hub", "coordinator")

    async def in_union(name: str) -> None:
        client = Client(hub, name, world.addresses[name])
        async for event in client.stub.Watch(control.WatchRequest(job_id=job_id)):
            if "union" in event.step:
                break
        await client.channel.close()

    async def in_unions() -> None:
        async with asyncio.timeout(START_S):
            await asyncio.gather(*map(in_union, world.nodes))

    asyncio.run(in_unions())
    return process, job_id


def told(world: Organisations, job_id: bytes, *names: str) -> list[str]:
    """How the job ended, by the logs of the named nodes."""
    words = [f'"{job_id.hex()}", "{key}"' for key in ("code", "session")]
    return [json.loads(world.nodes[name].until(*words))["event"] for name in names]


# -- kills and hangs --------------------------------------------------------------------------------------------------
def test_a_party_killed_in_the_midst_of_a_job_is_named(world: Organisations) -> None:
    process, job_id = under_way(world)
    world.nodes["south"].send(signal.SIGKILL)
    ran = process.end()
    assert ran.code == 20
    assert "south" in ran.sentence
    assert len(told(world, job_id, "north", "east")) == 2
    world.nodes["south"].kill()
    ran = world.run_here()
    assert ran.code == 20
    assert f"south at {world.addresses['south']} cannot be reached: nothing listens there" in ran.sentence
    world.start("south")


def test_a_party_that_stands_still_is_named_at_the_deadline(world: Organisations) -> None:
    for deadline_s in DEADLINES_S:
        process, job_id = under_way(world, deadline=f"{deadline_s}s")
        world.nodes["east"].send(signal.SIGSTOP)
        ran = process.end()
        if "east" in ran.sentence:
            break
        world.nodes["east"].send(signal.SIGCONT)  # the deadline came first, and there is another
    assert ran.code in (20, 60)
    assert "east" in ran.sentence
    ran = world.run_here()
    assert ran.code == 20
    assert f"east at {world.addresses['east']}" in ran.sentence
    world.nodes["east"].send(signal.SIGCONT)
    assert len(told(world, job_id, "north", "south", "east")) == 3


def test_a_party_that_stands_still_is_noticed_before_the_deadline(world: Organisations) -> None:
    """By both of its peers, who name it and not each other."""
    seen = {name: len(node.lines) for name, node in world.nodes.items()}
    process, job_id = under_way(world)
    world.nodes["east"].send(signal.SIGSTOP)
    try:
        ended = [world.nodes[n].until('"error_party"', after=seen[n]) for n in ("north", "south")]
        assert [json.loads(line)["error_party"] for line in ended] == ["east", "east"]
        assert all("for 20 s" in line for line in ended)
    finally:
        world.nodes["east"].send(signal.SIGCONT)
    ran = process.end()
    assert ran.code == 20
    assert "east was lost" in ran.sentence
    assert len(told(world, job_id, *DATA)) == 3


def test_a_party_told_to_stop_ends_in_order_and_is_named(world: Organisations) -> None:
    process, job_id = under_way(world)
    world.nodes["north"].send(signal.SIGTERM)
    assert world.nodes["north"].end().code == 0
    ran = process.end()
    assert ran.code == 50
    assert "cancelled at north: its node is stopping" in ran.sentence
    assert told(world, job_id, "south", "east") == ["job cancelled"] * 2
    world.start("north")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_coordinator_cancels_the_job_everywhere(world: Organisations, number: signal.Signals) -> None:
    process, job_id = under_way(world)
    process.send(number)
    ran = process.end()
    assert (ran.code, ran.out) == (50, "")
    assert "cancelled" in ran.sentence
    assert told(world, job_id, *DATA) == ["job cancelled"] * 3


def test_a_coordinator_that_vanishes_leaves_healthy_nodes(world: Organisations) -> None:
    process, job_id = under_way(world, deadline="6s")
    process.send(signal.SIGKILL)
    process.end()
    all_is_well(world)  # beside the job that nobody waits for
    assert set(told(world, job_id, *DATA)) <= {"job failed", "job succeeded"}


def test_jobs_at_once_and_one_after_the_other(world: Organisations) -> None:
    world.job("a.toml"), world.job("b.toml", min_support="0.5")
    runs = [world.begin("a.toml", "a"), world.begin("b.toml", "b"), world.begin("a.toml", "c")]
    assert [run.end().code for run in runs] == [0, 0, 0]
    read = {name: (world.folder / name / "itemsets.csv").read_bytes() for name in "abc"}
    assert read["a"] == read["c"] != read["b"]
    assert world.run_here("a.toml", "a").code == 0  # an earlier result is replaced
    assert (world.folder / "a" / "itemsets.csv").read_bytes() == read["a"]


# -- data and job files -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dataset", ["columns", "corrupt", "absent"])
def test_bad_data_names_the_party_and_not_the_reason(quiet: Organisations, dataset: str) -> None:
    job = quiet.job()
    job.write_text(job.read_text().replace('"baskets"', f'"{dataset}"'))
    ran = quiet.run_here(job)
    assert ran.code == 10
    assert "cannot take part in this job with its data; the log of" in ran.sentence
    assert ".dat" not in ran.sentence
    assert ".csv" not in ran.sentence


def spoilt(**changes: Any) -> Callable[[Organisations], None]:
    return lambda world: void(world.job(**changes))


def over_bound(world: Organisations) -> None:
    job = world.job(min_support="1", more='universe = "all-items"\nmax_length = 1\n[union]\nbound = 2')
    job.write_text(job.read_text().replace('"baskets"', '"long"'))


def void(_: object) -> None:
    """Nothing of it."""


def holding(content: bytes) -> Callable[[Organisations], None]:
    return lambda world: void((world.folder / "job.toml").write_bytes(content))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (spoilt(min_support="100000"), "asks for 100000 transactions, but there are fewer"),
        (spoilt(more="max_candidates = 3", min_support="0.01"), "more than 3 candidates"),
        (over_bound, "nobody learns which, brings more elements to the union"),
        (spoilt(min_support="0"), "[itemsets] min_support: 0 must be"),
        (spoilt(min_support="-0.1"), "[itemsets] min_support: -0.1 must be"),
        (spoilt(min_support="nan"), "[itemsets] min_support: NaN must be"),
        (spoilt(min_support="[1]"), "[itemsets] min_support: must be a fraction"),
        (spoilt(parties=("north", "west")), "the party 'west'"),
        (spoilt(parties=("north", "north")), "'north' is named twice"),
        (spoilt(parties=("north", "all")), "no party may be called 'all'"),
        (spoilt(parties=("north",)), "at least 2"),
        (spoilt(deadline="soon"), "[job] deadline"),
        (spoilt(more="min_suport = 2"), "min_suport: is not a known key"),
        (spoilt(more='universe = "no-catalogue.txt"'), "no-catalogue.txt cannot be read"),
        (holding(b"garbage"), "is not valid TOML"),
        (holding(b"\xff\xfe"), "is not UTF-8"),
        (holding(b"job = 3"), "job: must be a table"),
        (lambda world: (world.folder / "job.toml").unlink(), "does not exist"),
    ],
)
def test_a_wrong_job_is_one_sentence(quiet: Organisations, spoil: Callable[[Organisations], None], words: str) -> None:
    quiet.job()
    spoil(quiet)
    ran = quiet.run_here()
    assert (ran.code, ran.out) == (10, "")
    assert words in ran.sentence


# -- places for results -----------------------------------------------------------------------------------------------
def test_a_folder_with_other_files_is_left_alone(quiet: Organisations) -> None:
    mine = quiet.folder / "mine"
    mine.mkdir()
    (mine / "thesis.tex").write_text("all my work")
    for out in ("mine", "mine/thesis.tex", "mine/thesis.tex/out"):
        ran = quiet.run_here(quiet.job(), out)
        assert ran.code == 10
        assert "thesis" in ran.sentence or "not an earlier result" in ran.sentence
    assert [path.name for path in mine.iterdir()] == ["thesis.tex"]


@contextmanager
def tiny(folder: Path) -> Iterator[None]:
    """A disk of 16 kB at `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root can mount a small disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_full_disk_at_the_coordinator_leaves_nothing(world: Organisations) -> None:
    with tiny(world.folder / "disk"):
        ran = world.run_here(world.job(min_support="0.01"), "disk/result")
        assert ran.code == 10
        assert "No space left on device; nothing was left behind" in ran.sentence
        assert list((world.folder / "disk").iterdir()) == []


def test_a_full_disk_at_a_party_that_receives_leaves_nothing(world: Organisations) -> None:
    results = world.folder / "state" / "south" / "results"
    with tiny(results):
        ran = world.run_here(world.job(min_support="0.01", recipients='["south"]'))
        assert ran.code == 10
        assert "south cannot write its result; the log of south has the reason" in ran.sentence
        assert list(results.iterdir()) == []
    assert "No space left on device" in world.nodes["south"].until("result not written")


# -- certificates and keys --------------------------------------------------------------------------------------------
def replaced(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def reissued(pki: Path, authority: Authority, name: str, days: float) -> None:
    """A certificate that was valid once (days below zero) or will be from tomorrow on."""
    role: Role = "coordinator" if name == "hub" else "party"
    with pytest.MonkeyPatch.context() as patch:
        if days > 0:
            patch.setattr(link.pki.authority, "CLOCK_SKEW", dt.timedelta(days=-days))
        write_identity(authority.issue(name, role, valid_days=2 * days), pki, force=True)


SPOILT_KEYS: dict[str, tuple[Callable[[Path, Authority, str], None], int, str]] = {
    "missing": (lambda pki, _, name: (pki / f"{name}.key").unlink(), 10, "cannot be read"),
    "open": (lambda pki, _, name: (pki / f"{name}.key").chmod(0o644), 10, "run: chmod 600"),
    "garbage": (lambda pki, _, name: replaced(pki / f"{name}.key", b"secret"), 20, "not an unencrypted private key"),
    "unfitting": (
        lambda pki, authority, name: replaced(pki / f"{name}.key", authority.issue(name).key_pem),
        20,
        "does not belong to",
    ),
    "expired": (lambda pki, authority, name: reissued(pki, authority, name, -1), 20, "expired on"),
    "early": (lambda pki, authority, name: reissued(pki, authority, name, 1), 20, "is not valid before"),
    "no-certificate": (lambda pki, _, name: replaced(pki / f"{name}.crt", b"x"), 20, "not a certificate in PEM form"),
    "no-authority": (lambda pki, _, name: (pki / "ca.crt").unlink(), 10, "cannot be read"),
    "other-authority": (
        lambda pki, _, name: replaced(pki / "ca.crt", Authority.create().certificate_pem),
        20,
        "was not issued by the authority",
    ),
}


def test_wrong_keys_and_certificates_are_told_before_anything_is_sent(quiet: Organisations, tmp_path: Path) -> None:
    quiet.job()
    ran = dict[tuple[str, str], Ran]()
    for fault, (spoil, _, _) in SPOILT_KEYS.items():
        for name, verb in (
            ("hub", ("job", "run", "job.toml", "--federation", "federation.toml", "--out", "out")),
            ("north", ("party", "serve", "north.toml")),
        ):
            folder = tmp_path / fault / name
            shutil.copytree(quiet.folder / "pki", folder / "pki")
            for file in quiet.folder.glob("*.toml"):
                shutil.copy(file, folder)
            spoil(folder / "pki", quiet.authority, name)
            ran[fault, name] = command(*verb, cwd=folder)
    for (fault, name), end in ran.items():
        _, exit_code, words = SPOILT_KEYS[fault]
        assert (end.code, end.out) == (exit_code, ""), (fault, name, end)
        assert words in end.sentence
        assert not (tmp_path / fault / name / "out").exists()


def test_a_node_that_cannot_have_its_port_says_so(quiet: Organisations) -> None:
    written = (quiet.folder / "north.toml").read_text()
    (quiet.folder / "twin.toml").write_text(written.replace("state/north", "state/twin"))
    ran = comine("party", "serve", "twin.toml", cwd=quiet.folder)
    assert ran.code == 10
    assert f"north cannot listen at {quiet.addresses['north']}" in ran.sentence


def test_a_node_on_a_full_disk_says_so_and_so_does_the_check(quiet: Organisations) -> None:
    (port,) = free_ports(1)
    written = (quiet.folder / "north.toml").read_text().replace("state/north", "full/north")
    (quiet.folder / "full.toml").write_text(re.sub(r'listen = ".*"', f'listen = "127.0.0.1:{port}"', written))
    with tiny(quiet.folder / "full"):
        (quiet.folder / "full/north").mkdir()
        with suppress(OSError):
            (quiet.folder / "full/north/filler").write_bytes(bytes(16 << 10))
        checked = command("party", "check", "full.toml", cwd=quiet.folder)
        assert checked.code == 10
        assert "cannot be written (No space left on device)" in checked.out
        ran = comine("party", "serve", "full.toml", cwd=quiet.folder)
        assert ran.code == 10
        assert re.search("No space left on device|database or disk is full|unable to open", ran.sentence), ran
        assert "the log of north has the reason" not in ran.err


def test_the_doctor_writes_no_noise(quiet: Organisations) -> None:
    file = quiet.folder / "federation.toml"
    contents = file.read_text()
    north, south = (quiet.addresses[name] for name in ("north", "south"))
    other = quiet.folder / "swapped.toml"
    other.write_text(contents.replace(north, "-").replace(south, north).replace("-", south))
    for federation, exit_code in ((file, 0), (other, 20)):
        ran = comine("doctor", "--federation", federation, "--json", cwd=quiet.folder)
        assert ran.code == exit_code
        assert len(ran.err.splitlines()) == 1
        assert json.loads(ran.out)["schema"] == "comine.doctor/1"


@pytest.mark.parametrize(
    ("arguments", "redirect", "exit_code"),
    [
        ("explain E100", ">&-", 0),
        ("explain E999", "2>&-", 2),
        ("explain E100", ">/dev/full", 10),
        ("explain E999", "2>/dev/full", 2),
        ("explain E100", "| true", 0),
    ],
)
def test_output_that_nobody_takes_is_no_fault(arguments: str, redirect: str, exit_code: int) -> None:
    line = f"set -o pipefail; '{sys.executable}' -m comine {arguments} {redirect}"
    ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert ran.returncode == exit_code
    assert len(ran.stderr.splitlines()) == (1 if redirect == ">/dev/full" else 0)
