"""Joint anonymisation finds what is found for the pooled rows, and opens no more than its statement says."""

from __future__ import annotations

import dataclasses
from collections import Counter as Multiset
from collections import defaultdict
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from anonymize.fulldomain.optimal import optimal
from anonymize.fulldomain.samarati import samarati
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import (
    AlphaK,
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    Model,
    PSensitive,
    RecursiveDiversity,
    Requirements,
    SensitiveLevels,
    TCloseness,
)
from crypto.primitives.shares.xor import words_of
from crypto.protocols.union.size_classes import SizeClasses
from link.disclosure import Declared
from link.errors import MalformedMessage, ProtocolViolation
from mining.joint.anonymisation import assembly
from mining.joint.anonymisation.conditions.models import offered
from mining.joint.anonymisation.disclosure import openings
from mining.joint.anonymisation.parameters import Carried, JointAnonymisation, QuasiIdentifier
from mining.joint.hybrid import shuffle
from protos.v1.link_pb2 import Frame, Opening
from tests.errors import fails
from tests.examples import examples
from tests.mining.joint.anonymisation.anonymisation_world import (
    ILLS,
    PARTIES,
    Cells,
    divided,
    exhaustive,
    hierarchies,
    joint,
    people,
    task,
    whole,
)
from tests.mining.joint.models.models_world import shapes

pytestmark = pytest.mark.turn(8)

Split = tuple[Cells, NDArray[np.int64], tuple[str, ...]]
SHARES = st.sampled_from(("0", "0.05", "0.2", "1"))

MODELS: dict[str, Model] = {
    "distinct l": DistinctDiversity(3, "ill"),
    "p": PSensitive(2, ("ill",)),
    "alpha": AlphaK(Decimal("0.45"), "ill"),
    "alpha of listed values": AlphaK(Decimal("0.4"), "ill", ("flu", "cold")),
    "recursive": RecursiveDiversity(Decimal("1.5"), 2, "ill"),
    "t equal": TCloseness(Decimal("0.25"), "ill"),
    "t ordered": TCloseness(Decimal("0.2"), "ill", "ordered"),
    "H": SensitiveLevels(2, (("flu", "cold"), ("ulcer", "")), "ill"),
}


def released(wanted: JointAnonymisation, rows: assembly.Assembled) -> Multiset[Any]:
    """The released rows: class, then the columns that stay as they are."""
    carried = [rows.carried[each.name] for each in wanted.carried]
    return Multiset(zip(rows.cells.tolist(), *carried, strict=True))


def expected_rows(cells: Cells, owners: NDArray[np.int64], wanted: JointAnonymisation, node: tuple[int, ...]) -> Any:
    """The rows of the pooled table in good classes of a node."""
    trees, keys = hierarchies(), np.zeros(len(owners), np.int64)
    table = whole(cells)
    for column, level in zip(table.quasi_identifiers, node, strict=True):
        tree = trees[column.name]
        keys = keys * len(tree.labels[level]) + tree.maps[level][tree.align(column)[column.codes]]
    parts = np.zeros((int(keys.max()) + 1, len(PARTIES)), np.int64)
    np.add.at(parts, (keys, owners), 1)
    rest = parts.sum(axis=1, keepdims=True) - parts
    good = (parts.sum(axis=1) >= wanted.k) & ((rest == 0) | (rest >= wanted.insider_k)).all(axis=1)
    kept = np.flatnonzero(good[keys])
    return Multiset((int(keys[row]), cells["ill"][row], cells["note"][row]) for row in kept)


