"""Estimates as a node's frequency service sends them: put together, checked, and read as rows with their intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jobs.report import text
from ldp.documents import mechanism_of
from ldp.domain import LARGEST_DOMAIN, Domain
from ldp.mechanism import Mechanism
from link.errors import ConfigurationError, InputDataError, MalformedMessage, UsageError
from protos.v1.frequency_pb2 import EstimateHead, EstimatePart, Found

Floats = NDArray[np.float64]

COUNTS: Final = "counts"
MEAN: Final = "mean"
FOUND: Final = "found"


class Row(NamedTuple):
    """What is shown of one value."""

    value: str
    estimate: float
    variance: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """The estimates of one round.

    Attributes:
        node: Whose they are.
        head: Of which round, over how many reports, and whether more may come.
        codes: Shape (k,): the numbers of the values, where `head.kind` is not "found".
        counts: Shape (k,): estimated numbers of clients with each; of "mean" the one mean.
        variances: Shape (k,).
        found: Texts of an open domain.
    """

    node: str
    head: EstimateHead
    codes: NDArray[np.int64]
    counts: Floats
    variances: Floats
    found: tuple[Found, ...]

    @property
    def kind(self) -> str:
        """What they are of: "counts", "mean" or "found"."""
        return self.head.kind

    @property
    def of(self) -> int:
        """How many reports counts refer to: those of the round, or of the publication that it shows again."""
        return self.head.of or self.head.reports


class Pieces:
    """Puts the pieces of estimates together as they come.

    Args:
        node: Who sends them.
    """

    def __init__(self, node: str) -> None:
        self._node = node
        self._parts: list[EstimatePart] = []
        self._values = 0

    def add(self, part: EstimatePart) -> Estimates | None:
        """The estimates, once their last piece has come.

        Raises:
            MalformedMessage: The pieces do not fit together.
        """
        if part.HasField("head") != (not self._parts):
            raise self._malformed("estimates whose first piece does not name their round, or a later one does")
        self._parts.append(part)
        self._values += max(len(part.counts) // 8, len(part.found))
        if self._values > min(self._parts[0].head.values, LARGEST_DOMAIN):
            raise self._malformed("more estimates than it had promised")
        if not part.last:
            return None
        whole, self._parts, self._values = self._whole(), [], 0
        return whole

    def check_over(self) -> None:
        """Refuses an end in the middle.

        Raises:
            MalformedMessage: Pieces are missing.
        """
        if self._parts:
            raise self._malformed("estimates of which the end is missing")

    def _whole(self) -> Estimates:
        head = self._parts[0].head
        codes = self._joined("codes", "<u4").astype(np.int64)
        counts, variances = self._joined("counts", "<f8"), self._joined("variances", "<f8")
        found = tuple(each for part in self._parts for each in part.found)
        if not len(codes):
            codes = np.arange(len(counts))
        if not len(codes) == len(counts) == len(variances) or max(len(counts), len(found)) != head.values:
            raise self._malformed("estimates whose columns differ in length")
        figures = [*(each.frequency for each in found), *(each.deviation for each in found)]
        if not (np.isfinite(counts).all() and (variances >= 0).all() and all(map(math.isfinite, figures))):
            raise self._malformed("estimates that are no numbers")
        if head.kind not in (COUNTS, MEAN, FOUND) or (head.kind == MEAN and len(counts) > 1):
            raise self._malformed("estimates of a kind that this version does not know")
        return Estimates(self._node, head, codes, counts, variances, found)

    def _joined(self, field: str, kind: str) -> NDArray[Any]:
        data = b"".join(getattr(part, field) for part in self._parts)
        if len(data) % np.dtype(kind).itemsize:
            raise self._malformed("estimates that were cut")
        return np.frombuffer(data, kind)

    def _malformed(self, what: str) -> MalformedMessage:
        return MalformedMessage(f"the node of {self._node} sent {what}", party=self._node)


@dataclass(frozen=True, slots=True)
class Asked:
    """How estimates are to be shown.

    Attributes:
        confidence: Of the intervals.
        joint: Whether the intervals of all values are to hold together with that confidence (Bonferroni).

    Raises:
        UsageError: The confidence is not strictly between 0 and 1.
    """

    confidence: float = 0.95
    joint: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise UsageError(f"--confidence lies between 0 and 1, not at {self.confidence:g}")

    def reach(self, values: int) -> float:
        """Half the width of an interval, in standard deviations, where there are so many values."""
        share = (1 - self.confidence) / (values if self.joint else 1)
        return NormalDist().inv_cdf(1 - share / 2)


def rows(estimates: Estimates, domain: Domain | None, asked: Asked) -> Iterator[Row]:
    """What is shown of each value, in the order in which it came.

    Args:
        estimates: The estimates.
        domain: All values; None where they are not known.
        asked: How they are to be shown.

    Raises:
        ConfigurationError: Intervals of an open domain are to hold together: nobody knows how many values it has.
        MalformedMessage: A value is not in the domain.
    """
    n, kind = estimates.of, estimates.kind
    if kind == FOUND:
        if asked.joint:
            raise ConfigurationError("the values of an open domain are not known, so --joint has no meaning; omit it")
        values = [each.value for each in estimates.found]
        counts = np.array([each.frequency for each in estimates.found]) * n
        deviations = np.array([each.deviation for each in estimates.found]) * n
    else:
        values = [MEAN] if kind == MEAN else _named(estimates, domain)
        counts, deviations = estimates.counts, np.sqrt(estimates.variances)
    reach = asked.reach(domain.size if kind == COUNTS and domain is not None else 1)
    low, high = intervals(counts, reach * deviations, None if kind == MEAN else n)
    columns = (counts.tolist(), np.square(deviations).tolist(), low.tolist(), high.tolist())
    return (Row(*each) for each in zip(values, *columns, strict=True))


def intervals(estimates: Floats, widths: Floats, most: int | None) -> tuple[Floats, Floats]:
    """The ends of intervals around estimates.

    Args:
        estimates: Shape (k,).
        widths: Shape (k,): half of each interval.
        most: What a count cannot exceed; None for means, which have no bounds.
    """
    low, high = estimates - widths, estimates + widths
    return (low, high) if most is None else (np.clip(low, 0, most), np.clip(high, 0, most))


def _named(estimates: Estimates, domain: Domain | None) -> list[str]:
    codes = estimates.codes.tolist()
    if codes and (domain is None or max(codes) >= domain.size):
        raise MalformedMessage(
            f"the node of {estimates.node} sent estimates of values that the domain has not", party=estimates.node
        )
    labels = None if domain is None else domain.labels
    return list(map(str, codes)) if labels is None else [labels[code] for code in codes]


def largest_first(found: Iterator[Row] | list[Row], most: int | None = None) -> list[Row]:
    """Rows by falling estimate; the first `most` of them, where given."""
    return sorted(found, key=lambda row: -row.estimate)[:most]


def mechanism_of_round(estimates: Estimates, domain: Domain | None) -> Mechanism[Any]:
    """The mechanism of the estimates' round.

    Raises:
        MalformedMessage: The node's description of it cannot be read.
    """
    try:
        return mechanism_of(estimates.head.round.mechanism, domain)
    except InputDataError as error:
        raise MalformedMessage(
            f"the node of {estimates.node} sent a mechanism that cannot be read: {error.message}", party=estimates.node
        ) from None


def parameters_of(mechanism: Mechanism[Any]) -> dict[str, str]:
    """The parameters that a mechanism has, for people; of its domain the size."""
    return {
        name: text.number(value.size) if isinstance(value, Domain) else str(value)
        for name, value in mechanism.get_params().items()
        if value is not None
    }
