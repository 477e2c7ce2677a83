"""Of several reports of one failure, the one that began it."""

from __future__ import annotations

from itertools import permutations

import pytest

from coordinator.jobs.failures import Failure, root_cause
from link.errors import ComineError, DeadlineExceeded, InputDataError, JobCancelled, PeerError, ProtocolViolation

PARTIES = ("north", "south", "east", "west")
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
        assert told(root_cause(order, PARTIES)) == told(reports[0].error)


def test_of_parties_that_all_wait_for_another_nobody_is_named_alone() -> None:
    """South gets nothing more of east, whom nobody else waits for: most wait for south, which keeps nothing back."""
    waits = {"north": "south", "south": "east", "east": "south"}
    reports = [Failure(who, DeadlineExceeded(f"waited for {whom}", party=whom)) for who, whom in waits.items()]
    for order in permutations(reports):
        error = root_cause(order, PARTIES)
        assert isinstance(error, DeadlineExceeded)
        assert error.party is None
        assert "east for south, north for south, south for east" in error.message


def accused(reporter: str, party: str) -> Failure:
    return Failure(
        reporter, ProtocolViolation(f"{party} has sent another share; its node must be checked", party=party)
    )


def passed_on(reporter: str, party: str) -> Failure:
    return Failure(reporter, ProtocolViolation(f"east says: {party} has sent another share; its node must be checked"))


def test_of_accuser_and_accused_neither_is_named_alone() -> None:
    """Whether north lies or east: what the coordinator is told is the same."""
    for order in permutations([accused("east", "north"), passed_on("north", "north"), passed_on("south", "north")]):
        error = root_cause(order, PARTIES[:3])
        assert told(error) == (ProtocolViolation, None)
        assert str(error) == (
            "east or north deviates, so compare the logs of both, and what evidence they keep: "
            "east says: north has sent another share; its node must be checked"
        )


def test_who_is_at_odds_with_all_others_is_named_alone() -> None:
    """Two of three do not lie, nor do two of four: each of the others accuses it, or is accused by it."""
    for more in (accused("south", "north"), accused("north", "south")):
        for order in permutations([accused("east", "north"), more, passed_on("south", "north")]):
            assert told(root_cause(order, PARTIES[:3])) == (ProtocolViolation, "north")
            assert told(root_cause(order, PARTIES)) == (ProtocolViolation, None)  # the two may lie together


def test_of_two_parties_or_where_all_accuse_each_other_nobody_is_named_alone() -> None:
    ring = [accused("east", "north"), accused("north", "south"), accused("south", "east")]
    for reports, parties in (([accused("east", "north")], ("east", "north")), (ring, PARTIES[:3])):
        error = root_cause(reports, parties)
        assert told(error) == (ProtocolViolation, None)
        assert "east or north deviates" in str(error)


def test_what_only_a_party_itself_can_know_is_not_taken_from_others() -> None:
    """A liar reports that north's data are wrong; north has something else to say."""
    reports = [Failure("east", InputDataError("north cannot take part", party="north")), passed_on("north", "south")]
    error = root_cause(reports, PARTIES)
    assert (told(error), str(error)) == ((InputDataError, None), "east says: north cannot take part")
    assert told(root_cause(reports[:1], PARTIES)) == (InputDataError, "north")


def test_nothing_has_no_cause() -> None:
    with pytest.raises(ValueError, match="nothing"):
        root_cause([], PARTIES)
    assert issubclass(PeerError, ComineError)
