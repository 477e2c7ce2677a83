"""The queries of one dataset: what its auditors know, on which data, and what they decide.

Whether a query is answered follows from public columns, the queries and the answers so far. All that are kept in the
log come before; so the same auditors are there after a restart, or after a fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anonymize.auditing.column import ColumnAuditor, QueryClass
from anonymize.auditing.counts import OverlapControl, SizeControl
from anonymize.auditing.decision import Decision, Reason
from link.errors import ComineError
from link.logs.structured import Log
from mining.data.tables import Table
from party.services.queries.conditions import Conditions, Rows, read_column
from party.services.queries.kept import KeptAuditors
from party.services.queries.language import CLASS_OF, Query
from party.services.queries.log import Answers, AuditorRow, QueryLog, packed
from party.services.queries.policy import RECORDS, QueriesSection
from party.services.queries.records import Variables, check_records, variables

KEPT_RANK: Final = 256  # from where on replaying takes longer than a moment
KEEP_EVERY: Final = 32  # answers


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a query was decided.

    Attributes:
        number: Of the decision.
        reason: Why it is denied; None where it is answered.
        answer: None where it is denied.
    """

    number: int
    reason: Reason | None
    answer: float | None


class _Counter:
    """Decides on counts, for which only size and overlap of the sets are controlled."""

    def __init__(self, control: OverlapControl) -> None:
        self._control = control
        self.sums = None

    def decide(self, asked: QueryClass, records: NDArray[np.int64]) -> Decision:  # noqa: ARG002
        return self._control.decide(records)

    def answer(self, asked: QueryClass, records: NDArray[np.int64], value: float) -> None:  # noqa: ARG002
        self._control.answer(records)

    def extend(self, more: int, of: NDArray[np.int64]) -> None:
        self._control.extend(more, of)


@dataclass(slots=True)
class _Audited:
    """A column, or the records themselves, with what audits it.

    Attributes:
        row: In the log.
        auditor: It.
        n: How many variables it knows.
        kept: Its rank when it was last kept.
    """

    row: AuditorRow
    auditor: ColumnAuditor | _Counter
    n: int
    kept: int


