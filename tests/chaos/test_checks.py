"""What the simulation takes for serious in the logs of nodes."""

from __future__ import annotations

import pytest

from tests.chaos.checks import foreseen


@pytest.mark.parametrize(
    ("event", "code", "full", "expected"),
    [
        ("upkeep failed", "E103", True, True),
        ("upkeep failed", "E103", False, False),
        ("upkeep failed", "E101", True, False),
        ("upkeep failed", None, True, False),
        ("call failed", "E103", True, False),
        ("job failed", "E200", False, True),
    ],
)
def test_upkeep_may_fail_for_a_full_disk_and_nothing_else(
    event: str, code: str | None, full: bool, expected: bool
) -> None:
    line = {"event": event} if code is None else {"event": event, "code": code}
    assert foreseen(line, full=full) == expected