# -- equal to the pooled release --------------------------------------------------------------------------------------
@given(divided(), SHARES, st.integers(2, 5))
@examples(1, 5)
def test_the_optimal_node_is_that_of_the_pooled_rows(split: Split, share: str, k: int) -> None:
    cells, owners, parties = split
    wanted = task(parties, k=k, max_suppression=Decimal(share))
    if len(owners) < k:
        with fails("E100"):
            joint(cells, owners, parties, wanted)
        return
    outcome = joint(cells, owners, parties, wanted)
    pooled = optimal(whole(cells), hierarchies(), wanted.requirements, max_suppression=share)
    assert pooled.node is not None
    for found in outcome.values():
        assert found.node == tuple(pooled.node.values())
        assert found.n_rows == len(owners)
        assert found.rows is not None
        assert released(wanted, found.rows) == expected_rows(cells, owners, wanted, found.node)
        assert len(found.rows.cells) == pooled.table.num_rows


@given(divided(), SHARES)
@examples(1, 5)
def test_samarati_finds_the_node_of_the_pooled_rows(split: Split, share: str) -> None:
    cells, owners, parties = split
    wanted = task(parties, k=3, max_suppression=Decimal(share), algorithm="samarati")
    found = joint(cells, owners, parties, wanted)[parties[0]]
    pooled = samarati(whole(cells), hierarchies(), wanted.requirements, max_suppression=share)
    assert pooled.node is not None
    assert found.node == tuple(pooled.node.values())


def check_least_loss(split: Split, wanted: JointAnonymisation) -> None:
    """The node is that of least loss of all that satisfy, looked at one by one; where there is none, that is said."""
    cells, owners, parties = split
    losses = exhaustive(cells, owners, wanted)
    if not losses or len(owners) < wanted.k:
        with fails("E100"):
            joint(cells, owners, parties, wanted)
        return
    found = joint(cells, owners, parties, wanted)[parties[-1]]
    assert found.node == min(losses, key=lambda node: (losses[node], node))
    assert found.rows is not None


@given(divided(10), SHARES, st.integers(2, 4), st.none() | st.integers(2, 3))
@examples(1, 4)
def test_rules_on_the_parties_parts_of_a_class(split: Split, share: str, insider_k: int, k_site: int | None) -> None:
    changes: dict[str, Any] = {"insider_k": insider_k, "k_site": k_site, "max_suppression": Decimal(share)}
    check_least_loss(split, task(split[2], k=3, **changes))


@pytest.mark.parametrize("name", ["p", "recursive", "t ordered"])
@given(divided(12), SHARES)
@examples(1, 2)
def test_models_of_sensitive_values(name: str, split: Split, share: str) -> None:
    _, _, parties = split
    carried = (
        Carried("ill", "sensitive", "tree", tuple(sorted(ILLS)), 5),
        Carried("note", "insensitive", "tree", None, 6),
    )
    if name == "t ordered":
        ordinal = Carried("ill", "sensitive", "ordinal", tuple(sorted(ILLS)), 5)
        check_ordered(split, task(parties, k=3, max_suppression=Decimal(share), carried=(ordinal, carried[1])))
        return
    check_least_loss(split, task(parties, k=3, models=[MODELS[name]], max_suppression=Decimal(share), carried=carried))


def check_ordered(split: Split, wanted: JointAnonymisation) -> None:
    """The ordered distance needs an order: that of the text."""
    cells, owners, parties = split
    order = sorted(set(cells["ill"]))
    numbered = {**cells, "ill": [str(order.index(each)) for each in cells["ill"]]}
    numbers = Carried("ill", "sensitive", "ordinal", tuple(map(str, range(len(order)))), 5)
    changed = dataclasses.replace(
        wanted,
        carried=(numbers, wanted.carried[1]),
        requirements=Requirements((KAnonymity(3), MODELS["t ordered"])),
    )
    kinds = {"ill": tuple(map(str, range(len(order))))}
    losses = exhaustive(numbered, owners, changed, orders=kinds)
    if not losses:
        with fails("E100"):
            joint(numbered, owners, parties, changed)
        return
    found = joint(numbered, owners, parties, changed)[parties[0]]
    assert found.node == min(losses, key=lambda node: (losses[node], node))


