"""Lists that exceed their room: the same messages and results as in memory, and memory that hardly grows with rows."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from crypto.primitives.buckets import Room
from crypto.primitives.groups.point_hash import points_of
from crypto.primitives.randomness import Randomness
from crypto.primitives.scratch_file import ScratchLimits
from crypto.protocols.alignment import long_lists, oprf_intersection
from crypto.protocols.alignment.alignment import cardinality, intersection, union
from crypto.protocols.alignment.costs import list_bytes
from crypto.protocols.alignment.disclosure import declared
from crypto.protocols.alignment.long_lists import in_common, in_common_order, secret_places
from crypto.protocols.comparison.two_party import pairs_of
from crypto.protocols.sums.pairwise import agree
from crypto.protocols.transfers import oprf
from link.session import Session
from protos.v1.link_pb2 import Frame
from tests.coordinator.simulation.still_time import InlineExecutor
from tests.examples import slowly
from tests.world import run_parties

pytestmark = pytest.mark.turn(6)

TWO = ("north", "south")
THREE = (*TWO, "east")
KEY = bytes(16)


@pytest.fixture
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists lie in many buckets, and points in many parts."""
    for module in (long_lists, oprf_intersection):
        monkeypatch.setattr(module, "AT_ONCE", 1 << 9)
    monkeypatch.setattr(oprf, "MOST_KEYS", 1 << 9)


class People(Sequence[bytes]):
    """Identifiers, made as they are read."""

    def __init__(self, numbers: range) -> None:
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, key: Any) -> Any:
        found = self.numbers[key]
        return People(found) if isinstance(found, range) else b"person %07d" % found


