"""Models on shared class histograms judge as the library judges the pooled rows, class by class, and open nothing."""

from __future__ import annotations

import math
from collections import Counter as Multiset
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import comine
from anonymize.columns import Kind
from anonymize.fulldomain.optimal import optimal
from anonymize.grouping import Histograms
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import (
    AlphaK,
    BetaLikeness,
    DeltaDisclosure,
    DistinctDiversity,
    Model,
    RecursiveDiversity,
    SensitiveLevels,
    TCloseness,
)
from anonymize.multidimensional.mondrian import mondrian
from anonymize.roles import Roles
from anonymize.tables import Table as WholeTable
from anonymize.verifier import verify
from crypto.primitives.shares.xor import reconstruct_bits
from crypto.protocols.sums.pairwise import agree
from link.session import Session
from mining.joint.anonymisation.conditions.models import SensitiveTests
from mining.joint.anonymisation.conditions.share_limits import largest_fraction, least_fraction_above
from mining.joint.anonymisation.disclosure import openings
from mining.joint.anonymisation.parameters import Carried, QuasiIdentifier
from protos.v1.link_pb2 import Frame, Opening
from tests.crypto.protocols.two_party_world import HOLDERS, pairing, shapes_of
from tests.errors import fails
from tests.examples import examples, slowly
from tests.mining.joint.anonymisation import test_anonymisation_vertical as vertical
from tests.mining.joint.anonymisation import test_mondrian as regions
from tests.mining.joint.anonymisation.anonymisation_jobs_world import job
from tests.mining.joint.anonymisation.anonymisation_world import (
    ILLS,
    Cells,
    divided,
    exhaustive,
    hierarchies,
    joint,
    parted,
    people,
    task,
    whole,
)
from tests.mining.joint.anonymisation.test_anonymisation import check_declared
from tests.mining.joint.anonymisation.vertical_anonymisation_world import COLUMNS
from tests.world import run_parties

pytestmark = pytest.mark.turn(8)

Split = tuple[Cells, NDArray[np.int64], tuple[str, ...]]
Counts = NDArray[np.int64]

NUMBERS = ("10", "2.5", "-3", "7", "0", "11", "8.25")
BANDS = Hierarchy.of(
    "s",
    [
        ("-3", "low", "low", "*"),
        ("0", "low", "low", "*"),
        ("2.5", "middle", "low", "*"),
        ("7", "middle", "low", "*"),
        ("8.25", "eight", "high", "*"),
        ("10", "tens", "high", "*"),
        ("11", "tens", "high", "*"),
    ],
)
ILL_TREE = Hierarchy.of("ill", [("flu", "air", "*"), ("cold", "air", "*"), ("ulcer", "other", "*"), ("", "other", "*")])


# -- class by class ----------------------------------------------------------------------------------------------------
def judged(parts: Sequence[Counts], models: Sequence[Model], kind: Kind, frames: list[Frame] | None = None) -> Any:
    """By model which classes meet it, on shares of the parties' histograms of shape (classes, values)."""
    names = (*HOLDERS, "c", "d")[: len(parts)]
    totals = np.sum(parts, axis=(0, 1))
    carried = Carried("s", "sensitive", kind, NUMBERS[: len(totals)], 8)
    tests = SensitiveTests.of(task(names, k=1, models=models, carried=(carried,)), {"s": totals}, int(totals.sum()))

    paired = pairing()

    async def role(session: Session) -> Any:
        secrets = await agree(session.lane("keys"))
        two = paired(session) if session.me in HOLDERS else None
        own = parts[names.index(session.me)]
        return [
            await tests.bits(session.lane(f"{number}"), secrets, two, model, own)
            for number, model in enumerate(tests.models)
        ]

    out = run_parties(names, role, observe=(lambda frame: None) if frames is None else frames.append)
    assert all(bits is None for name in names[2:] for bits in out[name])
    return [reconstruct_bits([one, other]).astype(bool) for one, other in zip(*(out[h] for h in HOLDERS), strict=True)]


def pooled(parts: Sequence[Counts], models: Sequence[Model], kind: Kind) -> list[NDArray[np.bool_]]:
    """The same by the library, on all rows."""
    counts = np.sum(parts, axis=0)
    cells = np.repeat(np.tile(NUMBERS[: counts.shape[1]], len(counts)), counts.reshape(-1)).tolist()
    labels = np.repeat(np.arange(len(counts)), counts.sum(axis=1))
    orders = {"s": NUMBERS[: counts.shape[1]]} if kind == "ordinal" else {}
    table = WholeTable.of(pa.table({"s": cells}), Roles(sensitive=("s",)), {"s": kind}, orders)
    classes = Histograms.of(labels, len(counts), table.sensitive)
    return [model.fitted(table).satisfied(classes) for model in models]


