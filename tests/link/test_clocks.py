"""Whose clock is wrong is told by the clocks that agree, and by nobody where too few do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from link.clocks import TOLERANCE_S, check_clocks
from link.errors import ConfigurationError

HERE = "the coordinator"


def blamed(here: float = 0.0, **clocks: float) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        check_clocks({name: clock - here for name, clock in clocks.items()}, HERE)
    return caught.value


@pytest.mark.parametrize(
    ("off", "words"),
    [(3600.0, "60 minutes ahead of"), (-7200, "2 hours behind"), (-341, "6 minutes behind"), (9e8, "10417 days ahead")],
)
def test_the_one_whose_clock_is_wrong_is_named(off: float, words: str) -> None:
    error = blamed(south=off, north=30, east=-40)
    assert error.party == "south"
    assert error.message.startswith(f"the clock of south is {words} ")
    assert "those of east, north and the coordinator" in error.message
    assert blamed(south=off, north=0).party == "south"
    own = blamed(here=off, north=0, south=0)
    assert own.party is None
    assert own.message.startswith("the clock of the coordinator is ")


@pytest.mark.parametrize("clocks", [{"south": 3600.0}, {"south": 3600, "north": -3600}, {"a": 0, "b": 999, "c": 999}])
def test_where_it_cannot_be_told_both_ends_are(clocks: dict[str, float]) -> None:
    error = blamed(**clocks)
    assert error.party is None
    assert "which of them is wrong is not known" in error.message


def test_clocks_near_one_of_them_are_good_enough() -> None:
    check_clocks({"north": TOLERANCE_S, "south": -TOLERANCE_S}, HERE)
    check_clocks({}, HERE)


@given(
    st.integers(0, 4),
    st.lists(st.floats(-TOLERANCE_S / 2, TOLERANCE_S / 2), min_size=5, max_size=5),
    st.floats(3 * TOLERANCE_S, 1e9),
    st.booleans(),
)
def test_one_wrong_among_many_is_always_found(who: int, clocks: list[float], off: float, ahead: bool) -> None:
    clocks[who] += off if ahead else -off
    names = [HERE, "a", "b", "c", "d"]
    error = blamed(here=clocks[0], **dict(zip(names[1:], clocks[1:], strict=True)))
    assert error.party == (None if who == 0 else names[who])
    assert error.message.startswith(f"the clock of {names[who]} is ")
