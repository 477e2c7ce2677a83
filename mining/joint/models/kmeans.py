"""k-means over all parties' rows, or over columns that lie at several parties, in fixed point (`mining.models.kmeans`).

Horizontal, every party holds whole rows. In every iteration
    1. a party assigns its own rows to the public centroids and adds up its rows of each cluster;
    2. one secure sum opens sums and sizes of all clusters to all, who update the centroids alike.
    Nobody but its owner learns the cluster of a row.
Vertical, every party holds columns of common rows, and those coordinates of the centroids. In every iteration
    1. a party computes its part of each row's distance from each centroid, up to what these have in common;
    2. the parts are summed up into shares of the two computing parties, who find the least of every row (`argmin`)
       without learning any distance;
    3. all learn the cluster of every row, and each party updates its own coordinates.
    At the end every party opens its coordinates of the centroids to the learners. `shared_kmeans` hides the clusters of
    rows as well, by k products a row and coordinate in every iteration.

Rounds:     horizontal that of a secure sum an iteration; vertical 1, those of `argmin`, and 1.
Output:     exactly the centroids, sizes and assignments of the pooled rows. Horizontal, to all parties, with the
            clusters of one's own rows; vertical, centroids to the learners and the clusters of all rows to all.
Adversary:  semi-honest; opened sums withstand any n − 2 colluders. Distances withstand any but both computing parties
            together, who could learn the sum over the others of each distance's parts.
Leakage:    `openings` lists all that is opened, `learned` what follows from it.
Source:     Jagannathan and Wright, "Privacy-preserving distributed k-means clustering over arbitrarily partitioned
            data", KDD 2005 (sums, and the least of shared distances); Vaidya and Clifton, "Privacy-preserving k-means
            clustering over vertically partitioned data", KDD 2003 (distances by parts; all know the clusters of rows);
            Lloyd, IEEE Trans. Information Theory 28(2), 1982.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.masks import Words
from crypto.protocols.comparison.argmin import argmin, open_positions
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.sums.pairwise import PairwiseSecrets, agree
from crypto.protocols.sums.secure_sum import secure_sum, shared_sum
from link.disclosure import Declared, Learned
from link.errors import ConfigurationError, MalformedMessage
from link.journal import Known
from link.session import Session
from link.steps import step
from mining.joint.models.aligned import AlignedAttributes, columns_opening, find_holders
from mining.joint.models.totals import Learnt, no_rows, rows_opening, total_rows
from mining.joint.tally import no_sum
from mining.models.coded_tables import PointsTable
from mining.models.kmeans import (
    Centroids,
    Clusters,
    KMeansParameters,
    Points,
    assign,
    cluster_sizes,
    cluster_sums,
    partial_scores,
    updated,
)

MAX_POSITIONS: Final = 1 << 31  # rows that parties may have in common, for the statement

Labels = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class JointClusters(Learnt[Clusters]):
    """What comes out at one party.

    Attributes:
        labels: The clusters of this party's rows, or of all common positions; None of rows in blocks.
    """

    labels: Labels | None


def openings(
    task: KMeansParameters, parties: tuple[str, ...], learners: tuple[str, ...], *, vertical: bool
) -> tuple[Declared, ...]:
    """Every label under which something may be opened, with its recipients and the most values.

    Args:
        task: The public parameters.
        parties: Of the job.
        learners: Vertical only: those that get all coordinates of the centroids.
        vertical: Whether parties hold columns; rows otherwise.
    """
    if not vertical:
        return rows_opening(parties), clusters_opening(task, parties)
    everyone, size, rows = frozenset(parties), task.k * len(task.attributes), task.max_iterations * MAX_POSITIONS
    return (
        columns_opening(parties, task.attributes),
        Declared("assignments", everyone, "the cluster of each common row", rows, "once per iteration"),
        Declared("centroids", frozenset(learners), "each party's coordinates of the centroids", size, "at the end"),
    )


def clusters_opening(task: KMeansParameters, parties: tuple[str, ...]) -> Declared:
    """The statement's line for `open_clusters`."""
    what, most = "by cluster, the number of its rows and their sum", task.k * (len(task.attributes) + 1)
    return Declared("clusters", frozenset(parties), what, task.max_iterations * most, "once per iteration")


def clusters_learned(parties: tuple[str, ...], more: tuple[str, str] = ("", "")) -> tuple[Learned, ...]:
    """What all learn by `open_clusters`, in words.

    Args:
        parties: Of the job.
        more: What follows besides, in brief and exactly.
    """
    short = "in every iteration, number and mean of each cluster's rows, even of a single row" + more[0]
    what = (
        "in every iteration, of each cluster the number of its rows and their mean; of a cluster with a single row "
        "this is the row itself" + more[1]
    )
    return (
        Learned(parties, "result", "the centroids, and the number of rows of each cluster").main(),
        Learned(parties, "count", short, what).main(),
    )


