"""What a watcher sees of estimates: bars within their width, and lines without what moves a cursor."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coordinator.frequency.watch import Change, as_data, bar, line, table, title
from jobs.collections.estimates import Row
from protos.v1.frequency_pb2 import Counters
from tests.coordinator.test_frequency_estimates import head, part, whole

FIGURES = st.floats(-1e9, 1e9)


@given(st.tuples(FIGURES, FIGURES, FIGURES), st.floats(0, 1e9))
def test_a_bar_fits_and_its_parts_follow_each_other(figures: tuple[float, float, float], most: float) -> None:
    low, middle, high = sorted(figures)
    drawn = bar(Row("a", middle, 1.0, low, high), most)
    assert len(drawn) <= 24
    assert drawn == "".join(sorted(drawn, key="█▓░".index))


def test_a_bar_is_as_long_as_its_share() -> None:
    assert bar(Row("a", 50, 1, 25, 100), 100) == "█" * 6 + "▓" * 6 + "░" * 12
    assert bar(Row("a", 50, 1, 25, 100), 0) == ""


def test_a_change_is_told_in_a_line_a_table_and_json() -> None:
    start = head(2, reports=1000)
    start.counters.CopyFrom(Counters(counted=1000, late=3, malformed=4))
    start.at = 3600.0
    estimates = whole(part([700.0, 300.0], head=start))
    change = Change(estimates, [Row("a\x1b[2J", 700, 1, 698, 702), Row("b", 300, 1, 298, 302)])
    assert title(estimates) == "pages, round 0, at 01:00:00 UTC: 1,000 reports, 7 refused"
    assert line(change) == f"{title(estimates)}; a⟨U+001B⟩[2J 700, b 300"
    heads, cells = table(change.rows, estimates)
    assert heads == ["value", "estimate", "interval", ""]
    assert cells[1][:3] == ["b", "300", "298 to 302"]
    contents = as_data(change)
    assert contents["counters"]["late"] == 3
    assert contents["estimates"][1] == {"value": "b", "estimate": 300, "variance": 1, "low": 298, "high": 302}


def test_a_change_without_values_is_a_title() -> None:
    start = head(0)
    estimates = whole(part([], head=start))
    assert line(Change(estimates, [])) == title(estimates)
