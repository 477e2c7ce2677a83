"""Joint trees equal ID3 and C4.5 over the pooled rows, written out row by row, and open what they declare."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from crypto.protocols.comparison.two_party import pairs_of
from mining.joint.models import decision_tree as joint
from mining.joint.models.decision_tree import learn_horizontal, learn_vertical, learned, openings
from mining.joint.models.totals import Learnt
from mining.models.attributes import Categorical, Discrete, LabelledRows
from mining.models.decision_tree import DecisionTree, Node, TreeParameters
from mining.reference.pooled_models import learn_tree
from protos.v1.link_pb2 import Frame
from tests.errors import fails
from tests.examples import examples
from tests.mining.joint.models.models_world import (
    PARTIES,
    aligned,
    assert_declared,
    bounds,
    opened,
    parted,
    run,
    shapes,
    taken,
)
from tests.mining.joint.models.real_tables import cut, domain, table

pytestmark = pytest.mark.turn(3)

TARGET = Categorical("class", ("yes", "no", "perhaps"))

# -- the oracle: rows are dictionaries, entropies are sums over counters -----------------------------------------------
Rows = list[tuple[int, tuple[int, ...]]]
"""The class and the codes."""


def entropy(of: Counter[int]) -> Decimal:
    total = Decimal(sum(of.values()))
    return -sum((n / total * (n / total).ln() for n in map(Decimal, of.values())), Decimal(0))


def gain_and_ratio(rows: Rows, branches: list[Rows]) -> tuple[Decimal, Decimal]:
    """To 12 digits, within which equal gains are equal."""
    before = entropy(Counter(label for label, _ in rows))
    after = sum((entropy(Counter(label for label, _ in b)) * len(b) / len(rows) for b in branches if b), Decimal(0))
    spread = entropy(Counter({place: len(b) for place, b in enumerate(branches) if b}))
    bit, place = Decimal(2).ln(), Decimal("1e-12")
    gain, spread = (((each / bit).quantize(place)) for each in (before - after, spread))
    return gain, gain / spread


def by_hand(rows: Rows, task: TreeParameters, usable: frozenset[int], depth: int, parent: int) -> Any:
    """A leaf (label, counts), or (attribute, cut, children, counts)."""
    counts = tuple(sum(label == each for label, _ in rows) for each in range(task.target.size))
    label = counts.index(max(counts)) if rows else parent
    leaf = (label, counts)
    if len({label for label, _ in rows}) < 2 or len(rows) < 2 * task.min_rows or depth == task.max_depth:
        return leaf
    best = []
    for number, attribute in enumerate(task.attributes):
        options = []
        if isinstance(attribute, Categorical):
            if number in usable:
                options.append((None, [[r for r in rows if r[1][number] == v] for v in range(attribute.size)]))
        else:
            for c in range(attribute.size - 1):
                sides = [[r for r in rows if r[1][number] <= c], [r for r in rows if r[1][number] > c]]
                options.append((c, sides))
        options = [o for o in options if sum(len(b) >= task.min_rows for b in o[1]) >= 2]
        weighed = [(*gain_and_ratio(rows, branches), c, branches) for c, branches in options]
        weighed = [w for w in weighed if w[0] > 0]
        if weighed:
            most = max(w[0] for w in weighed)
            best.append((number, *next(w for w in weighed if w[0] == most)))
    if not best:
        return leaf
    if task.criterion == "gain":
        most = max(gain for _, gain, _, _, _ in best)
        chosen = next(b for b in best if b[1] == most)
    else:
        mean = sum(gain for _, gain, _, _, _ in best) / len(best)
        worth = [b for b in best if b[1] >= mean]
        most = max(ratio for _, _, ratio, _, _ in worth)
        chosen = next(b for b in worth if b[2] == most)
    number, _, _, c, branches = chosen
    left = usable - {number}
    return number, c, [by_hand(b, task, left, depth + 1, label) for b in branches], counts


def expected_tree(rows: LabelledRows, task: TreeParameters) -> Any:
    every = [(int(label), tuple(int(cells[row]) for cells in rows.cells)) for row, label in enumerate(rows.classes)]
    with localcontext(prec=60):
        return by_hand(every, task, frozenset(range(len(task.attributes))), 0, 0)


def as_tuples(node: Node, task: TreeParameters) -> Any:
    if node.split is None:
        return node.label, node.counts
    number = node.split.attribute
    c = None if isinstance(task.attributes[number], Categorical) else node.split.cut
    return number, c, [as_tuples(child, task) for child in node.children], node.counts


# -- equality ----------------------------------------------------------------------------------------------------------
@st.composite
def tasks(draw: st.DrawFn) -> TreeParameters:
    attributes: list[Discrete] = []
    for number in range(draw(st.integers(1, 4))):
        size = draw(st.integers(1, 4))
        if draw(st.booleans()):
            attributes.append(Categorical(f"c{number}", tuple(f"v{place}" for place in range(size))))
        else:
            attributes.append(cut(f"n{number}", range(size)))
    criterion = draw(st.sampled_from(["gain", "gain-ratio"]))
    depth = draw(st.sampled_from([None, None, 0, 1, 2]))
    return TreeParameters(TARGET, tuple(attributes), criterion, draw(st.integers(1, 4)), depth)


@st.composite
def rows_of(draw: st.DrawFn, task: TreeParameters) -> LabelledRows:
    n = draw(st.integers(1, 60))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    cells = tuple(generator.integers(0, 1 if draw(st.integers(0, 5)) == 0 else a.size, n) for a in task.attributes)
    noise = generator.integers(0, 3, n)
    classes = np.where(generator.random(n) < 0.5, noise, sum(cells) % draw(st.integers(1, 3)))
    return LabelledRows(classes.astype(np.int64), cells)


@given(st.data())
@settings(max_examples=80)
def test_rows_in_one_place(data: st.DataObject) -> None:
    task = data.draw(tasks())
    rows = data.draw(rows_of(task))
    tree = learn_tree(rows, task)
    assert as_tuples(tree.root, task) == expected_tree(rows, task)
    assert tree.predict(rows.cells).tolist() == [
        walk(tree.root, cells, task) for cells in zip(*rows.cells, strict=True)
    ]
    assert len(tree.lines()) == sum(1 for _ in tree.nodes())


def walk(node: Node, cells: tuple[int, ...], task: TreeParameters) -> int:
    while node.split is not None:
        code = int(cells[node.split.attribute])
        is_categorical = isinstance(task.attributes[node.split.attribute], Categorical)
        node = node.children[code if is_categorical else int(code > node.split.cut)]
    return node.label


def check(out: dict[str, Learnt[DecisionTree]], rows: LabelledRows, task: TreeParameters) -> None:
    expected = expected_tree(rows, task)
    for found in out.values():
        assert found.n_rows == rows.n_rows
        assert as_tuples(found.model.root, task) == expected


@given(st.data())
@settings(max_examples=25)
def test_rows_at_several_parties(data: st.DataObject) -> None:
    task = data.draw(tasks())
    rows = data.draw(rows_of(task))
    cuts, parties = data.draw(bounds(rows.n_rows))
    declared = openings(task, parties, vertical=False, everywhere=True)
    check(run(parted(rows, cuts, parties), lambda s, own: learn_horizontal(s, own, task), declared), rows, task)


@given(st.data(), st.booleans())
@examples(2, 12)
def test_columns_at_several_parties(data: st.DataObject, everywhere: bool) -> None:
    task = data.draw(tasks())
    rows = data.draw(rows_of(task))
    parties = PARTIES[: data.draw(st.integers(2, 4))]
    attributes = (task.target, *task.attributes)
    holders = [data.draw(st.sampled_from(parties)) for _ in attributes]
    presence = None
    if not everywhere:
        bits = st.lists(st.sampled_from([True, True, True, False]), min_size=rows.n_rows, max_size=rows.n_rows)
        presence = {party: np.array(data.draw(bits)) for party in parties}
    common = np.ones(rows.n_rows, bool) if presence is None else np.logical_and.reduce(list(presence.values()))
    declared = openings(task, parties, vertical=True, everywhere=everywhere)
    columns = aligned(rows, attributes, holders, parties, presence)

    def go() -> dict[str, Learnt[DecisionTree]]:
        return run(columns, lambda s, own: learn_vertical(s, pairs_of(s), own, task), declared)

    if not common.any():
        with fails("E101"):
            go()
        return
    check(go(), taken(rows, common), task)


# -- disclosure, faults ------------------------------------------------------------------------------------------------
def small() -> tuple[TreeParameters, LabelledRows]:
    generator = np.random.default_rng(11)
    cells = tuple(generator.integers(0, size, 90) for size in (2, 3, 4))
    classes = (cells[0] + (cells[2] > 1) + (generator.random(90) < 0.1)) % 3
    attributes = (Categorical("c", ("a", "b")), Categorical("d", ("a", "b", "c")), cut("n", [1, 2, 3]))
    return TreeParameters(TARGET, attributes), LabelledRows(classes, cells)


@pytest.mark.parametrize("vertical", [True, False])
def test_a_view_depends_on_the_declared_output_alone(vertical: bool) -> None:
    """The others exchange rows, or all bring them into another order: what is opened adds up to the same, and the
    messages are of the same kinds and sizes; only declared labels are opened."""
    (task, rows), parties = small(), PARTIES[:3]
    views, trees = [], []
    for order in (np.arange(90), np.r_[np.arange(30), np.arange(60, 90), np.arange(30, 60)]):
        mixed, frames = taken(rows, order), list[Frame]()
        declared = openings(task, parties, vertical=vertical, everywhere=True)
        if vertical:
            data = aligned(mixed, (task.target, *task.attributes), ("north", "south", "east", "south"), parties)
            out = run(data, lambda s, own: learn_vertical(s, pairs_of(s), own, task), declared, frames=frames)
        else:
            out = run(
                parted(mixed, [30, 60], parties), lambda s, own: learn_horizontal(s, own, task), declared, frames=frames
            )
        assert_declared(frames, declared)
        trees.append(as_tuples(out["south"].model.root, task))
        views.append([shapes(frames, party) for party in parties])
    assert trees[0] == trees[1] == expected_tree(rows, task)
    assert views[0] == views[1]


def test_nodes_below_twice_min_rows_are_not_looked_at() -> None:
    """Their counts of classes follow from the histogram above; no histogram of theirs is opened."""
    (task, rows), parties = small(), PARTIES[:3]
    coarse = TreeParameters(task.target, task.attributes, min_rows=30)
    frames: list[Frame] = []
    declared = openings(coarse, parties, vertical=False, everywhere=True)
    out = run(parted(rows, [30, 60], parties), lambda s, own: learn_horizontal(s, own, coarse), declared, frames=frames)
    open_nodes = [n for _, n in out["north"].model.nodes() if sum(n.counts) >= 60 and sum(map(bool, n.counts)) > 1]
    words = len(opened(frames)["histograms", "north"])
    assert len(open_nodes) == 1
    assert words == 2  # one from each of the others, once


def test_over_real_streams_and_with_parties_without_rows() -> None:
    (task, rows), parties = small(), PARTIES[:4]
    declared = openings(task, parties, vertical=False, everywhere=True)
    data = parted(rows, [0, 90, 90], parties)
    check(run(data, lambda s, own: learn_horizontal(s, own, task), declared, transport="grpc"), rows, task)


def test_too_many_nodes() -> None:
    (task, rows), parties = small(), PARTIES[:2]
    few = TreeParameters(task.target, task.attributes, max_nodes=2)
    declared = openings(few, parties, vertical=False, everywhere=True)
    with fails("E100"):
        run(parted(rows, [40], parties), lambda s, own: learn_horizontal(s, own, few), declared)


@pytest.mark.parametrize("label", ["classes", "histograms"])
def test_totals_that_no_rows_have_are_a_violation(label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (task, rows), parties = small(), PARTIES[:2]
    honest = joint.total_counts

    async def wrong(session: Any, secrets: Any, addends: Any, n_rows: int, **options: Any) -> Any:
        if options["label"] == label and session.me == "south":
            addends = addends.copy()
            addends[0] += 1
        return await honest(session, secrets, addends, n_rows, **options)

    monkeypatch.setattr(joint, "total_counts", wrong)
    declared = openings(task, parties, vertical=False, everywhere=True)
    with fails("E400") as caught:
        run(parted(rows, [40], parties), lambda s, own: learn_horizontal(s, own, task), declared)
    assert caught.value.party in parties


def test_the_statement_tells_of_small_counts_and_of_two_parties() -> None:
    task, _ = small()
    two, three = (" ".join(line.exact for line in learned(task, PARTIES[:n], vertical=False)) for n in (2, 3))
    assert "every node of 4 rows or more" in two
    assert "as small as 1" in three
    assert "the other's rows" in two
    assert "the other's rows" not in three


# -- real tables -------------------------------------------------------------------------------------------------------
@pytest.mark.turn(3, "real tables")
@pytest.mark.data
def test_mushrooms_at_three_parties(shared_data) -> None:
    found = table(shared_data / "tables" / "mushroom_table.csv", ids=["id"])
    names = [name for name in found.column_names if name != "class"]
    task = TreeParameters(domain(found, "class"), tuple(domain(found, name) for name in names), "gain", 1)
    rows = LabelledRows.of(found, task.target, task.attributes)
    parties = PARTIES[:3]
    declared = openings(task, parties, vertical=False, everywhere=True)
    out = run(parted(rows, [2_000, 5_000], parties), lambda s, own: learn_horizontal(s, own, task), declared)
    tree = out["south"].model
    check(out, rows, task)
    assert names[tree.root.split.attribute] == "odor"
    assert (tree.predict(rows.cells) == rows.classes).all()


@pytest.mark.turn(3, "real tables")
@pytest.mark.data
@pytest.mark.slow
def test_mushrooms_with_columns_at_three_parties(shared_data) -> None:
    found = table(shared_data / "tables" / "mushroom_table.csv", ids=["id"])
    names = ["odor", "spore-print-color", "habitat", "cap-color", "gill-size"]
    task = TreeParameters(domain(found, "class"), tuple(domain(found, name) for name in names), "gain-ratio", 10)
    rows = LabelledRows.of(found, task.target, task.attributes)
    parties = PARTIES[:3]
    declared = openings(task, parties, vertical=True, everywhere=True)
    holders = ("north", "south", "east", "south", "north", "east")
    data = aligned(rows, (task.target, *task.attributes), holders, parties)
    check(run(data, lambda s, own: learn_vertical(s, pairs_of(s), own, task), declared), rows, task)


@pytest.mark.turn(3, "real tables")
@pytest.mark.data
def test_bank_customers_as_accurate_as_cart(shared_data) -> None:
    """scikit-learn's CART splits otherwise, so the trees differ; they are about equally right."""
    found = table(shared_data / "tables" / "bank-full.csv.gz", ";")
    cuts = {"age": range(20, 80, 5), "balance": range(0, 5000, 500), "duration": range(60, 1200, 60)}
    texts = ["job", "marital", "education", "housing", "loan", "contact", "month", "poutcome"]
    attributes = (*(domain(found, name) for name in texts), *(cut(name, each) for name, each in cuts.items()))
    task = TreeParameters(domain(found, "y"), attributes, min_rows=50, max_depth=6)
    rows = LabelledRows.of(found, task.target, attributes)
    parties = PARTIES[:2]
    declared = openings(task, parties, vertical=False, everywhere=True)
    out = run(parted(rows, [20_000], parties), lambda s, own: learn_horizontal(s, own, task), declared)
    tree: DecisionTree = out["north"].model
    assert as_tuples(tree.root, task) == as_tuples(learn_tree(rows, task).root, task)
    x = np.stack(rows.cells, axis=1)
    peer = DecisionTreeClassifier(criterion="entropy", min_samples_leaf=50, max_depth=6, random_state=0)
    theirs = peer.fit(x, rows.classes).score(x, rows.classes)
    ours = float((tree.predict(rows.cells) == rows.classes).mean())
    assert ours > theirs - 0.01