@pytest.mark.parametrize(
    "model",
    [
        EntropyDiversity(2, "ill"),
        TCloseness(0.2, "ill", "kl"),
    ],
    ids=str,
)
def test_models_that_need_more_than_sums_are_refused_with_the_reason(model: Model) -> None:
    with fails("E100"):
        offered(Requirements((KAnonymity(2), model)))


def test_parties_with_no_row_one_row_and_all_rows() -> None:
    cells, parties = people(30, 9), PARTIES[:3]
    owners = np.full(30, 2)
    owners[11] = 1
    wanted = task(parties, k=3, max_suppression=Decimal("0.1"))
    found = joint(cells, owners, parties, wanted)["north"]
    pooled = optimal(whole(cells), hierarchies(), wanted.requirements, max_suppression="0.1")
    assert pooled.node is not None
    assert found.node == tuple(pooled.node.values())


def test_eight_patients_as_worked_by_hand() -> None:
    """Node (2, 3) is the only minimal one; with one row less (2, 2) would do, but leave a partner one single row."""
    ages = [(str(a), f"{a // 10}0s", "20-39" if a < 40 else "40-59", "*") for a in range(20, 60)]
    zips = ("114235", "114751", "115032", "124151", "115012", "115451", "115313", "113726")
    patients = {
        "age": ["21", "26", "25", "48", "32", "45", "35", "50"],
        "zip": list(zips),
        "disease": ["HIV", "HIV", "Flu", "Diabetes", "Cancer", "Fever", "Hepatitis", "Flu"],
    }
    quasi = (
        QuasiIdentifier("age", "numeric", Hierarchy.of("age", ages)),
        QuasiIdentifier("zip", "code", Hierarchy.of("zip", [(z, z[:3], z[:2], "*") for z in zips])),
    )
    owners, parties = np.array([0, 1, 2, 0, 1, 2, 0, 1]), PARTIES[:3]
    for algorithm, share, insider_k, nodes in (
        ("optimal", "0", 1, {(2, 3)}),
        ("samarati", "0", 2, {(2, 3)}),
        ("samarati", "0.125", 1, {(1, 3), (2, 2)}),
        ("optimal", "0.125", 2, {(2, 3)}),
    ):
        wanted = task(
            parties,
            k=2,
            quasi_identifiers=quasi,
            carried=(Carried("disease", "sensitive", "tree", None, 9),),
            algorithm=algorithm,
            max_suppression=Decimal(share),
            insider_k=insider_k,
        )
        assert joint(patients, owners, parties, wanted)["east"].node in nodes


def test_only_learners_get_the_rows_and_whose_they_are_is_shown_where_that_was_asked_for() -> None:
    cells, parties = people(40, 6), PARTIES[:4]
    owners = np.arange(40) % 4
    wanted = task(parties, k=3, learners=("east",), origin="shown", k_site=2, max_suppression=Decimal("0.3"))
    outcome = joint(cells, owners, parties, wanted)
    assert [party for party, found in outcome.items() if found.rows is not None] == ["east"]
    rows = outcome["east"].rows
    assert rows is not None
    assert rows.sites is not None
    parts = Multiset(zip(rows.cells.tolist(), rows.sites.tolist(), strict=True))
    assert min(parts.values()) >= 2
    notes = {note: place for note, place in zip(cells["note"], owners.tolist(), strict=True) if note}
    twice = {note for note, times in Multiset(cells["note"]).items() if times > 1}
    for note, site in zip(rows.carried["note"], rows.sites.tolist(), strict=True):
        if note and note not in twice:
            assert notes[note] == site


# -- what is opened ---------------------------------------------------------------------------------------------------
def opened(frames: Iterable[Frame], receiver: str) -> dict[str, list[tuple[str, str, int, bytes]]]:
    """By label what a party gets: lane, sender, number and bytes."""
    found: dict[str, list[tuple[str, str, int, bytes]]] = defaultdict(list)
    for frame in frames:
        if frame.receiver == receiver and frame.type == Opening.DESCRIPTOR.full_name:
            message = Opening.FromString(frame.body)
            found[message.label].append((frame.lane, frame.sender, message.number, message.values))
    return found


