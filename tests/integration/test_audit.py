"""Three running nodes keep audit logs of all that happens, and the logs agree."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

from coordinator.jobs.released import assemble
from jobs.audit.checks.verification import VerificationDocument, verification
from jobs.audit.checks.verify import check_log
from jobs.audit.events import Proposed, Started
from jobs.audit.log import head_path
from jobs.results.folder import write_result_folder
from jobs.spec.job import JobSpec
from link.pki.trust import Trust
from protos.v1 import control_pb2 as control
from tests.jobs.audit.world import WHOLE_JOB
from tests.party.nodes import DATA, Nodes, brief, crash, hold, refused, running


def log(folder: Path, party: str) -> Path:
    return folder / "state" / party / "audit.log"


def verified(folder: Path, federation: Nodes, *results: Path) -> VerificationDocument:
    trust = Trust(federation.authority.certificate_pem)
    return verification([log(folder, party) for party in DATA], results, trust)


def told(folder: Path, federation: Nodes, party: str) -> list[str]:
    checked = check_log(log(folder, party), Trust(federation.authority.certificate_pem))
    return [record.event.event for record in checked.records]


async def write_result(federation: Nodes, spec: JobSpec, job_id: bytes, out: Path) -> Path:
    """As the coordinator does, with what all were asked and answered."""
    results = await federation.all(lambda client: client.result(job_id))
    released = dict(zip(federation.clients, results, strict=True))
    identity = next(iter(federation.clients.values())).identity
    source = spec.learners[0] if spec.to_coordinator else None
    proposal, approvals = consents(federation, job_id)
    result = assemble(spec, job_id, identity.trust, released, source)
    write_result_folder(out, replace(result, proposal=proposal, approvals=approvals, signer=identity))
    return out


def consents(federation: Nodes, job_id: bytes) -> tuple[control.SignedProposal, dict[str, control.SignedApproval]]:
    """What north's log holds of them."""
    checked = check_log(log(federation.folder, "north"), Trust(federation.authority.certificate_pem))
    events = [record.event for record in checked.records if getattr(record.event, "job", None) == job_id]
    (proposed,) = (event for event in events if isinstance(event, Proposed))
    (started,) = (event for event in events if isinstance(event, Started))
    given = map(control.SignedApproval.FromString, started.approvals)
    approvals = {control.Approval.FromString(signed.approval).party: signed for signed in given}
    return control.SignedProposal.FromString(proposed.proposal), approvals


def test_everything_that_happens_is_in_the_logs(tmp_path: Path):
    spec = brief(recipients=["coordinator"])

    async def main() -> None:
        async with running(tmp_path, policy='min_support = 0.1\ndatasets = ["baskets"]') as federation:
            job_id, ends = await federation.run(spec)
            assert {end.state for end in ends.values()} == {control.SUCCEEDED}
            result = await write_result(federation, spec, job_id, tmp_path / "result")
            shared, _ = await federation.run(brief(recipients=["all"]))
            own = [tmp_path / "state" / party / "results" / shared.hex() for party in DATA]
            assert verified(tmp_path, federation, *own).findings == []
            greedy = brief(itemsets={"min_support": "0.01"})
            assert (await refused(federation.clients["north"].propose(greedy))).code == "E300"
            release = hold(federation.nodes["south"])
            cancelled = await federation.begin(spec)
            await federation.all(lambda client: client.cancel(cancelled, "enough"))
            release.set()
            await federation.ends(cancelled)
            document = verified(tmp_path, federation, result)
            assert document.findings == []
            assert document.unheard == []
            events = told(tmp_path, federation, "north")
            assert tuple(events[:10]) == WHOLE_JOB
            assert events[19:21] == ["proposed", "refused"]
            assert events.count("ended") == 3
            hidden, _ = await federation.run(elsewhere := brief(recipients=["south"]))
            bare = await write_result(federation, elsewhere, hidden, tmp_path / "elsewhere")
            kept = tmp_path / "state" / "south" / "results" / hidden.hex()
            assert verified(tmp_path, federation, bare, kept).findings == []
        assert told(tmp_path, federation, "north")[-1] == "node-stopped"
        assert verified(tmp_path, federation, result).findings == []

    asyncio.run(main())


def test_a_node_that_died_in_a_job_raises_no_alarm(tmp_path: Path):
    """Its log goes on after the restart, and tells how the job ended."""

    async def main() -> None:
        async with running(tmp_path) as federation:
            release = hold(federation.nodes["south"])
            await federation.begin(brief())
            await crash(federation.nodes["south"])
            release.set()
            with log(tmp_path, "south").open("ab") as file:
                file.write(b'{"seq":')  # the crash came in the middle of a write
            await federation.restart("south")
            job_id, _ = await federation.run(brief())
            assert job_id
            assert "line-torn" in told(tmp_path, federation, "south")
        assert verified(tmp_path, federation).findings == []

    asyncio.run(main())


def test_a_party_that_goes_back_to_an_old_copy_is_found(tmp_path: Path):
    async def main() -> None:
        old, south = tmp_path / "backup", log(tmp_path, "south")
        old.mkdir()
        async with running(tmp_path) as federation:
            await federation.run(brief())
            for file in (south, head_path(south)):
                shutil.copy(file, old / file.name)
            await federation.run(brief())
        assert verified(tmp_path, federation).findings == []
        for file in (south, head_path(south)):
            shutil.copy(old / file.name, file)
        document = verified(tmp_path, federation)
        others = {str(log(tmp_path, party)) for party in ("north", "east")}
        assert {finding.file for finding in document.findings} == others
        assert any("the log of south lacks session" in finding.what for finding in document.findings)

    asyncio.run(main())


def test_a_node_does_nothing_where_it_cannot_write_its_log(tmp_path: Path):
    async def main() -> None:
        async with running(tmp_path) as federation:
            log(tmp_path, "south").rename(tmp_path / "away")
            refusal = await refused(federation.clients["south"].propose(brief()))
            assert (refusal.code, refusal.party) == ("E103", "south")
            assert "cannot write its audit log" in refusal.sentence
            (tmp_path / "away").rename(log(tmp_path, "south"))
            await federation.run(brief())
        assert verified(tmp_path, federation).findings == []

    asyncio.run(main())