class DatasetQueries:
    """Decides on the queries of one dataset, one at a time; for any thread, but never two.

    Args:
        name: The dataset.
        policy: What may be asked of it.
        log: Of the node.
        kept: Files of its auditors.
        lines: The node's log.
    """

    def __init__(self, name: str, policy: QueriesSection, log: QueryLog, kept: KeptAuditors, lines: Log) -> None:
        self.name, self.policy = name, policy
        self._log, self._kept, self._lines = log, kept, lines
        self._forget()

    def _forget(self) -> None:
        self._data: Table | None = None
        self._conditions: Conditions | None = None
        self._values: dict[str, NDArray[np.float64]] = {}
        self._variables: dict[str, Variables] = {}
        self._audited: dict[str, _Audited] = {}
        self._answers: Answers | None = None

    def ask(self, data: Table, query: Query, text: str, coordinator: str) -> Outcome:
        """Decides on a query that the policy allows; the decision is on disk when this returns.

        Args:
            data: The dataset as it is now.
            query: What is asked.
            text: In which words.
            coordinator: By whom.

        Raises:
            ConfigurationError: The data are not those of earlier answers, or lack a column of the policy.
            InputDataError: A column does not hold what its queries need, or ids are missing or doubled.
            ResourceError: The decision cannot be kept, so that nothing is answered.
        """
        try:
            return self._ask(data, query, text, coordinator)
        except BaseException:
            self._forget()  # what is on disk may be ahead of what is in memory
            raise

    def _ask(self, data: Table, query: Query, text: str, coordinator: str) -> Outcome:
        self._take(data)
        assert self._conditions is not None
        met = self._conditions.meeting(query.condition)
        values = self._column_values(data, query.column)
        if values is not None:
            met &= ~np.isnan(values)
        asked = CLASS_OF[query.function]
        audited, by_record = self._auditor(data, query.column)
        records = np.sort(by_record[met])
        reason = self._reason(data.n_rows, query.column, asked, records, audited)
        rank = None if audited.auditor.sums is None else audited.auditor.sums.rank
        if reason is not None:
            return Outcome(self._log.decided(audited.row, coordinator, text, asked, reason, rank), reason, None)
        value = self._value(query.column, asked, met, values)
        known = np.zeros(audited.n, bool)
        known[records] = True
        before, kept = self._answered(), packed(known)
        number = self._log.decided(audited.row, coordinator, text, asked, None, rank, kept, value)
        self._answers = Answers(before.number + 1, before.size + len(kept) + len(text))
        audited.auditor.answer(asked, records, value)
        self._keep(audited, number)
        return Outcome(number, None, value / len(records) if query.function == "avg" else value)

    def _reason(
        self, n: int, column: str, asked: QueryClass, records: NDArray[np.int64], audited: _Audited
    ) -> Reason | None:
        answered, most = self._answered(), self.policy.max_queries
        if (most is not None and answered.number >= most) or answered.size >= self.policy.max_disk:
            return "too many"
        if len(records) < self.policy.min_size:
            return "size"
        if column == RECORDS and not SizeControl(n, self.policy.min_size).decide(len(records)).allowed:
            return "size"
        return audited.auditor.decide(asked, records).reason

    def _value(self, column: str, asked: QueryClass, met: Rows, values: NDArray[np.float64] | None) -> float:
        """The sum, maximum, minimum or count."""
        assert self._conditions is not None
        if values is None:
            return float(np.count_nonzero(met))
        match asked:
            case "sum":
                return self._conditions.total(column, met)
            case "max":
                return float(values[met].max())
            case "min":
                return float(values[met].min())
            case _:
                return float(values[met].sum())

    # -- data --------------------------------------------------------------------------------------------------------
    def _take(self, data: Table) -> None:
        """Goes on with the data as they are now; the variables of their records are looked up when needed."""
        if data is self._data:
            return
        check_records(self._log, self.name, data, (*self.policy.public, *self.policy.columns))
        self._data, self._conditions = data, Conditions(data)
        self._values, self._variables = {}, {}

    def _column_values(self, data: Table, name: str) -> NDArray[np.float64] | None:
        if name == RECORDS:
            return None
        if name not in self._values:
            self._values[name] = read_column(self.policy, data, name)
        return self._values[name]

    # -- auditors ----------------------------------------------------------------------------------------------------
    def _answered(self) -> Answers:
        if self._answers is None:
            self._answers = self._log.answers(self.name)
        return self._answers

    def _auditor(self, data: Table, column: str) -> tuple[_Audited, NDArray[np.int64]]:
        """What audits a column, and which of its variables belong to the records."""
        row = self._log.auditor(self.name, column)
        if column not in self._variables:
            self._variables[column] = variables(self._log, row, data, self._column_values(data, column))
        found = self._variables[column]
        n = len(found.of)
        audited = self._audited.get(column)
        if audited is None:
            audited = self._audited[column] = self._rebuilt(row, column, found.of)
        if n > audited.n:
            audited.auditor.extend(n - audited.n, found.of)
            audited.n = n
        return audited, found.by_record

    def _rebuilt(self, row: AuditorRow, column: str, of: NDArray[np.int64]) -> _Audited:
        """An auditor that knows all that was answered about a column; each variable is somebody's."""
        after, kept, n = 0, 0, len(of)
        control = self.policy.control(column, of)
        auditor: ColumnAuditor | _Counter
        if self.policy.counts(column):
            assert control is not None  # as the policy makes sure
            auditor = _Counter(control)
        else:
            auditor = column_auditor = ColumnAuditor(n, self.policy.columns[column], control=control, of=of)
            found = self._kept.read(row)
            if found is not None and found[1].n <= n and self._log.knows(row, found[0]):
                after, sums = found
                kept = sums.rank
                if n > sums.n:
                    sums.extend(n - sums.n)
                column_auditor.resume(sums, self._sets_until(row, after) if control is not None else ())
        for each in self._log.answered(row, after):
            auditor.answer(_class(each.query_class), each.records, each.value)
        return _Audited(row, auditor, n, kept)

    def _sets_until(self, row: AuditorRow, number: int) -> Iterator[NDArray[np.int64]]:
        for each in self._log.answered(row):
            if each.number > number:
                return
            yield each.records

    def _keep(self, audited: _Audited, number: int) -> None:
        """Keeps an auditor on disk now and then; without that it is rebuilt from the log, which takes longer."""
        sums = audited.auditor.sums
        if sums is None or sums.rank < max(KEPT_RANK, audited.kept + KEEP_EVERY):
            return
        try:
            self._kept.write(audited.row, number, sums)
            audited.kept = sums.rank
        except ComineError as error:
            self._lines.warning("auditor not kept", dataset=self.name, error=error)


def _class(text: str) -> QueryClass:
    return next(each for each in CLASS_OF.values() if each == text)
