"""Joint k-means equals the pooled iteration in fixed point, and scikit-learn's within its precision."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from crypto.protocols.sums.pairwise import agree
from mining.joint.models import kmeans as joint
from mining.joint.models.aligned import AlignedAttributes, find_holders
from mining.joint.models.kmeans import JointClusters, cluster_horizontal, cluster_vertical, learned, openings
from mining.models.attributes import Numeric, coded_columns
from mining.models.kmeans import KMeansParameters, drawn_centroids
from mining.reference.pooled_models import lloyd
from protos.v1.link_pb2 import Frame
from tests.errors import fails
from tests.examples import examples
from tests.mining.joint.models.models_world import PARTIES, assert_declared, bounds, opened, run, shapes
from tests.mining.joint.models.real_tables import table

pytestmark = pytest.mark.turn(3)


@st.composite
def tasks(draw: st.DrawFn) -> KMeansParameters:
    attributes = tuple(
        Numeric(f"n{place}", Decimal(-5), Decimal(draw(st.integers(-4, 20))), draw(st.integers(1, 200)))
        for place in range(draw(st.integers(1, 4)))
    )
    k = draw(st.integers(1, 6))
    initial = drawn_centroids(attributes, k, draw(st.integers(0, 99)))
    return KMeansParameters(attributes, initial, draw(st.integers(1, 6)), draw(st.sampled_from([0, 3, 8])))


def points_of(task: KMeansParameters, n: int, seed: int) -> NDArray[np.int64]:
    generator = np.random.default_rng(seed)
    top = [each.steps if generator.random() < 0.9 else 0 for each in task.attributes]
    return generator.integers(0, np.array(top) + 1, (n, len(top)))


def by_hand(points: NDArray[np.int64], task: KMeansParameters) -> tuple[list[list[Fraction]], list[int]]:
    """Lloyd's iteration in fractions: coordinates rounded to 2^−f steps, ties to the first centroid."""
    scale = 1 << task.fraction_bits
    centroids = [
        [
            Fraction(round((Fraction(x) - Fraction(a.low)) / a.step * scale), scale)
            for x, a in zip(row, task.attributes, strict=True)
        ]
        for row in task.initial
    ]
    labels: list[int] = []
    for _ in range(task.max_iterations):
        labels = []
        for point in points.tolist():
            distances = [sum((x - c) ** 2 for x, c in zip(point, centroid, strict=True)) for centroid in centroids]
            labels.append(distances.index(min(distances)))
        before = centroids
        centroids = []
        for number, centroid in enumerate(before):
            members = [point for point, label in zip(points.tolist(), labels, strict=True) if label == number]
            means = [Fraction(sum(column), len(members)) for column in zip(*members, strict=True)] if members else []
            half = Fraction(1, 2)
            centroids.append([Fraction((mean * scale + half).__floor__(), scale) for mean in means] or centroid)
        if centroids == before:
            break
    return centroids, labels


def fractions(centroids: NDArray[np.int64], task: KMeansParameters) -> list[list[Fraction]]:
    return [[Fraction(x, 1 << task.fraction_bits) for x in row] for row in centroids.tolist()]


def columns(points: NDArray[np.int64], task: KMeansParameters, holders: list[str], parties: tuple[str, ...]) -> Any:
    return {
        party: AlignedAttributes(
            {a.name: points[:, j] for j, a in enumerate(task.attributes) if holders[j] == party}, len(points)
        )
        for party in parties
    }


@given(st.data(), st.integers(0, 2**32))
@examples(2, 30)
def test_rows_at_several_parties(data: st.DataObject, seed: int) -> None:
    task = data.draw(tasks())
    points = points_of(task, data.draw(st.integers(task.k, 40)), seed)
    cuts, parties = data.draw(bounds(len(points)))
    split = dict(zip(parties, np.split(points, cuts), strict=True))
    declared = openings(task, parties, parties, vertical=False)
    out = run(split, lambda s, own: cluster_horizontal(s, own, task), declared)
    centroids, labels = by_hand(points, task)
    pooled, _ = lloyd(points, task)
    for found in out.values():
        assert found.n_rows == len(points)
        assert fractions(found.model.centroids, task) == centroids
        assert found.model.counts.tolist() == np.bincount(labels, minlength=task.k).tolist()
        assert (found.model.iterations, found.model.converged) == (pooled.iterations, pooled.converged)
    assert np.concatenate([out[party].labels for party in parties]).tolist() == labels