def learned(parties: tuple[str, ...], learners: tuple[str, ...], *, vertical: bool) -> tuple[Learned, ...]:
    """Who learns what, in words; arguments as for `openings`."""
    if not vertical:
        more = ("; so also of the other's rows", "; so number and mean of the other's rows in each cluster")
        return (
            *clusters_learned(parties, more if len(parties) == 2 else ("", "")),
            Learned(parties, "size", "the number of all rows").main(),
            Learned(parties, "membership", "the cluster of one's own rows, and of no other"),
        )
    return (
        Learned(learners, "result", "the centroids in all coordinates").main(),
        Learned(parties, "membership", "in every iteration the cluster of every common row; no distance").main(
            "in every iteration the cluster of every common row"
        ),
        Learned(parties, "membership", "which party has which column of the model").main("whose each column is"),
        Learned(parties, "size", "the number of rows that all parties have in common").main(
            "the number of common rows"
        ),
    )


async def cluster_horizontal(session: Session, points: Points | PointsTable, task: KMeansParameters) -> JointClusters:
    """Runs the part of a party that holds rows.

    Args:
        session: A lane of the job's session.
        points: This party's, in steps; perhaps none.
        task: The public parameters, equal at all parties.

    Raises:
        ConfigurationError: There are too many rows for exact sums, or fewer than clusters.
        InputDataError: No party has any row.
        ProtocolViolation: What was opened cannot be sums of rows.
    """
    secrets = await agree(session.lane("keys"))
    n_rows = await total_rows(session.lane("rows"), secrets, len(points))
    task.check_rows(n_rows)
    centroids, converged, iteration = task.start(), False, 0
    labels = None if isinstance(points, PointsTable) else np.zeros(len(points), np.int64)
    sizes = np.zeros(task.k, np.int64)
    while iteration < task.max_iterations and not converged:
        session.progress("iterations", iteration, task.max_iterations)
        if isinstance(points, PointsTable):
            own = await session.compute(points.total, partial(_assigned, centroids=centroids, task=task))
        else:
            labels = nearest = await session.compute(assign, points, centroids, task.fraction_bits)
            own = _clusters(points, nearest, task.k)
        sizes, sums = await _total_clusters(session.lane(f"iteration {iteration}"), secrets, task, n_rows, own)
        moved = updated(centroids, sums, sizes, task.fraction_bits)
        converged, centroids, iteration = np.array_equal(moved, centroids), moved, iteration + 1
    return JointClusters(n_rows, Clusters(centroids, sizes, iteration, converged), labels)


def _assigned(points: Points, centroids: Centroids, task: KMeansParameters) -> NDArray[np.int64]:
    """A kernel: `_clusters` of points that go to their nearest centroids."""
    return _clusters(points, assign(points, centroids, task.fraction_bits), task.k)


def _clusters(points: Points, labels: Labels, k: int) -> NDArray[np.int64]:
    """Shape (k, 1 + attributes): sizes and sums of clusters, in whole steps."""
    return np.column_stack([cluster_sizes(labels, k), cluster_sums(points, labels, k)])


