"""Estimates put together from pieces: whatever their cut; what does not fit is refused and names the node."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.collections.estimates import Asked, Estimates, Pieces, rows
from ldp.domain import Domain
from link.errors import MalformedMessage
from protos.v1.frequency_pb2 import EstimateHead, EstimatePart, Found
from tests.errors import fails


def head(values: int, kind: str = "counts", reports: int = 100) -> EstimateHead:
    return EstimateHead(collection="pages", values=values, kind=kind, reports=reports)


def part(counts: list[float], *, codes: list[int] | None = None, last: bool = True, **more: Any) -> EstimatePart:
    return EstimatePart(
        codes=np.array(codes or [], "<u4").tobytes(),
        counts=np.array(counts, "<f8").tobytes(),
        variances=np.ones(len(counts)).tobytes(),
        last=last,
        **more,
    )


def whole(*parts: EstimatePart) -> Estimates:
    pieces = Pieces("north")
    *before, last = parts
    assert [pieces.add(each) for each in before] == [None] * len(before)
    found = pieces.add(last)
    assert found is not None
    pieces.check_over()
    return found


@given(st.lists(st.integers(0, 6), min_size=1, max_size=5))
def test_pieces_of_any_size_make_the_whole(sizes: list[int]) -> None:
    ends = np.cumsum(sizes)
    counts = [float(each) for each in range(int(ends[-1]))]
    parts = [part(counts[end - size : end], last=False) for size, end in zip(sizes, ends, strict=True)]
    parts[0].head.CopyFrom(head(len(counts)))
    parts[-1].last = True
    found = whole(*parts)
    assert found.counts.tolist() == counts
    assert found.codes.tolist() == list(range(len(counts)))


def test_several_estimates_follow_each_other() -> None:
    pieces = Pieces("north")
    for count in (1.0, 2.0):
        found = pieces.add(part([count], head=head(1)))
        assert found is not None
        assert found.counts.tolist() == [count]


@pytest.mark.parametrize(
    "parts",
    [
        [part([1.0])],  # no head
        [part([1.0], head=head(2), last=False), part([1.0], head=head(2))],  # two
        [part([1.0], head=head(2))],  # too few
        [part([1.0, 2.0], head=head(1))],  # too many
        [part([math.nan], head=head(1))],
        [part([1.0, 2.0], head=head(2), codes=[1])],
        [part([1.0], head=head(1, "guess"))],
        [part([1.0, 2.0], head=head(2, "mean"))],
        [EstimatePart(head=head(1), counts=b"1234567", last=True)],
        [EstimatePart(head=head(1, "found"), found=[Found(value="a", frequency=math.inf)], last=True)],
    ],
)
def test_pieces_that_do_not_fit_are_refused(parts: list[EstimatePart]) -> None:
    with pytest.raises(MalformedMessage) as refused:
        whole(*parts)
    assert refused.value.party == "north"


def test_an_end_in_the_middle_is_refused() -> None:
    pieces = Pieces("north")
    pieces.add(part([1.0], head=head(2), last=False))
    with fails("E402"):
        pieces.check_over()


def test_rows_have_names_and_intervals_within_the_possible() -> None:
    found = whole(part([-3.0, 50.0, 99.9], head=head(3)))
    told = list(rows(found, Domain.of(["a", "b", "c"]), Asked()))
    assert [row.value for row in told] == ["a", "b", "c"]
    assert [(round(row.low, 2), round(row.high, 2)) for row in told] == [(0, 0), (48.04, 51.96), (97.94, 100)]
    wider = list(rows(found, Domain(3), Asked(joint=True)))
    assert wider[1].high - 50 == pytest.approx(2.3939797998185104)
    assert [row.value for row in wider] == ["0", "1", "2"]


def test_the_largest_come_with_their_codes() -> None:
    found = whole(part([9.0, 7.0], head=head(2), codes=[2, 0]))
    assert [row.value for row in rows(found, Domain.of(["a", "b", "c"]), Asked())] == ["c", "a"]
    with fails("E402"):
        rows(found, Domain.of(["a", "b"]), Asked())


def test_an_open_domain_has_shares_and_no_joint_intervals() -> None:
    found = whole(
        EstimatePart(head=head(1, "found"), found=[Found(value="cat", frequency=0.5, deviation=0.1)], last=True)
    )
    (row,) = rows(found, None, Asked())
    assert (row.value, row.estimate) == ("cat", 50)
    assert row.variance == pytest.approx(100)
    with fails("E100"):
        rows(found, None, Asked(joint=True))


def test_a_mean_is_not_cut_to_counts() -> None:
    (row,) = rows(whole(part([-3.0], head=head(1, "mean"))), None, Asked())
    assert (row.value, row.low < -4, row.high > -2) == ("mean", True, True)


@pytest.mark.parametrize("confidence", [0, 1, -1, math.nan])
def test_a_confidence_is_a_probability(confidence: float) -> None:
    with fails("E001"):
        Asked(confidence)
