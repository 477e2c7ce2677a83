"""Releases of a node's tables to coordinators: the part of the anonymisation service that makes and sends them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from anonymize.certificate import Certificate
from anonymize.verifier import CERTIFICATE, RELEASE_PARQUET
from jobs.anonymization.folder import REPORT
from jobs.audit.service_events import ReleaseRefused, TableReleased
from link.errors import ComineError, PolicyDenied
from party.config import DatasetSection
from party.node.limits import Streams
from party.services.anonymization.kept import KeptRelease, KeptReleases, asked_of
from party.services.anonymization.policy import AnonymizationRules, may_ask
from party.services.anonymization.releases import Releases
from party.services.anonymization.request import as_json, digest_of, files_of, spec_of
from party.services.anonymization.runs import FOLDER, Made, Runs, Unmet
from party.services.anonymization.sample import FILE as SAMPLE
from party.services.anonymization.sample import Sample
from party.services.anonymization.strength import released
from party.services.anonymization.worker import OUT, ROWS
from party.state.node_audit import NodeAudit
from protos.v1 import anonymization_pb2 as pb

MAX_REQUESTS: Final = 4  # of one coordinator at once; each has a folder on disk until it is over
PIECE_BYTES: Final = 1 << 20

FILES: Final[Mapping[pb.ReleaseFile.ValueType, str]] = {
    pb.ROWS: ROWS,
    pb.PARQUET: f"{OUT}/{RELEASE_PARQUET}",
    pb.CERTIFICATE: f"{OUT}/{CERTIFICATE}",
    pb.REPORT: f"{OUT}/{REPORT}",
}


@dataclass(slots=True)
class _Open:
    """A dataset of which releases may leave; the lock keeps the runs on its source in a row."""

    section: DatasetSection
    rules: AnonymizationRules
    lock: asyncio.Lock


class ReleaseService:
    """Makes releases as the policy allows, and sends them.

    Args:
        datasets: Of `party.toml`.
        state: The node's state folder.
        me: This party.
        releases: What has left, and has been made of rows jointly.
        audit: The node's audit log.

    Attributes:
        runs: Of algorithms; None where no dataset has releases.

    Raises:
        ConfigurationError: What is in the state folder cannot be read.
        ResourceError: It cannot be written.
    """

    def __init__(
        self, datasets: Sequence[DatasetSection], state: Path, me: str, releases: Releases, audit: NodeAudit
    ) -> None:
        self._me, self._state, self._releases, self._audit = me, state, releases, audit
        self._kept = KeptReleases(state)
        self._asking = Streams(MAX_REQUESTS, me)
        self.runs: Runs | None = None
        self._locks: dict[str, asyncio.Lock] = {}
        self.renew(datasets, {})

    def renew(self, datasets: Sequence[DatasetSection], alike: Mapping[str, tuple[str, ...]]) -> None:
        """Lets releases leave as other settings say; runs that have begun go on under what they began with.

        Args:
            datasets: Of `party.toml`.
            alike: By dataset, all datasets that have its source or had it.
        """
        self._open: dict[str, _Open] = {}
        for each in datasets:
            if each.anonymization is not None:
                known = (self._locks[name] for name in alike.get(each.name, (each.name,)) if name in self._locks)
                lock = self._locks[each.name] = next(known, None) or asyncio.Lock()
                self._open[each.name] = _Open(each, each.anonymization, lock)
        if self._open and self.runs is None:
            self.runs = Runs(self._state / FOLDER, self._me)

    async def stop(self) -> None:
        """Ends all runs."""
        if self.runs is not None:
            await self.runs.stop()

    def rules(self, coordinator: str) -> dict[str, pb.AnonymizationRules]:
        """What a coordinator may ask for, by dataset."""
        return {name: _message(each.rules) for name, each in self._open.items() if may_ask(each.rules, coordinator)}

    async def anonymize(self, request: pb.AnonymizeRequest, coordinator: str) -> AsyncGenerator[pb.ReleasePart]:
        """The files of a release, piece by piece.

        Raises:
            PolicyDenied: The policy does not let such a release leave.
            ComineError: There is no release.
        """
        try:
            (found, runs), releases = self._found(request.dataset, coordinator), self._releases
            self._audit.check(TableReleased, coordinator)
            spec = await asyncio.to_thread(spec_of, request, found.section, found.rules, coordinator, self._me)
            files = files_of(request)
            asked = await asyncio.to_thread(digest_of, spec, files)
            limits = found.rules.max_releases, found.rules.max_failures
            await asyncio.to_thread(releases.check, request.dataset, asked, *limits)
        except ComineError as error:
            await self._refused(request, coordinator, error)
            raise
        with self._asking.one(coordinator):
            async with runs.folder() as place:
                runs.put(place, files)
                try:
                    async with found.lock:
                        # Others have come to an end while this one waited.
                        await asyncio.to_thread(releases.check, request.dataset, asked, *limits)
                        # Counted before it runs, until it succeeds: else who hangs up once a run has lasted longer
                        # than a failing one learns for nothing that the rows suffice.
                        await asyncio.to_thread(releases.fail, request.dataset, asked, coordinator)
                        made = await runs.make(place, as_json(spec), found.section, found.rules)
                        if isinstance(made, Unmet):
                            raise made.error
                    most = found.rules.max_releases
                    await asyncio.to_thread(releases.admit, request.dataset, made.rows, asked, coordinator, most)
                except ComineError as error:
                    await self._refused(request, coordinator, error)
                    raise
                await self._audit.record(
                    TableReleased(
                        dataset=request.dataset,
                        coordinator=coordinator,
                        request=asked,
                        algorithm=spec.algorithm,
                        k=spec.model.k,
                        columns=released(spec),
                        rows=made.published,
                        certificate=made.certificate,
                        report=found.rules.report,
                        number=await asyncio.to_thread(self._count),
                    )
                )
                await asyncio.to_thread(self._keep, made, found.section, as_json(spec), coordinator)
                async for part in _parts(made, report=found.rules.report):
                    yield part

    def _found(self, dataset: str, coordinator: str) -> tuple[_Open, Runs]:
        found = self._open.get(dataset)
        if found is None or not may_ask(found.rules, coordinator) or self.runs is None:
            raise PolicyDenied(
                f"the policy of {self._me} lets no release of a dataset '{dataset[:100]}' leave for '{coordinator}' "
                "(table dataset.anonymization); see what may be asked for with: comine anonymize datasets --node NAME",
                party=self._me,
            )
        return found, self.runs

    async def _refused(self, request: pb.AnonymizeRequest, coordinator: str, error: ComineError) -> None:
        await self._audit.record(
            ReleaseRefused(
                dataset=request.dataset[:100],
                coordinator=coordinator,
                code=error.code,
                reason=error.message[:1000],
                number=await asyncio.to_thread(self._count),
            )
        )

    def _keep(self, made: Made, dataset: DatasetSection, spec: Mapping[str, Any], coordinator: str) -> None:
        """Keeps what this node's people may see of a release; for want of room it leaves all the same."""
        report, sample = made.folder / OUT / REPORT, made.folder / SAMPLE
        with suppress(OSError):
            kept = KeptRelease(
                dataset=dataset.name,
                coordinator=coordinator,
                at=time.time(),
                asked=asked_of(spec),
                certificate=Certificate.read(made.folder / OUT / CERTIFICATE),
                sample=Sample.model_validate_json(sample.read_bytes()) if sample.exists() else None,
            )
            self._kept.keep(kept, report.read_bytes() if report.exists() else None)

    def _count(self) -> int:
        return self._releases.head


async def _parts(made: Made, *, report: bool) -> AsyncGenerator[pb.ReleasePart]:
    for kind, name in FILES.items():
        if kind == pb.REPORT and not (report and (made.folder / name).exists()):  # of rows in blocks there is none
            continue
        with (made.folder / name).open("rb") as file:
            while data := await asyncio.to_thread(file.read, PIECE_BYTES):
                yield pb.ReleasePart(file=kind, data=data)


def _message(rules: AnonymizationRules) -> pb.AnonymizationRules:
    require = rules.require.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return pb.AnonymizationRules(
        columns=[
            pb.ReleasableColumn(
                name=name,
                roles=roles,
                kind=rules.kinds[name].kind if name in rules.kinds else "",
                hierarchy=name in rules.hierarchies,
            )
            for name, roles in rules.columns.items()
        ],
        min_k=rules.min_k,
        algorithms=rules.algorithms,
        models=rules.models,
        require=json.dumps(require),
        max_suppression=str(rules.max_suppression),
        suppressed=rules.suppressed,
        describe=rules.describe,
        report=rules.report,
        max_releases=rules.max_releases,
        levels="" if rules.levels is None else rules.levels.model_dump_json(exclude_unset=True),
    )
