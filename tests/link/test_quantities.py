from __future__ import annotations

import pytest

from link.files.quantities import duration, quantity, seconds, size


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0s", 0), ("90s", 90), ("30m", 1800), ("2h", 7200), ("7d", 604_800), ("99999999s", 99_999_999)],
)
def test_durations(text: str, expected: int) -> None:
    assert seconds(text) == expected
    assert seconds(duration(expected)) == expected


@pytest.mark.parametrize(("number", "text"), [(1, "1s"), (90, "90s"), (5400, "90m"), (604_800, "7d"), (90_000, "25h")])
def test_the_shortest_way_to_write_a_duration(number: int, text: str) -> None:
    assert duration(number) == text


@pytest.mark.parametrize("text", ["", "s", "7", "07s", "-1s", "1.5h", "1 h", "1w", "1s\n", "٣s", "999999999s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="must be a duration"):
        seconds(text)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (1234, "1.23 kB"),
        (12_345, "12.3 kB"),
        (123_456, "123 kB"),
        (999_499, "999 kB"),
        (999_500, "1 MB"),
        (5.25e9, "5.25 GB"),
        (1.2e16, "12,000 TB"),
    ],
)
def test_bytes_for_people(number: float, expected: str) -> None:
    assert size(number) == expected


@pytest.mark.parametrize(("number", "text"), [(0, "0 rules"), (1, "1 rule"), (2, "2 rules"), (1200, "1,200 rules")])
def test_numbers_of_things(number: int, text: str) -> None:
    assert quantity(number, "rule") == text
