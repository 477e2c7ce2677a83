from __future__ import annotations

import asyncio

import pytest

from crypto.protocols.transfers.stages import in_stages


def test_pieces_keep_their_order_in_every_stage_and_stages_overlap() -> None:
    seen: list[tuple[str, int]] = []
    under_way: set[int] = set()
    most = 0

    async def first(piece: int) -> None:
        nonlocal most
        under_way.add(piece)
        most = max(most, len(under_way))
        await asyncio.sleep(0.002 * (piece % 3))
        seen.append(("first", piece))

    async def second(piece: int) -> None:
        await asyncio.sleep(0.003 * (1 - piece % 2))
        seen.append(("second", piece))
        under_way.remove(piece)

    asyncio.run(in_stages(range(20), [first, second], 3))
    for stage in ("first", "second"):
        assert [piece for name, piece in seen if name == stage] == list(range(20))
    assert 1 < most <= 3
    assert seen.index(("first", 1)) < seen.index(("second", 19))


def test_an_error_ends_all() -> None:
    async def stage(piece: int) -> None:
        if piece == 2:
            raise ValueError("no")
        await asyncio.sleep(0 if piece < 2 else 60)

    with pytest.raises(ValueError, match="no"):
        asyncio.run(in_stages(range(9), [stage], 4))


def test_no_pieces_are_done_at_once() -> None:
    asyncio.run(in_stages([], [], 4))
