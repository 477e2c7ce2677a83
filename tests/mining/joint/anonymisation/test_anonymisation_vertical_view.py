"""What parties see while columns are anonymised: declared bits and sums, never a count, whatever the others hold."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.protocols.comparison.two_party import pairs_of
from crypto.protocols.sums.pairwise import agree
from link.errors import ConfigurationError, MalformedMessage, ProtocolViolation
from link.session import Session
from link.steps import LABEL as AGAIN
from mining.joint.align import RowAlignment
from mining.joint.anonymisation.vertical import assembly, local_pruning
from mining.joint.anonymisation.vertical.columns import Axis
from mining.joint.anonymisation.vertical.contingency import ContingencyTables
from mining.joint.anonymisation.vertical.disclosure import openings
from protos.v1.link_pb2 import Frame
from tests.errors import fails
from tests.mining.joint.anonymisation.anonymisation_world import AGES, PARTIES, SEXES, TOWNS, Cells, people, task
from tests.mining.joint.anonymisation.vertical_anonymisation_world import COLUMNS, columns_of, joint
from tests.mining.joint.models.models_world import assert_declared, opened, run, shapes

pytestmark = pytest.mark.turn(3)

TWO = PARTIES[:2]
HOLDERS = dict(zip(COLUMNS, ("north", "south", "north", "south", "north"), strict=True))


# -- tables on shares --------------------------------------------------------------------------------------------------
@given(st.integers(0, 1 << 16), st.integers(2, 4), st.integers(1, 40), st.sampled_from([4, 30, 1 << 12]))
@settings(max_examples=6, deadline=None)
def test_tables_are_the_counts_of_the_joined_rows(seed: int, parties: int, n_rows: int, most_cells: int) -> None:
    chance, names = np.random.default_rng(seed), PARTIES[:parties]
    trees = (AGES, TOWNS, SEXES)
    holders = [names[each] for each in chance.integers(0, parties, 3)]
    leaves = [chance.integers(0, len(tree.leaves), n_rows).astype(np.int32) for tree in trees]
    asked = [tuple(int(chance.integers(0, tree.height + 1)) for tree in trees) for _ in range(4)]

    async def part(session: Session, _: None) -> list[Any]:
        secrets = await agree(session.lane("keys"))
        pairs = pairs_of(session.lane("pairs"))
        axes = tuple(
            Axis(tree, holder, own if holder == session.me else None)
            for tree, holder, own in zip(trees, holders, leaves, strict=True)
        )
        tables = ContingencyTables(session.lane("tables"), secrets, pairs, names[:2], axes, 3, n_rows, most_cells)
        found = [await tables.shares(levels) for levels in asked]
        return [None if share is None else share.values for share in found]

    shares = run(dict.fromkeys(names), part, ())
    for number, levels in enumerate(asked):
        keys = np.zeros(n_rows, np.int64)
        for tree, level, own in zip(trees, levels, leaves, strict=True):
            keys = keys * len(tree.labels[level]) + tree.maps[level][own]
        cells = int(np.prod([len(tree.labels[level]) for tree, level in zip(trees, levels, strict=True)]))
        total = sum(shares[party][number] for party in names[:2])
        np.testing.assert_array_equal(total, np.bincount(keys, minlength=cells).astype(np.uint64))
        assert all(shares[party][number] is None for party in names[2:])


# -- what is opened ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("parties", "share"), [(2, "0.15"), (3, "0")])
def test_only_what_is_declared_is_opened_and_verdicts_are_bits(parties: int, share: str) -> None:
    names, frames = PARTIES[:parties], list[Frame]()
    wanted = task(names, k=3, max_suppression=Decimal(share))
    holders = {name: names[place % parties] for place, name in enumerate(COLUMNS)}
    found = joint(people(50, 8), holders, names, wanted, frames=frames)
    frames = [frame for frame in frames if "hello" not in frame.lane]
    declared = openings(wanted, names, RowAlignment(names[0]))
    used = {label for label, _ in opened(frames)}
    assert_declared(frames, [line for line in declared if line.label in used])
    unused = {AGAIN} | (
        {"improvements", "bounds"} if share != "0" else set()
    )  # where the first node that satisfies is the best
    assert {line.label for line in declared} - used <= unused
    released = found["north"].rows
    assert released is not None
    for (label, _), messages in opened(frames).items():
        if label in ("local verdicts", "released rows"):
            assert all(set(message) <= {0, 1} for message in messages)
    if share == "0":
        return
    kept = [values for (label, _), values in opened(frames).items() if label == "released rows"]
    first, second = (np.frombuffer(b"".join(values), np.uint8) for values in kept)
    assert int((first ^ second).sum()) == len(released.cells) < 50


def towns(first: int, second: int) -> Cells:
    """People in two towns that are alike in every respect but their sizes."""
    rows = first + second
    sexes = ["f" if row % 2 else "m" for row in range(rows)]
    columns = {"age": ["0"] * rows, "town": ["A"] * first + ["B"] * second, "sex": sexes}
    return {**columns, "ill": ["flu"] * rows, "note": [""] * rows}


def test_a_party_that_gets_no_release_sees_the_same_whatever_the_counts_are() -> None:
    """The verdicts agree, so that everything south gets has the same shape, and what is opened to it is the same."""
    share = "0.2"
    wanted = task(TWO, k=3, learners=("north",), max_suppression=Decimal(share))
    holders = dict(zip(COLUMNS, ("south", "north", "south", "north", "north"), strict=True))
    views = []
    for cells in (towns(12, 8), towns(10, 10)):
        frames: list[Frame] = []
        found = joint(cells, holders, TWO, wanted, frames=frames)
        assert found["south"].rows is None
        seen = shapes(frames, "south"), opened(frames)["local verdicts", "south"], found["south"].node
        views.append((*seen, found["south"].statistics))
    assert views[0] == views[1]


def test_the_collector_gets_rows_without_their_places() -> None:
    """The shuffler opens its shares in an order of its own; two runs over the same rows open the same multiset."""
    cells, wanted = people(30, 2), task(TWO, k=3, learners=("north",))
    releases = [joint(cells, HOLDERS, TWO, wanted, seed=seed)["north"].rows for seed in (1, 2)]
    assert all(release is not None for release in releases)
    first, second = releases
    assert first is not None
    assert second is not None
    assert first.carried == second.carried
    assert first.cells.tolist() == second.cells.tolist()


# -- parties that err --------------------------------------------------------------------------------------------------
def patched(monkeypatch: pytest.MonkeyPatch, where: Any, name: str, change: Callable[..., Any]) -> None:
    original = getattr(where, name)
    monkeypatch.setattr(where, name, lambda *args: change(original, *args))


def test_local_verdicts_that_are_no_bits_are_malformed(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(original: Any, held: Any, allowed: int) -> Any:
        marks = original(held, allowed)
        return marks.astype(np.uint8) + 2 if held.own.quasi_identifiers[0].name == "town" else marks  # south's

    patched(monkeypatch, local_pruning, "_crowded", change)
    with pytest.raises(MalformedMessage) as raised:
        joint(people(30, 2), HOLDERS, TWO, task(TWO))
    assert raised.value.party == "south"


@pytest.mark.parametrize("change", [lambda rows: rows[1:], lambda rows: np.concatenate([rows, rows[:1]])])
def test_rows_that_a_collector_loses_or_adds_are_noticed(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    patched(monkeypatch, assembly.Forms, "bytes_of", lambda original, self, words: change(original(self, words)))
    with pytest.raises((MalformedMessage, ProtocolViolation)) as raised:
        joint(people(30, 2), HOLDERS, TWO, task(TWO))
    assert raised.value.party == "north"


def test_a_collector_that_opens_rubbish_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    patched(monkeypatch, assembly.Forms, "bytes_of", lambda original, self, words: original(self, words) | 0x80)
    with pytest.raises((MalformedMessage, ProtocolViolation)) as raised:
        joint(people(30, 2), HOLDERS, TWO, task(TWO))
    assert raised.value.party == "north"


# -- data that do not fit ----------------------------------------------------------------------------------------------
def test_no_common_row_and_too_few_are_refused() -> None:
    cells = people(30, 2)
    nobody = columns_of(people(0, 2), HOLDERS, TWO, strangers=0)["south"]
    apart = {**columns_of(cells, HOLDERS, TWO), "south": nobody}
    with fails("E101"):
        joint(cells, HOLDERS, TWO, task(TWO), tables=apart)
    with fails("E100"):
        joint(people(4, 2), HOLDERS, TWO, task(TWO, k=5))


def test_rules_about_parties_that_hold_rows_are_refused() -> None:
    for changes in ({"insider_k": 2}, {"k_site": 2}, {"origin": "shown"}):
        with pytest.raises(ConfigurationError):
            joint(people(20, 2), HOLDERS, TWO, task(TWO, **changes))


def test_a_party_without_columns_and_one_with_all() -> None:
    cells = people(30, 2)
    for holder, learners in (("north", ("south",)), ("south", ("south",))):
        found = joint(cells, dict.fromkeys(COLUMNS, holder), TWO, task(TWO, learners=learners))
        release = found[learners[0]].rows
        assert release is not None
        assert len(release.cells) == 30
        other = TWO[1 - TWO.index(learners[0])]
        assert found[other].rows is None


def test_what_parties_read_of_each_other_is_counted() -> None:
    """At the top of the others' columns nothing but the one label is read, of every row; by one's notes all are."""
    cells = {**people(24, 1), "note": [f"n{row}" for row in range(24)]}
    found = joint(cells, HOLDERS, TWO, task(TWO, k=3))
    statistics = found["north"].statistics
    assert statistics["rows_read_by_north"] == 24  # its notes tell all rows apart
    release = found["north"].rows
    assert release is not None
    labels = [0] * 3
    left = release.cells.copy()
    for place, (tree, level) in reversed(list(enumerate(zip((AGES, TOWNS, SEXES), found["north"].node, strict=True)))):
        left, labels[place] = np.divmod(left, len(tree.labels[level]))
    views: dict[Any, set[Any]] = {}
    keys = list(zip(labels[1].tolist(), release.carried["ill"], strict=True))
    for key, age, sex in zip(keys, labels[0].tolist(), labels[2].tolist(), strict=True):
        views.setdefault(key, set()).add((age, sex))
    assert statistics["rows_read_by_south"] == sum(len(views[key]) == 1 for key in keys)