async def _total_clusters(
    session: Session, secrets: PairwiseSecrets, task: KMeansParameters, n_rows: int, own: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Opens sizes and sums of all clusters."""
    totals = await step(session, "clusters", lambda: open_clusters(session, secrets, own.reshape(-1).astype(np.uint64)))
    return checked_clusters(session, task, n_rows, totals.public)


async def open_clusters(session: Session, secrets: PairwiseSecrets, own: Words) -> Known:
    """Opens sizes and sums of all clusters to all, label `clusters`.

    Args:
        session: A lane of its own.
        secrets: Pairwise secrets of this session.
        own: Shape (k · (1 + attributes),): this party's addends, cluster by cluster the size and then the sums; in a
            word of which all totals are below the size.
    """
    total = await secure_sum(session, secrets, own, label="clusters")
    if total is None:
        raise AssertionError("clusters are opened to all")
    return Known(total)


def checked_clusters(
    session: Session, task: KMeansParameters, n_rows: int, totals: Words
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sizes of all clusters, shape (k,), and sums, shape (k, attributes), of totals that `open_clusters` has opened.

    Raises:
        ProtocolViolation: They cannot be those of N rows.
    """
    found = totals.astype(np.uint64).reshape(task.k, -1)
    steps = np.array([each.steps for each in task.attributes], np.uint64)
    if (found[:, 0] > n_rows).any() or found[:, 0].sum() != n_rows or (found[:, 1:] > found[:, :1] * steps).any():
        raise no_sum(session)
    return found[:, 0].astype(np.int64), found[:, 1:].astype(np.int64)


async def cluster_vertical(
    session: Session,
    aligned: AlignedAttributes,
    task: KMeansParameters,
    learners: tuple[str, ...],
    compute: tuple[str, str],
) -> JointClusters:
    """Runs the part of a party that holds columns; what is not said here is as for `cluster_horizontal`.

    Args:
        session: A lane of the job's session.
        aligned: This party's attributes over the common rows, present everywhere.
        task: The public parameters.
        learners: The parties that get all coordinates of the centroids.
        compute: The two computing parties, in the same order at all.

    Raises:
        ConfigurationError: A column is at no party or at two, rows are not everywhere, or too many or too few.
        InputDataError: No row is common to all parties.
        MalformedMessage: A peer opened clusters or coordinates that there are not.
    """
    if aligned.presence is not None:
        raise ConfigurationError(
            "k-means shows all parties the cluster of every row, so rows must be aligned by intersection"
        )
    if not aligned.n_positions:
        raise no_rows()
    task.check_rows(aligned.n_positions)
    secrets = await agree(session.lane("keys"))
    holders = await find_holders(session.lane("columns"), aligned.cells, task.attributes)
    two_party = TwoParty(session.lane("two-party"), compute) if session.me in compute else None
    mine = _places(task, holders, session.me)
    points = np.zeros((aligned.n_positions, len(mine)), np.int64)
    for column, place in enumerate(mine):
        points[:, column] = aligned.cells[task.attributes[place].name]
    centroids, converged, iteration = task.start()[:, mine], False, 0
    labels = np.full(aligned.n_positions, -1, np.int64)
    while iteration < task.max_iterations and not converged:
        session.progress("iterations", iteration, task.max_iterations)
        lane = session.lane(f"iteration {iteration}")
        nearest = await _nearest(lane, secrets, two_party, compute, task, points, centroids)
        sizes = cluster_sizes(nearest, task.k)
        centroids = updated(centroids, cluster_sums(points, nearest, task.k), sizes, task.fraction_bits)
        converged, labels, iteration = np.array_equal(nearest, labels), nearest, iteration + 1

    async def gather() -> Known:
        lane = session.lane("centroids")
        return Known(None, await gather_centroids(lane, centroids, task, holders, learners), learners)

    whole = (await step(session, "centroids", gather)).learned
    clusters = None if whole is None else Clusters(whole, cluster_sizes(labels, task.k), iteration, converged)
    return JointClusters(aligned.n_positions, clusters, labels)


async def _nearest(
    session: Session,
    secrets: PairwiseSecrets,
    two_party: TwoParty | None,
    compute: tuple[str, str],
    task: KMeansParameters,
    points: Points,
    centroids: Centroids,
) -> Labels:
    """The clusters of all rows in an iteration, as a step of the job."""

    async def take() -> Known:
        scores = await session.compute(partial_scores, points, centroids, task.fraction_bits)
        labels = await nearest_centroids(session, secrets, two_party, compute, task, scores)
        return Known(labels.astype(np.min_scalar_type(task.k)))

    return np.asarray((await step(session, "assignments", take)).public, np.int64)


async def nearest_centroids(
    session: Session,
    secrets: PairwiseSecrets,
    two_party: TwoParty | None,
    compute: tuple[str, str],
    task: KMeansParameters,
    scores: NDArray[np.int64],
) -> Labels:
    """Opens to all the nearest centroid of each row, from all parties' parts of the distances."""
    rows = len(scores)
    words = np.ascontiguousarray(scores.T).reshape(-1).view(np.uint64)
    share = await shared_sum(session.lane("sum"), secrets, words, compute)
    least: AdditiveShare | None = None
    if share is not None and two_party is not None:
        columns = [share[start : start + rows] for start in range(0, task.k * rows, rows)]
        least = await argmin(session.lane("argmin"), two_party, columns, task.largest_distance)
    labels = await open_positions(session, least, label="assignments", holders=compute, number=rows, candidates=task.k)
    if labels is None:
        raise AssertionError("assignments are opened to all")
    if (labels >= task.k).any():
        peer = None if two_party is None else two_party.peer
        raise MalformedMessage(
            f"{peer or ' or '.join(compute)} opened clusters that there are not; check that node", party=peer
        )
    return labels


async def gather_centroids(
    session: Session, own: Centroids, task: KMeansParameters, holders: dict[str, str], learners: tuple[str, ...]
) -> Centroids | None:
    """Every party opens its coordinates of the centroids to the learners."""
    if own.shape[1]:
        await session.open("centroids", own.astype(np.uint64).reshape(-1), learners)
    if session.me not in learners:
        return None
    whole = np.zeros((task.k, len(task.attributes)), np.int64)
    for party in session.parties:
        places = _places(task, holders, party)
        if party == session.me:
            whole[:, places] = own
        if party == session.me or not places:
            continue
        opened = await session.receive_opened(party, "centroids", np.uint64, (task.k * len(places),))
        coordinates = opened.reshape(task.k, len(places))
        limits = np.array([task.attributes[place].steps << task.fraction_bits for place in places], np.uint64)
        if (coordinates > limits).any():
            raise MalformedMessage(f"{party} opened centroids outside the public bounds; check that node", party=party)
        whole[:, places] = coordinates.astype(np.int64)
    return whole


def _places(task: KMeansParameters, holders: dict[str, str], party: str) -> list[int]:
    """The numbers of a party's attributes."""
    return [place for place, each in enumerate(task.attributes) if holders[each.name] == party]
