"""What readers are given: in pieces, by kinds, and for searches that are under way."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp.heavy_hitters.bit_strings import Integers, Texts
from party.services.frequency.estimates import PIECE_VALUES, Answer, beginning
from protos.v1 import frequency_pb2 as pb
from tests.errors import fails
from tests.party.nodes import refused
from tests.party.services.frequency.nodes import batch, running
from tests.party.services.frequency.specs import spec_of

pytestmark = pytest.mark.turn(5)


@pytest.mark.parametrize("size", [0, 1, PIECE_VALUES, PIECE_VALUES + 1, 3 * PIECE_VALUES])
@pytest.mark.parametrize("largest", [False, True])
def test_pieces_put_together_are_the_answer(size: int, largest: bool) -> None:
    counts, variances = np.arange(size) * 0.5, np.arange(size) + 1.0
    whole = Answer("counts", np.arange(size)[::-1] if largest else None, counts, variances)
    pieces = list(whole.pieces())
    assert len(pieces) == max(1, -(-size // PIECE_VALUES))
    np.testing.assert_array_equal(np.concatenate([piece.counts for piece in pieces]), counts)
    np.testing.assert_array_equal(np.concatenate([piece.variances for piece in pieces]), variances)
    if largest:
        np.testing.assert_array_equal(np.concatenate([piece.codes for piece in pieces]), whole.codes)


def test_large_domains_come_in_several_messages(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            analyst = world.analyst
            created = await analyst.create(spec_of(size=150_000, mechanism="hr"))
            await world.caller("phone").submit(batch(created, [149_999]))
            found = await analyst.estimate()
            assert found.last == [False, False, True]
            assert (len(found.counts), len(found.variances), found.head.values) == (150_000, 150_000, 150_000)
            best = await analyst.estimate(most=70_000)
            assert found.counts[best.codes].tolist() == best.counts.tolist()
            assert len(best.last) == 2

    asyncio.run(test())


ROOT = Path(__file__).resolve().parents[4]

NODE_WITHOUT_SCIPY = """
import asyncio, sys
from pathlib import Path
from tests.party.services.frequency.nodes import batch, running
from tests.party.services.frequency.specs import spec_of

async def run():
    async with running(Path(sys.argv[1])) as world:
        analyst = world.analyst
        created = await analyst.create(spec_of(window={"length": "1h"}, continual={"method": "lpa", "w": 4}))
        other = await analyst.create(spec_of(name="other", mechanism="olh"))
        await world.caller("phone").submit(batch(created, [1]), batch(other, [1]))
        await analyst.estimate("other")
        print("before", "scipy" in sys.modules)
        await analyst.estimate("other", post_processing="norm-sub")

asyncio.run(run())
"""


def test_a_node_loads_scipy_for_what_needs_it_only(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", NODE_WITHOUT_SCIPY, str(tmp_path)], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert ran.stdout.split() == ["before", "False"]


@given(text=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=4))
def test_a_beginning_of_a_text_shows_its_characters(text: str) -> None:
    strings = Texts(16)
    number = int.from_bytes(text.encode().ljust(16, b"\0"), "big")
    size = len(text.encode())
    assert beginning(strings, number >> 8 * (16 - size), 8 * size) == f"{text}…"
    assert beginning(strings, number, 128) == text
    bits = beginning(strings, number >> 8 * (16 - size) - 3, 8 * size + 3)
    assert bits == f"{text}+000…"


def test_a_beginning_of_a_number_shows_its_bits() -> None:
    assert beginning(Integers(16), 0b00101, 5) == "00101…"


def test_a_watch_that_sleeps_long_ends_with_its_collection(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            analyst = world.analyst
            created = await analyst.create(spec_of())
            await world.caller("phone").submit(batch(created, [1]))
            request = pb.WatchFrequencyRequest(what=pb.FrequencyRequest(collection="homepages"), every=1e9)
            parts = aiter(analyst.stub.Watch(request))
            assert not (await anext(parts)).head.final
            await analyst.close()
            rest = [part.head.final async for part in parts]
            assert rest == [True]
            again = [part.head.final async for part in analyst.stub.Watch(request)]
            assert again == [True]

    asyncio.run(test())


def test_what_cannot_be_decoded_is_refused(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            analyst, phone = world.analyst, world.caller("phone")
            spec = spec_of(mechanism="rappor", epsilon="2.0", parameters={"bits": 16, "cohorts": 60_000})
            await phone.submit(batch(await analyst.create(spec), ["a"]))
            candidates = b"".join(b"%d\n" % each for each in range(200))
            refusal = await refused(analyst.estimate(candidates=candidates))
            assert "too many to decode" in refusal.sentence

    asyncio.run(test())


def test_a_search_with_too_many_candidates_is_refused() -> None:
    section: dict[str, Any] = {"mechanism": "prefix-extending", "integer_bits": 32, "k": 2, "window": {"length": "1h"}}
    with fails("E100"):
        spec_of(**section, parameters={"groups": 2, "keep": 128})
