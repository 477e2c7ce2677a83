"""k-means over columns at several parties, or groups, that hides which rows are common and the clusters of rows.

Rows are aligned by union, so nobody knows which positions are common: of groups, whose parties hold the same columns of
different rows, those at which a party of each has a row.

    1. no id is at two parties of a group, and N is counted (`aligned.begin`)
    2. how many parties have a row at each position, and the points, are summed up into shares of the two computing
       parties; a position is common if as many have a row there as there are groups. What lies elsewhere is replaced by
       zeros (`equal_to`, `select`)
    Then in every iteration, from public centroids:
    3. both compute their shares of ‖c‖² − 2·x·c by themselves, and find each position's least without learning it
       (`argmin`)
    4. of each cluster but the last they take its points (`equal_to`, `select`) and add them up; the last has the rest
    5. one secure sum opens sizes and sums of all clusters to all, who update the centroids alike.

Rounds:     those of the parts; in an iteration those of `argmin`, 5 for each cluster but one, and those of a sum.
Output:     exactly the centroids and sizes of the joined table's rows, to all parties.
Adversary:  semi-honest. All that is not opened withstands any parties but both computing parties together, who could
            read the others' coordinates of every position, not at whose rows.
Leakage:    `openings` lists all that is opened, `learned` what follows from it.
Source:     Jagannathan and Wright, "Privacy-preserving distributed k-means clustering over arbitrarily partitioned
            data", KDD 2005, where clusters of rows and all centroids are shared as well; here sums are opened, as they
            are where parties hold whole rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.masks import Words
from crypto.primitives.shares.xor import XorShare
from crypto.protocols.comparison.argmin import argmin, position_bits, position_word, select
from crypto.protocols.comparison.comparison import equal_to
from crypto.protocols.comparison.two_party import Pairs, TwoParty
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.sums.secure_sum import shared_sum, word_for
from link.disclosure import Declared, Learned
from link.errors import ConfigurationError
from link.journal import Known
from link.session import Session
from link.steps import step
from mining.joint.models.aligned import AlignedAttributes, begin, columns_opening
from mining.joint.models.kmeans import (
    JointClusters,
    checked_clusters,
    clusters_learned,
    clusters_opening,
    open_clusters,
)
from mining.joint.models.totals import rows_opening
from mining.joint.vertical.grouped.groups import Groups, column_holders
from mining.joint.vertical.parameters import in_job_order
from mining.models.kmeans import Centroids, Clusters, KMeansParameters, updated


def openings(task: KMeansParameters, parties: tuple[str, ...]) -> tuple[Declared, ...]:
    """Every label under which something may be opened, with its recipients and the most values.

    Args:
        task: The public parameters.
        parties: Of the job.
    """
    return columns_opening(parties, task.attributes), rows_opening(parties), clusters_opening(task, parties)


def learned(parties: tuple[str, ...], holders: str) -> tuple[Learned, ...]:
    """Who learns what, in words.

    Args:
        parties: Of the job.
        holders: Who have columns, in a word: "parties" or "groups".
    """
    common = f"the number of rows that all {holders} have in common"
    return (
        *clusters_learned(parties),
        Learned(parties, "membership", "which party has which column of the model").main("whose each column is"),
        Learned(parties, "size", common).main("the number of common rows"),
    )


def sums_word(task: KMeansParameters, n_rows: int) -> np.dtype[np.unsignedinteger[np.typing.NBitBase]]:
    """The shortest word for sizes and sums of clusters of so many rows."""
    return word_for(n_rows * max(each.steps for each in task.attributes))


@dataclass(frozen=True, eq=False, slots=True)
class _Points:
    """What a computing party has of all positions.

    Attributes:
        two_party: Its half of the agreement with the other one.
        columns: Shares of the coordinates, and of a column of ones before them; zeros where a row is not common.
    """

    two_party: TwoParty
    columns: list[AdditiveShare]


async def cluster(
    session: Session,
    pairs: Pairs,
    aligned: AlignedAttributes,
    task: KMeansParameters,
    compute: tuple[str, str],
    groups: Groups = (),
) -> JointClusters:
    """Runs one party's part.

    Args:
        session: A lane of the job's session.
        pairs: From `two_party.pairs_of` in this session.
        aligned: This party's attributes over the positions of a union.
        task: The public parameters, equal at all parties.
        compute: The two computing parties.
        groups: Of parties that hold the same columns of different rows; none: every party holds columns of its own.

    Raises:
        ConfigurationError: As for `one_holder_each`; rows are not aligned by union, or too many or too few.
        InputDataError: No row is common to all, or some id is at two parties of a group.
        ProtocolViolation: What was opened cannot be sums of rows.
    """
    if aligned.presence is None:
        raise ConfigurationError("clusters of rows are hidden where rows are aligned by union")
    compute = in_job_order(session.parties, compute)
    secrets, n_rows, _, _ = await begin(session, pairs, aligned, task.attributes, (), groups, compute)
    task.check_rows(n_rows)
    two_party = None
    if session.me in compute:
        (peer,) = set(compute) - {session.me}
        two_party = pairs[peer]
    n_holders = len(column_holders(groups, session.parties))
    points = await _shared_points(session.lane("points"), secrets, two_party, compute, aligned, task, n_holders)
    centroids, converged, iteration = task.start(), False, 0
    sizes = np.zeros(task.k, np.int64)
    while iteration < task.max_iterations and not converged:
        session.progress("iterations", iteration, task.max_iterations)
        lane = session.lane(f"iteration {iteration}")

        async def take(lane: Session = lane, centroids: Centroids = centroids) -> Known:
            own = np.zeros(task.k * (1 + len(task.attributes)), sums_word(task, n_rows))
            if points is not None:
                own = await _addends(lane, points, centroids, task, own.dtype)
            return await open_clusters(lane, secrets, own)

        sizes, sums = checked_clusters(lane, task, n_rows, (await step(lane, "clusters", take)).public)
        moved = updated(centroids, sums, sizes, task.fraction_bits)
        converged, centroids, iteration = np.array_equal(moved, centroids), moved, iteration + 1
    return JointClusters(n_rows, Clusters(centroids, sizes, iteration, converged), None)


async def _shared_points(
    session: Session,
    secrets: PairwiseSecrets,
    two_party: TwoParty | None,
    compute: tuple[str, str],
    aligned: AlignedAttributes,
    task: KMeansParameters,
    n_holders: int,
) -> _Points | None:
    """Step 2; None at a party that computes nothing."""
    here = aligned.presence
    assert here is not None
    counted = await shared_sum(session.lane("presence"), secrets, here.astype(word_for(n_holders)), compute)
    columns = []
    for place, attribute in enumerate(task.attributes):
        cells = aligned.cells.get(attribute.name)
        own = np.zeros(len(here), np.uint64) if cells is None else np.where(here, cells, 0).astype(np.uint64)
        columns.append(await shared_sum(session.lane(f"column {place}"), secrets, own, compute))
    if two_party is None or counted is None:
        return None
    common = await equal_to(session.lane("common"), two_party, counted, n_holders, n_holders.bit_length())
    ones = AdditiveShare(np.zeros(len(here), np.uint64), two_party.me, two_party.holders).plus_public(1)
    shared = [ones, *(each for each in columns if each is not None)]
    return _Points(two_party, await _selected(session.lane("points"), two_party, common, shared))


async def _addends(
    session: Session,
    points: _Points,
    centroids: Centroids,
    task: KMeansParameters,
    word: np.dtype[np.unsignedinteger[np.typing.NBitBase]],
) -> Words:
    """Steps 3 and 4: a computing party's addends of sizes and sums of all clusters, cluster by cluster."""
    two_party = points.two_party
    scores = await session.compute(_scores, points.columns[1:], centroids, task.fraction_bits)
    nearest = await argmin(session.lane("argmin"), two_party, scores, task.largest_distance)
    short = [AdditiveShare(each.values.astype(word), each.holder, each.holders) for each in points.columns]
    rest: Words = np.array([each.values.sum(dtype=word) for each in short], word)
    found = np.zeros((task.k, len(short)), word)
    bits, width = position_bits(task.k), 8 * np.dtype(position_word(task.k)).itemsize
    for number in range(task.k - 1):
        lane = session.lane(f"cluster {number}")
        inside = await equal_to(lane.lane("is"), two_party, nearest, number << (width - bits), width)
        taken = await _selected(lane.lane("points"), two_party, inside, short)
        found[number] = [each.values.sum(dtype=word) for each in taken]
        rest -= found[number]
    found[-1] = rest
    return found.reshape(-1)


def _scores(columns: Sequence[AdditiveShare], centroids: Centroids, fraction_bits: int) -> list[AdditiveShare]:
    """By centroid a share of ‖c‖² − 2·x·c, which is what `mining.models.kmeans.partial_scores` computes."""
    found = []
    for centroid in centroids.tolist():
        score = columns[0].times_public(0).plus_public(sum(each * each for each in centroid))
        for column, coordinate in zip(columns, centroid, strict=True):
            score -= column.times_public(coordinate << (fraction_bits + 1))
        found.append(score)
    return found


async def _selected(
    session: Session, two_party: TwoParty, bits: XorShare, columns: Sequence[AdditiveShare]
) -> list[AdditiveShare]:
    """Shares of several columns where a bit is set, and of zeros elsewhere, all at once."""
    rows, number = bits.number, len(columns)
    repeated = bits[np.tile(np.arange(rows), number)]
    joined = AdditiveShare(np.concatenate([each.values for each in columns]), two_party.me, two_party.holders)
    chosen = await select(session, two_party, repeated, joined)
    return [chosen[start * rows : (start + 1) * rows] for start in range(number)]
