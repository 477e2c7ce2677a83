"""What runs at a node now and what waits there, for the people who operate it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from link.files.quantities import size
from party.jobs.queue_note import Running
from party.policy.inbox import clock, state_of
from party.policy.inbox_text import SHORT, columns, harmless
from party.state.store import Record


def status(
    party: str, records: Sequence[Record], noted: Mapping[str, Mapping[str, Any]], now: float, *, runs: bool
) -> dict[str, Any]:
    """The jobs that have not ended as JSON values, by the schema `comine.status/1`: those that run, then by place.

    Of those that run there is how far they are: steps, bytes and times, nothing of the data.

    Args:
        party: Whose node it is.
        records: The jobs.
        noted: What the node says of those that have turns, or wait for them.
        now: Unix seconds.
        runs: Whether the node runs.
    """
    jobs = [_job(record, noted.get(record.job_id.hex(), {}) if runs else {}, now) for record in records]
    jobs.sort(key=lambda job: (job["place"] is None, job["place"] or 0, job["received"], job["job_id"]))
    return {"schema": "comine.status/1", "party": party, "runs": runs, "jobs": jobs}


def status_text(contents: Mapping[str, Any]) -> str:
    """The same for people."""
    return "".join(f"{line}\n" for line in _lines(contents))


def _job(record: Record, noted: Mapping[str, Any], now: float) -> dict[str, Any]:
    place = noted.get("place")
    return {
        "job_id": record.job_id.hex(),
        "coordinator": record.coordinator,
        "dataset": record.dataset,
        "state": state_of(record, now),
        "place": place,
        "memory_bytes": noted.get("memory") or None,
        "running": _running(noted.get("running")),
        "received": clock(record.received),
        "expires": clock(record.expiry),
    }


def _running(noted: Running | None) -> dict[str, Any] | None:
    if noted is None:
        return None
    return {
        "step": noted.step or None,
        "done": noted.done,
        "total": noted.total,
        "since": clock(noted.since),
        "deadline": clock(noted.deadline),
        "peers": {peer: {"bytes_sent": sent, "bytes_received": got} for peer, (sent, got) in noted.peers.items()},
    }


def _lines(contents: Mapping[str, Any]) -> Iterator[str]:
    jobs = contents["jobs"]
    if not contents["runs"]:
        yield f"the node of {contents['party']} does not run; start it with comine party serve"
    waiting = sum(bool(job["place"]) for job in jobs)
    running = sum(job["state"] in ("running", "releasing") for job in jobs)
    undecided = sum(job["state"] == "awaiting approval" for job in jobs)
    yield f"{running} running, {waiting} waiting for their turn, {undecided} awaiting a decision"
    if jobs:
        yield from columns(
            [
                ("job", "coordinator", "dataset", "state", "place", "memory"),
                *(
                    (
                        job["job_id"][:SHORT],
                        job["coordinator"],
                        job["dataset"],
                        job["state"],
                        "–" if not job["place"] else str(job["place"]),
                        "–" if job["memory_bytes"] is None else size(job["memory_bytes"]),
                    )
                    for job in jobs
                ),
            ]
        )
    for job in jobs:
        if job["running"] is not None:
            yield ""
            yield from _progress(job)


def _progress(job: Mapping[str, Any]) -> Iterator[str]:
    running = job["running"]
    step = harmless(running["step"] or "reads its data")
    share = f", {running['done']} of {running['total']}" if running["total"] else ""
    yield f"{job['job_id'][:SHORT]} runs since {running['since']}, until {running['deadline']} at the latest"
    yield f"  step: {step}{share}"
    for peer, bytes_ in running["peers"].items():
        yield f"  {peer}: {size(bytes_['bytes_sent'])} sent, {size(bytes_['bytes_received'])} received"
