"""Runs a job with all its parties in this one process: the very code of the nodes, over a transport in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from coordinator.jobs.failures import gathered
from coordinator.jobs.progress import Watcher, unwatched
from coordinator.jobs.released import assemble
from crypto.primitives.randomness import Randomness
from crypto.protocols.products.outside_dealer import Dealer, Dealings
from jobs.data import Data, close, data_kind
from jobs.kinds.data import check_data_kind
from jobs.kinds.kind import Resources
from jobs.kinds.packed_itemsets import digest
from jobs.kinds.registry import kind_of
from jobs.results.release import release_of, sign
from jobs.results.result import Result
from jobs.run import PartyRun, run_party
from jobs.spec.job import JobSpec
from link.errors import ConfigurationError, InputDataError
from link.executor import ThreadExecutor
from link.pki.authority import Authority
from link.pki.identity import Identity
from link.pki.trust import Trust
from link.transports.memory import Hub
from mining.data.tables import Table
from mining.partitioned.tables.rows import PartitionedTable
from protos.v1.control_pb2 import ResultHeader

GRACE_S: Final = 2.0  # for the other parties to end once one has failed


async def simulate_job(
    spec: JobSpec, data: Mapping[str, Data], *, seed: int | None = None, watcher: Watcher = unwatched
) -> Result:
    """Runs a job on the data of all its parties.

    Args:
        spec: The job.
        data: The data of each party of the job, of the kind that the job needs; rows in blocks are closed at its end.
        seed: Repeats every random draw; such a run keeps no secrets.
        watcher: Called with the progress; with the bytes of a simulation at its end.

    Raises:
        ConfigurationError: `data` does not name exactly the parties of the job, or does not fit it.
        ComineError: The job failed; the error is the one that began it.
    """
    try:
        return await _simulated(spec, data, seed, watcher)
    finally:
        for given in data.values():
            close(given)


async def _simulated(spec: JobSpec, data: Mapping[str, Data], seed: int | None, watcher: Watcher) -> Result:
    check_parties(spec, data)
    _check_data(spec, data)
    random = Randomness.from_os() if seed is None else Randomness.from_seed(seed)
    job_id = spec.job_id(random.derive("nonce").bytes(16), 0)
    authority = Authority.create()
    executor = ThreadExecutor()
    hub = Hub()
    identities = {party: authority.issue(party) for party in spec.job.parties}
    dealings = dict[str, Dealings]()
    if kind_of(spec).is_dealt(spec):
        dealings = dict(zip(spec.job.parties, Dealer(random.derive("dealer")).here(), strict=True))

    async def part(party: str) -> PartyRun:
        try:
            run = await run_party(
                spec,
                data[party],
                hub.endpoint(party),
                job_id=job_id,
                attempt=1,
                identity=identities[party],
                random=random.derive(party),
                executor=executor,
                progress=lambda step, done, total: watcher(party, step, done, total, 0, 0),
                resources=Resources(dealings=dealings.get(party)),
            )
        except InputDataError as error:
            raise error.at(party) from None
        watcher(party, "done", 1, 1, run.costs.bytes_sent, run.costs.bytes_received)
        return run

    try:
        runs = await gathered({party: part(party) for party in spec.job.parties}, GRACE_S)
    finally:
        executor.close()
    released = {party: _release(job_id, identities[party], run) for party, run in runs.items()}
    source = None if kind_of(spec).finds is None else spec.learners[0]
    result = assemble(spec, job_id, Trust(authority.certificate_pem), released, source)
    kept = {party: run.outcome.alignment for party, run in runs.items() if run.outcome.alignment is not None}
    return replace(result.of_simulation(seed), alignments=kept)


def check_parties(spec: JobSpec, given: Mapping[str, object]) -> None:
    """Refuses data that is not exactly one source per party of the job.

    Raises:
        ConfigurationError: A party is missing, or is none of the job's.
    """
    parties = spec.job.parties
    for name in given:
        if name not in parties:
            raise ConfigurationError(f"'{name}' is not a party of the job, which names {', '.join(parties)}")
    for name in parties:
        if name not in given:
            raise ConfigurationError(
                f"there is no data for the party '{name}' of the job; give its data too, on the command line with "
                f"--party {name}=FILE"
            )


def _check_data(spec: JobSpec, data: Mapping[str, Data]) -> None:
    """What nodes cannot see of each other's tables and a simulation can."""
    for party, given in data.items():
        check_data_kind(spec, data_kind(given), party)
    columns = {
        party: given.column_names for party, given in data.items() if isinstance(given, Table | PartitionedTable)
    }
    kind_of(spec).check_columns(spec, columns)


def _release(job_id: bytes, identity: Identity, run: PartyRun) -> tuple[ResultHeader, bytes]:
    packed = b"" if run.outcome.finding is None else run.outcome.finding.pack()
    signed = digest(packed) if packed else b""
    return sign(release_of(run, job_id=job_id, party=identity.name, result_digest=signed), identity), packed