@given(st.data(), st.integers(0, 2**32))
@examples(2, 10)
def test_columns_at_several_parties(data: st.DataObject, seed: int) -> None:
    task = data.draw(tasks())
    points = points_of(task, data.draw(st.integers(task.k, 40)), seed)
    parties = PARTIES[: data.draw(st.integers(2, 5))]
    holders = [data.draw(st.sampled_from(parties)) for _ in task.attributes]
    learners = tuple(data.draw(st.lists(st.sampled_from(parties), min_size=1, unique=True)))
    compute = tuple(data.draw(st.permutations(parties))[:2])
    declared = openings(task, parties, learners, vertical=True)
    split = columns(points, task, holders, parties)
    out = run(split, lambda s, own: cluster_vertical(s, own, task, learners, compute), declared)
    centroids, labels = by_hand(points, task)
    for party, found in out.items():
        assert found.labels.tolist() == labels
        assert (found.model is not None) == (party in learners)
        if found.model is not None:
            assert fractions(found.model.centroids, task) == centroids
            assert found.model.counts.tolist() == np.bincount(labels, minlength=task.k).tolist()


# -- disclosure, faults ------------------------------------------------------------------------------------------------
ATTRIBUTES = (Numeric("x", Decimal(0), Decimal(100), 100), Numeric("y", Decimal(0), Decimal(100), 1000))


def small() -> tuple[KMeansParameters, NDArray[np.int64]]:
    task = KMeansParameters(ATTRIBUTES, drawn_centroids(ATTRIBUTES, 3, 1))
    return task, points_of(task, 90, 3)


def test_a_view_of_rows_depends_on_the_declared_output_alone() -> None:
    """The others exchange rows: sums stay, and messages are of the same kinds and sizes; only what is declared is
    opened."""
    (task, points), parties = small(), PARTIES[:3]
    views, outcomes = [], []
    for order in (np.arange(90), np.r_[np.arange(30), np.arange(60, 90), np.arange(30, 60)]):
        frames: list[Frame] = []
        declared = openings(task, parties, parties, vertical=False)
        split = dict(zip(parties, np.split(points[order], [30, 60]), strict=True))
        out = run(split, lambda s, own: cluster_horizontal(s, own, task), declared, frames=frames)
        assert_declared(frames, declared)
        outcomes.append(out["north"].model.centroids.tolist())
        views.append([shapes(frames, party) for party in parties])
    assert outcomes[0] == outcomes[1]
    assert views[0] == views[1]


def test_a_view_of_columns_depends_on_the_declared_output_alone() -> None:
    """A column in which all centroids begin alike adds as much to all distances of a row, whatever the cells are: the
    clusters of a first iteration stay, and so do all messages but the holder's own centroids."""
    task, points = small()
    attributes = (*ATTRIBUTES, Numeric("z", Decimal(0), Decimal(9), 900))
    once = KMeansParameters(attributes, tuple((*row, Decimal(4)) for row in task.initial), 1)
    parties, compute, views, labels = PARTIES[:4], ("north", "south"), [], []
    for seed in (1, 2):
        z = np.random.default_rng(seed).integers(0, 901, (90, 1))
        split = columns(np.hstack([points, z]), once, ["north", "south", "east"], parties)
        frames: list[Frame] = []
        declared = openings(once, parties, ("east",), vertical=True)
        out = run(split, lambda s, own: cluster_vertical(s, own, once, ("east",), compute), declared, frames=frames)
        assert_declared(frames, declared)
        assert {who for label, who in opened(frames) if label == "centroids"} == {"east"}
        labels.append([out[party].labels.tolist() for party in parties])
        views.append([shapes(frames, party) for party in parties])
    assert labels[0] == labels[1]
    assert views[0] == views[1]


