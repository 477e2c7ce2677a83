"""One class of queries a column: separate auditors of sums and maxima together do not protect what each of them does.

sum{0, 1} = 18 and max{0, 1} = 9 say that both values are 9. So the first class that is answered fixes the column.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol, get_args

from numpy.typing import ArrayLike

from anonymize.auditing.counts import BooleanAuditor, OverlapControl
from anonymize.auditing.decision import Decision
from anonymize.auditing.extremes import MaxAuditor
from anonymize.auditing.sums import SumAuditor
from crypto.primitives.randomness import Randomness
from link.errors import ConfigurationError

QueryClass = Literal["sum", "max", "min", "count"]
QUERY_CLASSES: tuple[str, ...] = get_args(QueryClass)


class _Auditor(Protocol):
    def decide(self, query: ArrayLike) -> Decision: ...


class ColumnAuditor:
    """Decides on all queries about one column.

    Args:
        n: How many records there are.
        classes: Which classes may be asked; the first that is answered stays the only one.
        random: Of the auditor of sums.
        control: Also refuses what it refuses, such as small sets and much overlap.
        of: Whose the records are, see `owners`.

    Attributes:
        chosen: The class that was answered; None before.

    Raises:
        ConfigurationError: There is no such class.
    """

    def __init__(
        self,
        n: int,
        classes: tuple[QueryClass, ...] = ("sum", "max", "min"),
        *,
        random: Randomness | None = None,
        control: OverlapControl | None = None,
        of: ArrayLike | None = None,
    ) -> None:
        for each in classes:
            if each not in QUERY_CLASSES:
                raise ConfigurationError(f'there is no class of queries "{each}"; there are {", ".join(QUERY_CLASSES)}')
        self.chosen: QueryClass | None = None
        self._n, self._classes, self._random, self._control, self._of = n, classes, random, control, of
        self._auditor: SumAuditor | MaxAuditor | BooleanAuditor | None = None

    def decide(self, asked: QueryClass, query: ArrayLike) -> Decision:
        """Whether a query of some class over some records may be answered; averages are sums.

        Raises:
            InputDataError: The set names no record, or one that there is not.
        """
        if asked not in self._classes or self.chosen not in (None, asked):
            return Decision("class")
        if self._control is not None and not (controlled := self._control.decide(query)).allowed:
            return controlled
        auditor: _Auditor = self._auditor or self._new(asked)
        return auditor.decide(query)

    def answer(self, asked: QueryClass, query: ArrayLike, value: float) -> None:
        """Takes in a query that is answered. It must have been allowed."""
        if self._auditor is None:
            self.chosen, self._auditor = asked, self._new(asked)
        match self._auditor:
            case SumAuditor():
                self._auditor.answer(query)
            case MaxAuditor():
                self._auditor.answer(query, value if asked == "max" else -value)
            case BooleanAuditor():
                self._auditor.answer(query, int(value))
        if self._control is not None:
            self._control.answer(query)

    def extend(self, more: int, of: ArrayLike | None = None) -> None:
        """Adds records: new ones, or the new values of old ones, which are variables of their own.

        Args:
            more: How many.
            of: Whose all are then, see `owners`.
        """
        self._n += more
        self._of = of
        for each in (self._auditor, self._control):
            if isinstance(each, MaxAuditor | OverlapControl):
                each.extend(more, of)
            elif each is not None:
                each.extend(more)

    @property
    def sums(self) -> SumAuditor | None:
        """The auditor of sums, whose state is worth keeping; None where no sum was answered."""
        return self._auditor if isinstance(self._auditor, SumAuditor) else None

    def resume(self, sums: SumAuditor, answered: Iterable[ArrayLike]) -> None:
        """Goes on with an auditor of sums that was kept.

        Args:
            sums: With all that was answered.
            answered: The same queries, for the control of their overlap.
        """
        self.chosen, self._auditor = "sum", sums
        for query in answered:
            if self._control is not None:
                self._control.answer(query)

    def _new(self, asked: QueryClass) -> SumAuditor | MaxAuditor | BooleanAuditor:
        match asked:
            case "sum":
                return SumAuditor(self._n, self._random)
            case "count":
                return BooleanAuditor(self._n)
            case _:
                return MaxAuditor(self._n, self._of)
