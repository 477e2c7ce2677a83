"""The rows that several parties have in common, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from crypto.protocols.comparison.two_party import pairs_of
from jobs.data import Data
from jobs.kinds.alignment.parameters import row_alignment
from jobs.kinds.alignment.template import TEMPLATE
from jobs.kinds.alignment.unions import of_alignment
from jobs.kinds.data import table_rows_of
from jobs.kinds.key import Key
from jobs.kinds.kind import ALL, EXACT, Disclosure, Facet, Kind, Resources, Unions
from jobs.kinds.words import watched
from jobs.privacy_account import Charge
from jobs.results.outcome import Outcome
from jobs.spec.job import JobSpec
from link.session import Session
from mining.joint import align


class Alignment(Kind):
    """The rows that several parties have in common, and nothing else."""

    planning = "jobs.kinds.columns.plan"
    data = "table"
    in_blocks = True
    finding = None

    def template(self, key: Key, parties: tuple[str, ...]) -> str:
        return TEMPLATE

    def tables(self, spec: JobSpec) -> Mapping[str, frozenset[str]]:
        return {"align": ALL, "plan": ALL}

    def check(self, spec: JobSpec) -> None:
        row_alignment(spec)

    async def run(self, session: Session, spec: JobSpec, data: Data, resources: Resources) -> Outcome:
        table, task = table_rows_of(spec, data, session.me), row_alignment(spec)
        found = await align.align(session, pairs_of(session.lane("pairs")), table, task, resources.list_limits)
        if found.rows is None:
            return Outcome(found.n_common, task.mode)
        own = await session.compute(align.positions_of, table, found.rows)
        positions = len(found.rows) if found.n_common is None else None
        return Outcome(found.n_common, task.mode, positions=positions, alignment=own)

    def disclosure(self, spec: JobSpec) -> Disclosure:
        task, parties = row_alignment(spec), spec.job.parties
        result = (
            "the number of positions of rows"
            if self.finds_positions(spec)
            else "the number N of rows that all parties have"
        )
        return Disclosure(
            result,
            watched(spec, result),
            align.openings(task, parties),
            align.learned(task, parties),
            align.collusion(parties),
            align.worst(parties),
        )

    def charge(self, spec: JobSpec) -> Charge:
        return EXACT

    def facets(self, spec: JobSpec) -> frozenset[Facet]:
        return frozenset({"rows in common"})

    def shares(self, spec: JobSpec) -> bool:
        return False

    def unions(self, spec: JobSpec) -> Unions:
        return of_alignment(spec)

    def finds_positions(self, spec: JobSpec) -> bool:
        return spec.alignment.mode == "union"

    def resumes(self, spec: JobSpec) -> bool:
        return True

    def refusals(self, spec: JobSpec) -> frozenset[str]:
        return frozenset({"ids"})

    def lead(self, spec: JobSpec) -> tuple[str, str]:
        return "Rows in common", "aligned together; no id left its owner"

    def facts(self, spec: JobSpec, strategy: str) -> list[tuple[str, str]]:
        return [("mode", strategy)]


KIND: Final = Alignment()