def test_over_real_streams_and_with_a_party_without_columns() -> None:
    (task, points), parties = small(), PARTIES[:3]
    split = columns(points, task, ["south", "south"], parties)
    declared = openings(task, parties, parties, vertical=True)
    compute = ("north", "east")
    out = run(split, lambda s, own: cluster_vertical(s, own, task, parties, compute), declared, transport="grpc")
    centroids, labels = by_hand(points, task)
    assert all(fractions(found.model.centroids, task) == centroids for found in out.values())
    assert out["north"].labels.tolist() == labels


def test_rows_that_are_not_everywhere_are_refused() -> None:
    (task, points), parties = small(), PARTIES[:2]
    split = {
        party: AlignedAttributes(each.cells, each.n_positions, np.ones(90, bool))
        for party, each in columns(points, task, ["north", "south"], parties).items()
    }
    declared = openings(task, parties, parties, vertical=True)
    with fails("E100"):
        run(split, lambda s, own: cluster_vertical(s, own, task, parties, parties), declared)


@pytest.mark.parametrize("vertical", [True, False])
def test_no_rows_anywhere(vertical: bool) -> None:
    (task, points), parties = small(), PARTIES[:2]
    declared = openings(task, parties, parties, vertical=vertical)

    async def part(session: Any, own: Any) -> JointClusters:
        if vertical:
            return await cluster_vertical(session, own, task, parties, parties)
        return await cluster_horizontal(session, points[:0], task)

    with fails("E101"):
        run(columns(points[:0], task, ["north", "south"], parties), part, declared)


def test_sums_that_no_rows_have_are_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    (task, points), parties = small(), PARTIES[:2]
    honest = joint.cluster_sizes

    def wrong(labels: Any, k: int) -> Any:
        return honest(labels, k) + (len(labels) == 40)

    monkeypatch.setattr(joint, "cluster_sizes", wrong)
    declared = openings(task, parties, parties, vertical=False)
    split = dict(zip(parties, np.split(points, [40]), strict=True))
    with fails("E400") as caught:
        run(split, lambda s, own: cluster_horizontal(s, own, task), declared)
    assert caught.value.party in parties


async def _open_too_large(session: Any, own: AlignedAttributes, task: KMeansParameters) -> None:
    """As a party whose one coordinate lies beyond its bound, at the end of a run in which it follows."""
    secrets = await agree(session.lane("keys"))
    holders = await find_holders(session.lane("columns"), own.cells, task.attributes)
    scores = np.zeros((own.n_positions, task.k), np.int64)
    lane = session.lane("iteration 0")
    await joint.nearest_centroids(lane, secrets, None, ("north", "south"), task, scores)
    coordinates = np.full((task.k, 1), (task.attributes[1].steps << task.fraction_bits) + 1, np.int64)
    await joint.gather_centroids(session.lane("centroids"), coordinates, task, holders, ("north",))


def test_centroids_outside_the_bounds_are_refused_and_their_sender_named() -> None:
    task, points = small()
    once = KMeansParameters(ATTRIBUTES, task.initial, 1)
    parties = PARTIES[:3]
    declared = openings(once, parties, ("north",), vertical=True)
    split = columns(points, once, ["north", "east"], parties)

    async def part(session: Any, own: AlignedAttributes) -> Any:
        if session.me == "east":
            return await _open_too_large(session, own, once)
        return await cluster_vertical(session, own, once, ("north",), ("north", "south"))

    with fails("E402", party="east") as caught:
        run(split, part, declared)
    assert caught.value.party == "east"


