"""Of several reports of one failure, the one that began it."""

from __future__ import annotations

from itertools import permutations

import pytest

from coordinator.jobs.failures import Failure, root_cause
from link.errors import ComineError, DeadlineExceeded, InputDataError, JobCancelled, PeerError, ProtocolViolation

ORDERS: list[list[Failure]] = [
    [
        Failure("south", InputDataError("bad file", party="south")),
        Failure("north", PeerError("south was lost", party="south")),
        Failure("east", JobCancelled("cancelled", party="north")),
        Failure("west", DeadlineExceeded("too late")),
    ],
    [
        Failure("south", ProtocolViolation("x", party="south")),
        Failure("north", ProtocolViolation("told by south", party="south")),
    ],
    [
        Failure("north", PeerError("south was lost", party="south")),
        Failure("east", JobCancelled("cancelled", party="north")),
        Failure("west", DeadlineExceeded("too late", party="west")),
    ],
    [
        Failure("east", PeerError("south was lost", party="south")),
        Failure("north", PeerError("east was lost", party="east")),
        Failure("west", JobCancelled("cancelled", party="north")),
    ],
    [
        Failure("east", PeerError("south was lost", party="south")),
        Failure("south", PeerError("north was lost", party="north")),
        Failure("north", PeerError("south was lost, too", party="south")),
    ],
    [
        Failure("east", DeadlineExceeded("waited for south", party="south")),
        Failure("north", DeadlineExceeded("waited for east", party="east")),
    ],
    [
        Failure("east", DeadlineExceeded("east was not done", party="east")),
        Failure("north", DeadlineExceeded("waited for east", party="east")),
        Failure("south", DeadlineExceeded("waited for north", party="north")),
    ],
    [Failure("north", KeyError("fault")), Failure("south", InputDataError("told", party="north"))],
]


def told(error: BaseException) -> tuple[object, object]:
    return type(error), getattr(error, "party", None)


@pytest.mark.parametrize("reports", ORDERS)
def test_the_root_comes_first_in_every_order(reports: list[Failure]) -> None:
    for order in permutations(reports):
        assert told(root_cause(order)) == told(reports[0].error)


def test_of_parties_that_all_wait_for_another_nobody_is_named_alone() -> None:
    """South gets nothing more of east, whom nobody else waits for: most wait for south, which keeps nothing back."""
    waits = {"north": "south", "south": "east", "east": "south"}
    reports = [Failure(who, DeadlineExceeded(f"waited for {whom}", party=whom)) for who, whom in waits.items()]
    for order in permutations(reports):
        error = root_cause(order)
        assert isinstance(error, DeadlineExceeded)
        assert error.party is None
        assert "east for south, north for south, south for east" in error.message


def test_nothing_has_no_cause() -> None:
    with pytest.raises(ValueError, match="nothing"):
        root_cause([])
    assert issubclass(PeerError, ComineError)
