"""How much of a peer's a party keeps unread, by job."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from jobs.run import run_party
from link.core import MAX_BUFFERED_BYTES
from link.errors import PeerError
from tests.unit.jobs.plans import weekly


@pytest.mark.parametrize(
    ("itemsets", "most"),
    [({}, MAX_BUFFERED_BYTES), ({"max_candidates": 1}, MAX_BUFFERED_BYTES), ({"max_candidates": 10**8}, 16 * 10**8)],
)
def test_a_vector_over_all_candidates_has_room_at_who_still_reads_others(
    monkeypatch: pytest.MonkeyPatch, itemsets: dict[str, Any], most: int
) -> None:
    async def establish(*_: object, ahead_bytes: int, **__: object) -> None:
        assert ahead_bytes == most
        raise PeerError("told enough")

    monkeypatch.setattr("jobs.run.Session.establish", establish)
    stub: Any = type("Stub", (), {"name": "north"})()

    async def test() -> None:
        await run_party(
            weekly(**itemsets),
            data=stub,
            transport=stub,
            job_id=bytes(32),
            attempt=1,
            identity=stub,
            random=stub,
            executor=stub,
            progress=cast(Any, None),
        )

    with pytest.raises(PeerError, match="told enough"):
        asyncio.run(test())