def run(
    parties: tuple[str, ...], rows: int, limits: ScratchLimits, frames: list[Frame] | None = None
) -> dict[str, NDArray[np.int64]]:
    all_held = {
        "north": range(rows),
        "south": range(rows // 3, rows + rows // 3)[::-1],
        "east": range(rows // 3 - 9, rows + rows // 3 - 9),
    }
    held = {name: all_held[name] for name in parties}

    async def role(session: Session) -> NDArray[np.int64]:
        ids = People(held[session.me])
        return await intersection(session, await agree(session), ids, merger="north", limits=limits)

    lines = declared("intersection", parties, "north", None, "intersection")
    found: dict[str, NDArray[np.int64]] = run_parties(
        parties,
        role,
        declared=lines,
        seed=3,
        observe=frames.append if frames is not None else None,
        executor=InlineExecutor(),  # so that what they hold at a time does not vary
    )
    north, *others = (np.array(held[name])[found[name]] for name in parties)
    assert all(np.array_equal(north, other) for other in others)
    assert np.array_equal(np.sort(north), np.arange(rows // 3, rows))
    return found


@pytest.mark.usefixtures("short_pieces")
@pytest.mark.parametrize("parties", [TWO, THREE])
def test_lists_on_the_disk_send_the_messages_of_those_in_memory(parties: tuple[str, ...], tmp_path: Path) -> None:
    frames: list[list[Frame]] = [[], []]
    found = [
        run(parties, 1100, ScratchLimits(memory, tmp_path), each)
        for memory, each in zip((1 << 30, 0), frames, strict=True)
    ]
    assert all(np.array_equal(found[0][name], found[1][name]) for name in parties)
    sent = [sorted((f.lane, f.sender, f.seq, f.type, f.body) for f in each) for each in frames]
    assert sent[0] == sent[1]
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("short_pieces")
@pytest.mark.parametrize("align", [cardinality, union])
def test_bins_on_the_disk_send_the_messages_of_those_in_memory(align: Any, tmp_path: Path) -> None:
    frames: list[list[Frame]] = [[], []]
    mode: Any = align.__name__

    def aligned(memory: int, seen: list[Frame]) -> dict[str, Any]:
        async def role(session: Session) -> Any:
            held = People(range(900) if session.me == "north" else range(300, 1200))
            secrets, limits = await agree(session), ScratchLimits(memory, tmp_path)
            return await align(session, secrets, pairs_of(session), held, merger="north", label=mode, limits=limits)

        lines = declared(mode, TWO, "north", None, mode)
        return run_parties(TWO, role, declared=lines, seed=3, observe=seen.append, executor=InlineExecutor())

    found = [aligned(memory, each) for memory, each in zip((1 << 30, 0), frames, strict=True)]
    assert all(np.array_equal(found[0][name], found[1][name]) for name in TWO)
    if align is cardinality:
        assert found[0] == dict.fromkeys(TWO, 600)
    sent = [sorted((f.lane, f.sender, f.seq, f.type, f.body) for f in each) for each in frames]
    assert sent[0] == sent[1]
    assert not list(tmp_path.iterdir())


@given(length=st.integers(0, 3000), pieces=st.sampled_from([256, 1 << 17]), memory=st.sampled_from([0, 1 << 30]))
def test_a_secret_order_is_the_permutation_of_the_same_words(length: int, pieces: int, memory: int) -> None:
    with pytest.MonkeyPatch.context() as patched, room(memory) as space:
        patched.setattr(long_lists, "AT_ONCE", pieces)
        places = secret_places(Randomness.from_seed(5), length, space)
        found = np.concatenate([places.read(piece) for piece in range(len(places))])
    assert np.array_equal(found, Randomness.from_seed(5).permutation(length))


def test_words_that_are_equal_are_all_drawn_anew() -> None:
    class Twice(Randomness):
        drawn = 0

        def uint64(self, size: int) -> np.ndarray:
            self.drawn += 1
            return np.zeros(size, np.uint64) if self.drawn == 1 else super().uint64(size)

    with room(0) as space:
        random = Twice(bytes(64))
        assert sorted(secret_places(random, 9, space).read(0).tolist()) == list(range(9))
        assert random.drawn == 2


@pytest.mark.usefixtures("short_pieces")
def test_the_common_order_is_that_of_points() -> None:
    identifiers = People(range(2000))
    common = np.arange(2000) % 3 > 0
    points = [tuple(point) for point in points_of(identifiers, KEY).tolist()]
    with room(0) as space:
        found = in_common_order(identifiers, common, KEY, space)
    assert found.tolist() == sorted(np.flatnonzero(common).tolist(), key=points.__getitem__)


@pytest.mark.slow
@pytest.mark.usefixtures("short_pieces")
@pytest.mark.parametrize(("parties", "most"), slowly([(TWO, 3_600), (THREE, 3_600)], now=[0]))
def test_memory_hardly_grows_with_rows_that_exceed_the_room(
    parties: tuple[str, ...], most: int, tmp_path: Path
) -> None:
    """Of all parties: what is common, what of it is opened, and the result. With room it grows by what lists take."""

    def peak(rows: int, memory: int) -> int:
        tracemalloc.start()
        try:
            run(parties, rows, ScratchLimits(memory, tmp_path))
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    run(parties, 1_200, ScratchLimits(0, tmp_path))  # what is made once, such as tables of codes
    growth = {}
    for memory in (0, 1 << 30):
        few, many = (peak(rows, memory) for rows in (1_200, most))
        growth[memory] = (many - few) / (most - 1_200)
    assert growth[0] <= len(parties) * list_bytes(1, 0)
    assert 2 * growth[0] < growth[1 << 30] <= len(parties) * list_bytes(1)


# -- what two lists of values have in common ---------------------------------------------------------------------------
@given(ours=st.lists(st.integers(0, 30), unique=True), theirs=st.lists(st.integers(0, 30)), width=st.integers(7, 11))
def test_common_values_are_found_even_where_heads_or_values_are_equal(
    ours: list[int], theirs: list[int], width: int
) -> None:
    """Three values share a head; another party's list may hold one several times."""
    one, other = (
        np.array([[*[n // 3] * min(8, width - 1), *[n] * max(1, width - 8)] for n in numbers], np.uint8).reshape(
            -1, width
        )
        for numbers in (ours, theirs)
    )
    found, found_too = in_common(one, other)
    assert found.tolist() == [n in theirs for n in ours]
    assert found_too.tolist() == [n in ours for n in theirs]


def room(memory: int) -> Room:
    return Room(ScratchLimits(memory), Randomness.from_seed(1))