@st.composite
def histograms(draw: st.DrawFn, classes: int = 12) -> list[Counts]:
    """Of two to four parties; some classes are empty, some values nobody has."""
    parties, values = draw(st.integers(2, 4)), draw(st.integers(1, len(NUMBERS)))
    chance = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    shares = chance.dirichlet(np.full(values, draw(st.sampled_from((0.3, 1.0, 9.0)))))
    sizes = chance.integers(0, draw(st.sampled_from((3, 9, 40))), (parties, draw(st.integers(1, classes))))
    parts = [np.stack([chance.multinomial(size, shares) for size in row]) for row in sizes.tolist()]
    parts[0][0, -1] += 1  # somebody has a row
    return parts


def next_to(limit: float) -> st.SearchStrategy[Decimal]:
    """Decimals just above 0 or a limit, or just below it."""
    return st.sampled_from((1, -1)).map(
        lambda side: max(Decimal(repr(limit)) + side * Decimal("1e-7"), Decimal("1e-7"))
    )


@st.composite
def parameters(draw: st.DrawFn, parts: Sequence[Counts]) -> list[Model]:
    """All models: with limits of few digits, and with those that some class meets just so."""
    counts = np.sum(parts, axis=0)
    counts = counts[counts.sum(axis=1) > 0]
    totals, rows = counts.sum(axis=0), int(counts.sum())
    held = draw(st.sampled_from(counts.tolist()))
    size, place = sum(held), draw(st.sampled_from(np.flatnonzero(totals).tolist()))
    share = Fraction(held[place], size)
    tenths = st.integers(1, 30).map(lambda number: Decimal(number) / 10)
    l = draw(st.integers(1, 5))  # noqa: E741 - the paper's letter
    ordered = sorted(held, reverse=True)
    tail = sum(ordered[l - 1 :])
    gain = share * rows / int(totals[place]) - 1
    ratios = [Fraction(n * rows, size * int(q)) for n, q in zip(held, totals, strict=True) if n]
    farthest = max(abs(math.log(ratio)) for ratio in ratios)
    differences = [Fraction(n, size) - Fraction(int(q), rows) for n, q in zip(held, totals, strict=True)]
    distance = sum(map(abs, differences), Fraction(0)) / 2
    close = st.sampled_from((Fraction(0), distance, distance / 2, Fraction(1, 10), Fraction(1, 3)))
    present = tuple(NUMBERS[each] for each in np.flatnonzero(totals).tolist())
    values = NUMBERS[: counts.shape[1]]
    models: list[Model] = [
        DistinctDiversity(l, "s"),
        AlphaK(draw(st.sampled_from((share or Fraction(1, 2), Fraction(2, 3)))), "s"),
        AlphaK(draw(tenths.filter(lambda each: each <= 1)), "s", present[: 1 + len(present) // 2]),
        RecursiveDiversity(draw(tenths), l, "s"),
        RecursiveDiversity(Fraction(ordered[0], tail) if tail else Fraction(1), l, "s"),
        RecursiveDiversity(draw(st.sampled_from(tuple(map(Fraction, ("1/999", "1.0001", "1000"))))), 3, "s"),
        BetaLikeness(gain if gain > 0 else draw(tenths), "s"),
        BetaLikeness(draw(tenths), "s", enhanced=True),
        DeltaDisclosure(draw(tenths), "s"),
        DeltaDisclosure(draw(next_to(farthest)), "s"),
        DeltaDisclosure(draw(st.sampled_from(("0.6931471805", "5", "1000"))), "s"),
        TCloseness(draw(close), "s"),
        TCloseness(draw(close), "s", "ordered"),
        TCloseness(draw(close), "s", "ordered", "value"),
        TCloseness(draw(close), "s", "hierarchical", hierarchy=BANDS),
    ]
    if set(present) == set(values) and len(values) > 1:
        models.append(SensitiveLevels(2, (values[:1], values[1:]), "s"))
    return models


KINDS = st.sampled_from(("numeric", "ordinal"))


@given(st.data(), histograms(), KINDS)
@examples(1, 4)
def test_every_class_is_judged_as_in_one_place(data: st.DataObject, parts: list[Counts], kind: Kind) -> None:
    check_classes(data.draw(parameters(parts)), parts, kind)


@pytest.mark.slow
@given(st.data(), histograms(90), KINDS)
@settings(max_examples=3, deadline=None)
def test_every_one_of_many_classes_is_judged_as_in_one_place(
    data: st.DataObject, parts: list[Counts], kind: Kind
) -> None:
    check_classes(data.draw(parameters(parts)), parts, kind)


def check_classes(models: Sequence[Model], parts: Sequence[Counts], kind: Kind) -> None:
    some = np.sum(parts, axis=(0, 2)) > 0
    verdicts = zip(models, judged(parts, models, kind), pooled(parts, models, kind), strict=True)
    for model, found, expected in verdicts:
        assert found[some].tolist() == expected[some].tolist(), str(model)


@pytest.mark.parametrize("kind", ["numeric", "ordinal", "date"])
def test_values_of_a_kind_are_taken_in_its_order(kind: Kind) -> None:
    """Numbers ascend however the job lists them; of ordinal values those count, too, that nobody has."""
    parts = [np.array([[3, 0, 1, 0], [0, 0, 2, 5]]), np.array([[1, 0, 1, 1], [1, 0, 0, 2]])]
    if kind == "date":
        days = Carried("s", "sensitive", kind, ("2020-05-01", "2020-01-01", "2020-02-01", "2020-03-01"), 10)
        tests = SensitiveTests.of(
            task(HOLDERS, k=1, models=[TCloseness(0, "s", "ordered", "value")], carried=(days,)),
            {"s": np.sum(parts, axis=(0, 1))},
            17,
        )
        (limit,) = tests.tests.values()
        assert limit.weights == {(2,): 29, (2, 3): 61}  # type: ignore[attr-defined]
        return
    models = [
        TCloseness(Fraction(n, 20), "s", "ordered", ground) for n in range(0, 12, 2) for ground in ("rank", "value")
    ]
    for found, expected in zip(judged(parts, models, kind), pooled(parts, models, kind), strict=True):
        assert found.tolist() == expected.tolist()


@given(st.fractions(0, 3, max_denominator=10**9), st.integers(1, 40), st.sampled_from((1, 40, 10**9)))
@settings(max_examples=100)
def test_the_fractions_next_to_a_limit(limit: Fraction, most: int, digits: int) -> None:
    """Against all fractions there are; some limits are themselves among them."""
    limit = limit.limit_denominator(digits)
    every = {Fraction(p, q) for q in range(1, most + 1) for p in range(4 * q + 1)}
    assert largest_fraction(limit, most) == max(each for each in every if each <= limit)
    if limit:
        assert largest_fraction(limit, most, below=True) == max(each for each in every if each < limit)
    assert least_fraction_above(limit, most) == min(each for each in every if each > limit)


# -- whole releases ----------------------------------------------------------------------------------------------------
NEW: dict[str, Model] = {
    "recursive, l = 3": RecursiveDiversity(Decimal("2.5"), 3, "ill"),
    "recursive, l = 4": RecursiveDiversity(Decimal("9"), 4, "ill"),
    "t hierarchical": TCloseness(Decimal("0.2"), "ill", "hierarchical", hierarchy=ILL_TREE),
    "t by value": TCloseness(Decimal("0.2"), "ill", "ordered", "value"),
    "beta": BetaLikeness(Decimal("0.8"), "ill"),
    "beta enhanced": BetaLikeness(Decimal("1.2"), "ill", enhanced=True),
    "delta": DeltaDisclosure(Decimal("0.9"), "ill"),
}


def setting(name: str) -> tuple[Carried, Mapping[str, Sequence[str]]]:
    """The sensitive column, and its order in one place."""
    kind: Kind = "ordinal" if name == "t by value" else "tree"
    return Carried("ill", "sensitive", kind, ILLS, 5), {"ill": ILLS} if kind == "ordinal" else {}


@pytest.mark.parametrize("name", slowly(["recursive, l = 3", "t by value", "delta"], now=[1]))
@given(divided(12, 40), st.sampled_from(("0", "0.2")))
@settings(max_examples=1, deadline=None)
def test_the_release_is_that_of_the_pooled_rows(name: str, split: Split, share: str) -> None:
    cells, owners, parties = split
    carried, orders = setting(name)
    note = Carried("note", "insensitive", "tree", None, 6)
    wanted = task(parties, k=2, models=[NEW[name]], max_suppression=Decimal(share), carried=(carried, note))
    losses = exhaustive(cells, owners, wanted, orders=orders)
    if not losses:
        with fails("E100"):
            joint(cells, owners, parties, wanted)
        return
    release = optimal(whole(cells, orders), hierarchies(), wanted.requirements, max_suppression=share)
    found = joint(cells, owners, parties, wanted)[parties[-1]]
    assert release.node is not None
    assert release.rows is not None
    assert found.rows is not None
    assert found.node == tuple(release.node.values()) == min(losses, key=lambda node: (losses[node], node))
    keys = vertical.classes_of(cells, found.node)
    expected = Multiset((int(keys[row]), cells["ill"][row], cells["note"][row]) for row in release.rows.tolist())
    assert Multiset(zip(found.rows.cells.tolist(), *found.rows.carried.values(), strict=True)) == expected


def test_a_node_that_fails_condemns_none_where_unions_of_good_classes_may_be_bad() -> None:
    """δ-disclosure, nothing suppressed: (2, 0, 1) is released, though its generalisation (3, 0, 1) fails."""
    cells, owners = people(24, 47), np.arange(24) % 3
    parties = ("north", "south", "east")
    wanted = task(parties, k=2, models=[DeltaDisclosure(Decimal("0.7"), "ill")])
    assert (3, 0, 1) not in exhaustive(cells, owners, wanted)
    for algorithm in ("optimal", "samarati"):
        changed = task(parties, k=2, models=[DeltaDisclosure(Decimal("0.7"), "ill")], algorithm=algorithm)
        found = joint(cells, owners, parties, changed)["east"].node
        assert found == ((2, 0, 1) if algorithm == "optimal" else least_height(cells, owners, changed))


def least_height(cells: Cells, owners: Counts, wanted: Any) -> tuple[int, ...]:
    losses = exhaustive(cells, owners, wanted)
    return min(losses, key=lambda node: (sum(node), losses[node], node))


# The oracle knows no order.
@pytest.mark.parametrize("name", slowly(["recursive, l = 3", "beta enhanced"], now=[1]))
@given(divided(12, 30))
@settings(max_examples=1, deadline=None)
def test_regions_are_those_of_the_pooled_rows(name: str, split: Split) -> None:
    carried = (setting(name)[0], Carried("note", "insensitive", "tree", None, 6))
    regions.check(split, task(split[2], k=2, models=[NEW[name]], algorithm="mondrian", carried=carried))


@pytest.mark.parametrize("name", slowly(["t hierarchical", "delta"], now=[0]))
def test_columns_of_several_parties(name: str) -> None:
    holders = dict(zip(COLUMNS, ("north", "south", "north", "east", "south"), strict=True))
    parties = ("north", "south", "east")
    carried = (setting(name)[0], Carried("note", "insensitive", "tree", None, 6))
    wanted = task(parties, k=3, models=[NEW[name]], max_suppression=Decimal("0.2"), carried=carried)
    vertical.check(people(30, 5), holders, parties, wanted)


ORDINAL = {"ill": {"kind": "ordinal", "values": ["flu", "cold", "plague", "ulcer", ""]}}


@pytest.mark.parametrize(
    "changes",
    slowly(
        [
            {
                "model": {"k": 2, "beta": "1.5", "l": {"kind": "recursive", "value": 3, "c": "9"}},
                "max_suppression": "0.2",
            },
            {"model": {"k": 2, "delta": "1.1"}, "algorithm": "mondrian"},
            {"model": {"k": 2, "t": {"value": "0.3", "distance": "ordered", "ground": "value"}}, "columns": ORDINAL},
        ],
        now=[2],
    ),
    ids=str,
)
def test_the_folder_of_a_release_passes_the_independent_verifier(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Also where a value of an order occurs in no row."""
    cells = people(50, 4)
    columns = {"age": {"kind": "numeric"}, "ill": {"values": list(ILLS)}, "note": {"most_bytes": 6}}
    spec = job(**{**changes, "columns": {**columns, **changes.get("columns", {})}})
    comine.simulate(spec, parted(cells, np.arange(50) % 3, ("north", "south", "east"))).save(tmp_path / "out")
    verified = verify(tmp_path / "out")
    assert verified.ok, verified.failures
    assert not verified.unchecked


FLAT = Hierarchy.of("town", [(town, "*") for town in "ABCDEF"])


@pytest.mark.parametrize(("seed", "fail"), [(146, True), (2, False)])
def test_regions_that_show_the_same_are_judged_as_one_class(seed: int, *, fail: bool) -> None:
    """Of six towns under one label several regions show that label."""
    chance, parties = np.random.default_rng(seed), ("north", "south", "east")
    cells = people(24, seed)
    cells["town"] = ["ABCDEF"[each] for each in chance.integers(0, 6, 24).tolist()]
    town = QuasiIdentifier("town", "tree", FLAT)
    model = DeltaDisclosure(Decimal("0.9"), "ill")
    wanted = task(parties, k=5, models=[model], algorithm="mondrian", quasi_identifiers=(town,))
    roles = Roles(quasi_identifiers=("town",), sensitive=("ill",), insensitive=("note", "age", "sex"))
    table = WholeTable.of(pa.table(cells), roles, missing="value")
    owners = np.arange(24) % 3
    if fail:
        with fails("E100"):
            mondrian(table, wanted.requirements, hierarchies={"town": FLAT})
        with fails("E100"):
            joint(cells, owners, parties, wanted)
        return
    released = mondrian(table, wanted.requirements, hierarchies={"town": FLAT})
    frames: list[Frame] = []
    found = joint(cells, owners, parties, wanted, frames=frames)["north"]
    assert found.statistics["regions"] == released.statistics["regions"] == 3
    assert "shown classes" in check_declared(frames, openings(wanted, parties))


# -- what is opened ----------------------------------------------------------------------------------------------------
def test_nothing_is_opened_and_sizes_tell_nothing() -> None:
    """Histograms with equal sums over all classes: every message has the same size, and none opens anything."""
    models: list[Model] = [
        RecursiveDiversity(Decimal("1.5"), 3, "s"),
        TCloseness(Decimal("0.2"), "s", "hierarchical", hierarchy=BANDS),
        BetaLikeness(1, "s"),
        DeltaDisclosure(1, "s"),
    ]
    views = []
    for seed in (0, 1):
        chance, frames = np.random.default_rng(seed), list[Frame]()
        parts = [np.full((5, 4), 6), np.stack([chance.permutation([0, 2, 4, 6, 8]) for _ in range(4)], axis=1)]
        judged([*parts, np.eye(5, 4, dtype=np.int64)], models, "numeric", frames)
        assert not any(frame.type == Opening.DESCRIPTOR.full_name for frame in frames)
        views.append(shapes_of(frames))
    assert views[0] == views[1]


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [("recursive, l = 3", "optimal"), ("delta", "mondrian")],
)
def test_what_is_opened_is_declared(name: str, algorithm: str) -> None:
    """How many of all rows have each value, where a model compares with that; else verdicts and the release alone."""
    cells, parties, frames = people(30, 3), ("north", "south", "east"), list[Frame]()
    carried = (setting(name)[0], Carried("note", "insensitive", "tree", None, 6))
    wanted = task(parties, k=2, models=[NEW[name]], algorithm=algorithm, carried=carried)
    found = joint(cells, np.arange(30) % 3, parties, wanted, frames=frames)["east"]
    labels = check_declared(frames, openings(wanted, parties))
    assert ("sensitive values" in labels) == (not name.startswith("recursive"))
    assert labels <= {each.label for each in openings(wanted, parties)}
    held = Multiset(cells["ill"])
    assert found.totals == ({} if name.startswith("recursive") else {"ill": held})


# -- what is refused ---------------------------------------------------------------------------------------------------
def suited(model: Model, kind: Kind = "numeric", rows: int = 1_000_000, values: Sequence[str] = NUMBERS) -> Any:
    totals = np.full(len(values), rows)
    wanted = task(HOLDERS, models=[model], carried=(Carried("s", "sensitive", kind, tuple(values), 8),))
    return SensitiveTests.of(wanted, {"s": totals}, int(totals.sum()))


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (TCloseness(Decimal("0.1234567890123"), "s"), 1_000_000),
        (TCloseness(Decimal("0.1"), "s", "ordered", "value"), 100_000_000),
        (AlphaK(Decimal("0.5000000001"), "s"), 1_000_000_000),
    ],
    ids=str,
)
def test_numbers_that_do_not_fit_are_refused(model: Model, rows: int) -> None:
    with fails("E100"):
        suited(model, rows=rows)


def test_limits_of_many_digits_are_no_hindrance() -> None:
    """The limit is replaced by a fraction that compares alike, whose denominator is no larger than N."""
    digits = Decimal("0.12345678901234567890123456789")
    for model in (AlphaK(digits, "s"), RecursiveDiversity(digits, 3, "s"), BetaLikeness(digits, "s")):
        suited(model, rows=100_000)


@pytest.mark.parametrize(
    ("model", "kind", "values"),
    [
        (TCloseness(1, "s", "ordered"), "tree", ("a", "b")),
        (TCloseness(1, "s", "ordered"), "numeric", ("1", "b")),
        (
            TCloseness(1, "s", "hierarchical", hierarchy=BANDS),
            "numeric",
            ("7", "8"),
        ),
    ],
)
def test_values_that_do_not_suit_the_distance_are_refused(model: Model, kind: Kind, values: Sequence[str]) -> None:
    with fails("E100"):
        suited(model, kind, 5, values)
