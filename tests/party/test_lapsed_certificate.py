"""A node outlives its certificate: it starts again with a new one, and its log tells what was signed too late."""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from pathlib import Path

from cryptography import x509

from jobs.audit.checks.verification import VerificationDocument, verification
from jobs.audit.place import find, trust_in
from link.pki.authority import write_identity
from link.pki.issued import revoke
from protos.v1 import control_pb2 as control
from tests.party.nodes import Nodes, random_rows, refused, running, weekly

DATA = {name: random_rows(seed, 30) for seed, name in enumerate(("north", "south"))}
SPEC = weekly(parties=list(DATA), recipients=["coordinator"])


def verified(folder: Path) -> VerificationDocument:
    """What `comine audit verify north.toml south.toml` finds, with the list of revoked certificates that is there."""
    places = find([folder / f"{name}.toml" for name in DATA])
    assert places.ca is not None
    return verification(places.logs, [], trust_in(places.ca, places.crl))


async def succeeds(federation: Nodes) -> None:
    _, ends = await federation.run(SPEC)
    assert {end.state for end in ends.values()} == {control.SUCCEEDED}


def lines(folder: Path) -> int:
    return (folder / "state" / "south" / "audit.log").read_bytes().count(b"\n")


def test_a_node_that_runs_past_the_expiry_starts_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path, data=DATA) as federation:
            await succeeds(federation)
            south = federation.nodes["south"]
            certificate = x509.load_pem_x509_certificate((tmp_path / "pki" / "south.crt").read_bytes())
            late = certificate.not_valid_after_utc + dt.timedelta(minutes=1)
            south.audit.now = lambda: late
            before = lines(tmp_path)
            await south.stop()
            assert lines(tmp_path) == before + 1  # nothing is lost
            write_identity(federation.authority.issue("south"), tmp_path / "pki", force=True)
            await federation.restart("south")
            await succeeds(federation)
            (finding,) = verified(tmp_path).findings
            assert (finding.line, finding.entry) == (before + 1, before)
            assert finding.what.startswith("it was signed after the certificate of south had expired on ")
            assert "by a node that ran past it; the signature and the chain hold" in finding.what

    asyncio.run(main())


def test_a_node_that_was_revoked_while_it_ran_starts_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path, data=DATA) as federation:
            await succeeds(federation)
            await asyncio.sleep(1.05 - time.time() % 1)  # a revocation has its date in seconds
            before = lines(tmp_path)
            revoke(tmp_path / "pki", "south")
            _, approvals = await federation.agree(SPEC)
            assert len(approvals) == len(DATA)
            after = lines(tmp_path)
            job_id = control.Approval.FromString(approvals[0].approval).job_id
            refusal = await refused(federation.clients["south"].start(job_id, approvals))
            assert refusal.code == "E201"
            assert "the certificate of south was revoked" in refusal.sentence
            await federation.nodes["south"].stop()
            assert lines(tmp_path) == after + 1
            write_identity(federation.authority.issue("south"), tmp_path / "pki", force=True)
            await federation.restart("south")
            await succeeds(federation)
            (finding,) = verified(tmp_path).findings
            assert (finding.line, finding.entry) == (before + 1, before)
            assert finding.what.startswith(
                f"entries {before} to {after} were signed after the certificate of south was revoked on "
            )

    asyncio.run(main())
