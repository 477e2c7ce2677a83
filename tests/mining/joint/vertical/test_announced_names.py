"""Lists of names: what a peer announces takes no memory before it comes."""

from __future__ import annotations

import numpy as np
import pytest

from link.disclosure import Declared
from link.session import Session
from mining.joint.vertical.names import open_names, receive_names
from mining.limits import MAX_ITEM_BYTES
from tests.crypto.protocols.replicated.swelling import peak_bytes
from tests.errors import fails
from tests.mining.joint.vertical import test_verified_columns
from tests.world import run_parties

PARTIES = ("north", "south")
DECLARED = [Declared("items", frozenset(PARTIES), "", 1 << 30, "")]
WIDEST = 4 + MAX_ITEM_BYTES


@pytest.mark.parametrize("number", [1 << 24, (1 << 32) - 1])
@pytest.mark.parametrize("width", [5, WIDEST])
def test_names_that_do_not_come_take_no_memory(number: int, width: int) -> None:
    async def north(session: Session) -> None:
        await session.open("items", np.array([[number, width]], np.uint32))
        await session.open("items", np.zeros((1, width), np.uint8), number=number)

    async def south(session: Session) -> None:
        await receive_names(session, "items", "north")

    with peak_bytes() as peak, fails("E402", party="north"):
        run_parties(
            PARTIES, {"north": north, "south": south}, declared=[Declared("items", frozenset(PARTIES), "", 1 << 34, "")]
        )
    assert peak[0] < 1 << 22


def test_lists_longer_than_the_caller_takes_are_not_read() -> None:
    """Nobody is blamed: whoever has more candidates than the job allows announces as many."""

    async def role(session: Session) -> None:
        def check(number: int) -> None:
            if number > 2:
                raise OverflowError

        await open_names(session, "items", ["a", "b", "c"] if session.me == "north" else [], check)

    with pytest.raises(OverflowError):
        run_parties(PARTIES, role, declared=DECLARED)


def test_a_job_ends_where_a_party_announces_more_items_than_it_allows() -> None:
    job = test_verified_columns.attacked(3)
    most = job.task.max_candidates

    def announced(message: object) -> None:
        if len(message.values) == 8:  # type: ignore[attr-defined]
            message.values = np.array([[most + 1, WIDEST]], np.uint32).tobytes()  # type: ignore[attr-defined]

    alter = test_verified_columns.altered(test_verified_columns.Opening, "/task/items", announced)
    assert most < 1 << 24
    with peak_bytes() as peak:
        ends = job.by(["south"], alter, 1)
    assert {error.code for error in ends.errors.values()} == {"E100"}
    assert not ends.results
    assert peak[0] < 1 << 26