def test_clusters_that_there_are_not_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three clusters take two bits, which hold a fourth."""
    (task, points), parties = small(), PARTIES[:2]

    async def fourth(session: Any, parties: Any, columns: Any, largest: int) -> Any:
        values = np.full(columns[0].size, 3 << 6 if parties.is_first else 0, np.uint8)
        return type(columns[0])(values, parties.me, parties.holders)

    monkeypatch.setattr(joint, "argmin", fourth)
    declared = openings(task, parties, parties, vertical=True)
    split = columns(points, task, ["north", "south"], parties)
    with fails("E402") as caught:
        run(split, lambda s, own: cluster_vertical(s, own, task, parties, parties), declared)
    assert caught.value.party in parties


def test_parameters_are_checked() -> None:
    x, y = ATTRIBUTES
    wide = Numeric("w", Decimal(0), Decimal(1), (1 << 31) - 1)
    for attributes, initial in (
        ((x, y), ((Decimal(1),),)),
        ((x, y), ((Decimal(1), Decimal(101)),)),
        ((x, x), ((Decimal(1), Decimal(1)),)),
        ((x,), ()),
        ((wide,), ((Decimal(1),),)),
    ):
        with fails("E100"):
            KMeansParameters(attributes, initial)


def test_the_statement_tells_of_single_rows_and_of_two_parties() -> None:
    two, three = (" ".join(line.exact for line in learned(PARTIES[:n], PARTIES[:1], vertical=False)) for n in (2, 3))
    assert "this is the row itself" in three
    assert "the other's rows" in two
    assert "the other's rows" not in three


# -- real tables -------------------------------------------------------------------------------------------------------
def assert_equals_sklearn(found: JointClusters, points: NDArray[np.int64], task: KMeansParameters) -> None:
    """Within the rounding of centroids, 2^−f steps, which may move single rows between two about equally near."""
    start = task.start() / float(1 << task.fraction_bits)
    peer = KMeans(task.k, init=start, n_init=1, algorithm="lloyd", tol=0, max_iter=task.max_iterations)
    peer.fit(points.astype(np.float64))
    ours = found.model.centroids / float(1 << task.fraction_bits)
    np.testing.assert_allclose(ours, peer.cluster_centers_, atol=0.05)
    assert np.abs(found.model.counts - np.bincount(peer.labels_)).max() <= 5


def adult_points(folder: Any, step: int) -> tuple[KMeansParameters, NDArray[np.int64]]:
    found = table(folder / "adult" / "adult_45222.csv.gz")
    attributes = (
        Numeric("age", Decimal(0), Decimal(100), 1000),
        Numeric("education-num", Decimal(0), Decimal(20), 1000),
        Numeric("hours-per-week", Decimal(0), Decimal(100), 1000),
    )
    initial = tuple(tuple(map(Decimal, row)) for row in ((25, 9, 30), (35, 13, 45), (50, 9, 40), (60, 10, 20)))
    task = KMeansParameters(attributes, initial, max_iterations=40, fraction_bits=10)
    return task, np.stack(coded_columns(found, attributes), axis=1)[::step]


@pytest.mark.turn(2, "real tables")
@pytest.mark.data
def test_real_rows_equal_scikit_learn(shared_data) -> None:
    task, points = adult_points(shared_data, 1)
    parties = PARTIES[:3]
    split = dict(zip(parties, np.split(points, [10_000, 30_000]), strict=True))
    declared = openings(task, parties, parties, vertical=False)
    out = run(split, lambda s, own: cluster_horizontal(s, own, task), declared)
    assert_equals_sklearn(out["south"], points, task)


@pytest.mark.turn(2, "real tables")
@pytest.mark.data
@pytest.mark.slow
def test_real_columns_equal_scikit_learn(shared_data) -> None:
    task, points = adult_points(shared_data, 20)
    parties = PARTIES[:3]
    split = columns(points, task, list(parties), parties)
    declared = openings(task, parties, parties, vertical=True)
    out = run(split, lambda s, own: cluster_vertical(s, own, task, parties, parties[:2]), declared)
    assert_equals_sklearn(out["east"], points, task)