def bits(found: dict[str, list[tuple[str, str, int, bytes]]], label: str) -> dict[str, list[int]]:
    """By lane the bits that were opened under a label, at a party that holds no share."""
    lanes: dict[str, list[tuple[int, NDArray[np.uint8]]]] = defaultdict(list)
    for lane, _, number, values in found[label]:
        lanes[lane].append((number, np.frombuffer(values, np.uint8)))
    return {
        lane: words_of(np.bitwise_xor.reduce([part for _, part in parts])[None, :], parts[0][0], np.uint8).tolist()
        for lane, parts in lanes.items()
    }


def check_declared(frames: Iterable[Frame], declared: Iterable[Declared]) -> set[str]:
    """Nothing is opened that the statement does not say; the labels that were."""
    by_label, sent = {line.label: line for line in declared}, defaultdict[tuple[str, str, str], int](int)
    for frame in frames:
        if frame.type == Opening.DESCRIPTOR.full_name:
            message = Opening.FromString(frame.body)
            assert frame.receiver in by_label[message.label].recipients
            sent[frame.sender, frame.receiver, message.label] += message.number if frame.last else 0
    for (_, _, label), number in sent.items():
        assert number <= by_label[label].maximum
    return {label for _, _, label in sent}


def test_the_same_bits_are_opened_in_messages_of_the_same_sizes_whoever_has_the_rows() -> None:
    """Whoever of three parties with equal numbers of rows has which, a party that holds no share sees the same."""
    cells, parties = people(36, 8), PARTIES[:3]
    wanted = task(parties, k=3, insider_k=1, max_suppression=Decimal("0.1"), learners=("north",))
    views = []
    for seed in (0, 1):
        frames: list[Frame] = []
        owners = np.random.default_rng(seed).permutation(np.arange(36) % 3)
        joint(cells, owners, parties, wanted, frames=frames, seed=seed)
        labels = check_declared(frames, openings(wanted, parties))
        assert labels >= {"rows", "losses", "verdicts", "classes", "reports"}
        assert "release" not in labels  # there is one learner, who collects the rows itself
        found = opened(frames, "east")
        opened_bits = [bits(found, label) for label in ("verdicts", "improvements", "classes")]
        views.append([opened_bits, [shapes(frames, party) for party in parties]])
        assert "reports" not in found
    assert views[0] == views[1]


def test_rows_reach_the_collector_in_an_order_that_tells_nothing() -> None:
    """Rows of one party are as likely before as behind those of another: 3σ bound, 0.3 % error, the seed is fixed."""
    cells, parties = people(64, 2), PARTIES[:3]
    cells["note"] = ["e" if row % 2 else "s" for row in range(64)]
    owners = np.array([2 if row % 2 else 1 for row in range(64)])
    wanted = task(parties, k=3, learners=("north",), max_suppression=Decimal("0.2"))
    came: list[NDArray[np.uint8]] = []
    original = assembly.Form.sorted

    def watch(self: assembly.Form, rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
        came.append(rows)
        return original(self, rows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assembly.Form, "sorted", watch)
        joint(cells, owners, parties, wanted)
    notes = [bytes(row[-6:]).strip(b"\0") for row in came[0]]
    places = {side: [place for place, note in enumerate(notes) if note == side] for side in (b"e", b"s")}
    e, s = len(places[b"e"]), len(places[b"s"])
    before = sum(a < b for a in places[b"e"] for b in places[b"s"])
    deviation = (e * s * (e + s + 1) / 12) ** 0.5
    assert abs(before - e * s / 2) < 3 * deviation


# -- what is refused --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("column", "cell"),
    [("age", "44"), ("age", "young"), ("town", ""), ("ill", "measles"), ("note", "longest")],
)
def test_cells_that_the_job_has_no_place_for(column: str, cell: str) -> None:
    cells, parties = people(20, 1), PARTIES[:2]
    cells[column][3] = cell
    with fails("E101", party="south") as raised:
        joint(cells, np.arange(20) % 2, parties, task(parties))
    if cell:
        assert cell not in raised.value.message


def test_a_cell_may_be_as_long_as_the_job_says() -> None:
    cells, parties = people(20, 1), PARTIES[:2]
    cells["note"][3] = "longer"
    assert joint(cells, np.arange(20) % 2, parties, task(parties))["north"].n_rows == 20


def test_a_missing_column_is_named() -> None:
    cells, parties = people(20, 1), PARTIES[:2]
    del cells["town"]
    with fails("E101"):
        joint(cells, np.arange(20) % 2, parties, task(parties))


def test_more_rows_than_the_bound() -> None:
    cells, parties = people(130, 1), PARTIES[:2]
    with fails("E104"):
        joint(cells, np.arange(130) % 2, parties, task(parties, bound=10))
    assert joint(cells, np.arange(130) % 2, parties, task(parties, bound=65))["north"].n_rows == 130


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda rows: rows[rows[:, 2] != rows[0, 2]], ProtocolViolation),
        (lambda rows: np.concatenate([rows, rows[:1] * np.uint8(0)]), MalformedMessage),
        (lambda rows: np.concatenate([np.full((1, rows.shape[1]), 1, np.uint8), rows]), MalformedMessage),
    ],
    ids=["a class less", "a dummy", "rubbish"],
)
def test_a_collector_that_opens_other_rows_is_named(change: Callable[[Any], Any], error: type[Exception]) -> None:
    cells, parties = people(30, 3), PARTIES[:3]
    wanted = task(parties, k=3, max_suppression=Decimal("0.1"))
    original = assembly.Form.sorted
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assembly.Form, "sorted", lambda self, rows: change(original(self, rows)))
        with pytest.raises(error) as raised:
            joint(cells, np.arange(30) % 3, parties, wanted)
    assert getattr(raised.value, "party", None) == "north"


def test_more_rows_than_there_may_be_at_a_party_that_nobody_learns() -> None:
    cells, parties = people(73, 1), PARTIES[:2]
    owners = np.array([0] * 8 + [1] * 65)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assembly, "ROWS", SizeClasses(4, 64))
        with fails("E104") as raised:
            joint(cells, owners, parties, task(parties))
    assert raised.value.party is None


def test_a_row_that_cannot_be_opened_ends_the_job() -> None:
    """A row less could leave a class with k − 1: nothing is released."""
    cells, parties = people(30, 3), PARTIES[:3]
    original, spoilt = shuffle.seal, list[int]()

    def seal(rows: Any, contexts: Any) -> Any:
        sealed = original(rows, contexts)
        if not spoilt:
            spoilt.append(1)
            sealed = sealed.copy()
            sealed[0, 40] ^= 1
        return sealed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shuffle, "seal", seal)
        with fails("E400"):
            joint(cells, np.arange(30) % 3, parties, task(parties))


def test_a_release_without_rows_and_one_quasi_identifier() -> None:
    """Two rows of three values may both be left out, and then lose as much as at the top; the least node counts."""
    cells = {"age": ["1", "8"], "town": ["A", "A"], "sex": ["f", "f"], "ill": ["flu", ""], "note": ["", ""]}
    parties = PARTIES[:2]
    only = (QuasiIdentifier("age", "numeric", hierarchies()["age"]),)
    wanted = task(parties, k=2, quasi_identifiers=only, max_suppression=Decimal(1))
    found = joint(cells, np.array([0, 1]), parties, wanted)["south"]
    assert found.node == (0,)
    assert found.rows is not None
    assert not len(found.rows.cells)
