"""What all rows lose at each level of each quasi-identifier, Λ: public where no small count follows from it.

Λ of a level is Σ n_l·(loss of label l). Losses come with the hierarchies, and the author of these can choose losses
by which single counts n_l are read off Λ, like digits. So Λ is opened only of levels of which each label might be a
class of a release by its size:

    1. every party shares Λ, and its rows with each label, capped, of all levels but the lowest and the highest. There
       Λ is known: 0, and the most that N rows can lose
    2. the computing parties test [n_l = 0] ∨ [n_l ≥ k] and what is asked of the parties' parts of a class (`insiders`).
       Opened is one bit a level: whether all its labels pass
    3. Λ of the levels that pass is opened. Levels are nested: all that follows from several is about unions of labels
       that nobody has, or at least k rows
    4. of any other level Λ stays shared. The opened one of the nearest level below bounds it, since Λ grows with the
       level

Where nothing may be suppressed, a node with a level that does not pass cannot be released.

Rounds:     1, those of two comparisons, and 2.
Adversary:  semi-honest; shares withstand all parties but both computing parties together.
Leakage:    the bits, and Λ of levels that pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anonymize.fulldomain.lattice import Node
from anonymize.hierarchies.hierarchy import Hierarchy
from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.xor import XorShare
from crypto.protocols.comparison.comparison import at_least, width_for
from crypto.protocols.comparison.conversion import to_additive
from crypto.protocols.comparison.shared_bits import open_bits, open_values
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.sums.secure_sum import shared_sum
from link.journal import Known
from link.session import Session
from link.steps import step
from mining.joint.anonymisation.conditions.bits import all_of, node_sums, none_or_enough, word_of
from mining.joint.anonymisation.conditions.insiders import insider_bits
from mining.joint.anonymisation.parameters import JointAnonymisation
from mining.joint.anonymisation.rows import Cells, label_losses
from mining.joint.tally import Mask, no_sum


class Level(NamedTuple):
    """A level of a quasi-identifier, by its place."""

    place: int
    level: int


@dataclass(frozen=True, eq=False)
class Losses:
    """What is known of Λ.

    Attributes:
        task: The public parameters.
        least: Λ or, where that is not opened, the nearest opened one below, shape (levels of all quasi-identifiers,).
        passed: By level that was asked about, whether Λ is opened.
        rest: At a computing party, the share of what Λ is more than `least`, of the same shape.
    """

    task: JointAnonymisation
    least: NDArray[np.int64]
    passed: dict[Level, bool]
    rest: AdditiveShare | None

    def beyond(self, node: Node) -> AdditiveShare:
        """At a computing party, the share of what all rows lose at a node more than its public bound, shape (1,)."""
        assert self.rest is not None
        own = self.rest.values[_starts(self.task) + np.array(node)]
        return AdditiveShare(own.sum(keepdims=True, dtype=np.uint64), self.rest.holder, self.rest.holders)


def levels_between(task: JointAnonymisation) -> list[Level]:
    """The levels that are neither the lowest nor the highest of their quasi-identifiers: their Λ follow from no N."""
    return [Level(place, level) for place, each in enumerate(task.hierarchies) for level in range(1, each.height)]


async def open_losses(
    session: Session,
    secrets: PairwiseSecrets,
    two_party: TwoParty | None,
    task: JointAnonymisation,
    occurring: Sequence[Cells],
    n_rows: int,
    *,
    shared: bool = False,
) -> Losses:
    """Runs one party's part.

    Args:
        session: A lane of its own.
        secrets: Pairwise secrets of this session.
        two_party: At a computing party its half of the agreement with the other.
        task: The public parameters.
        occurring: By quasi-identifier this party's addend of how many rows have each leaf.
        n_rows: N, of all parties.
        shared: Whether these are shares modulo 2^64, and not rows of parties, which count up to k.

    Raises:
        ProtocolViolation: What was opened is no sum of losses.
    """
    unit, asked = task.loss_unit(n_rows), levels_between(task)
    own = np.concatenate([losses_by_level(*each, unit) for each in zip(task.hierarchies, occurring, strict=True)])
    summed = await shared_sum(session.lane("sum"), secrets, own, task.compute)
    passed = np.zeros(0, np.bool_)
    if asked:
        counts = [_label_counts(task.hierarchies[place], level, occurring[place]) for place, level in asked]

        async def decide() -> Known:
            largest = n_rows if shared else None
            return Known(await _open_passed(session.lane("levels"), secrets, two_party, task, counts, largest))

        passed = (await step(session, "open levels", decide)).public
    starts, tops = _starts(task), np.cumsum(task.shape) - 1
    places = np.array([starts[place] + level for place, level in asked], np.int64)[passed]
    total = np.zeros(len(own), np.int64)
    total[tops] = [n_rows * unit if len(each.leaves) > 1 else 0 for each in task.hierarchies]
    if len(places):
        part = None if summed is None else AdditiveShare(summed.values[places], summed.holder, summed.holders)

        async def reveal() -> Known:
            return Known(await open_values(session, part, label="losses", holders=task.compute, number=len(places)))

        opened = (await step(session, "losses", reveal)).public
        assert opened is not None  # it is opened to all
        if (opened > n_rows * unit).any():
            raise no_sum(session)
        total[places] = opened.astype(np.int64)
    public = np.zeros(len(own), np.bool_)
    public[[*starts, *tops, *places]] = True
    least = np.concatenate([np.maximum.accumulate(part) for part in np.split(total, starts[1:])])
    if (least[public] != total[public]).any():
        raise no_sum(session)
    rest = None
    if summed is not None:
        beyond = summed.plus_public((-least).astype(np.uint64))
        rest = AdditiveShare(np.where(public, np.uint64(0), beyond.values), summed.holder, summed.holders)
    return Losses(task, least, dict(zip(asked, passed.tolist(), strict=True)), rest)


# -- steps of the above ------------------------------------------------------------------------------------------------
async def _open_passed(
    session: Session,
    secrets: PairwiseSecrets,
    two_party: TwoParty | None,
    task: JointAnonymisation,
    counts: Sequence[Cells],
    largest: int | None,
) -> Mask:
    """Step 2: by level, whether all its labels pass.

    Args:
        session: A lane of its own.
        secrets: Pairwise secrets of this session.
        two_party: At a computing party its half of the agreement with the other.
        task: The public parameters.
        counts: By level this party's rows with each label, or its share of all parties'.
        largest: The most that a share may be of; None of rows, of which no party need count more than k.
    """
    every, sizes = np.concatenate(counts), np.array([len(each) for each in counts])
    own = np.minimum(every, task.k) if largest is None else every
    largest = largest or len(session.parties) * task.k
    shared = await shared_sum(session.lane("counts"), secrets, own.astype(word_of(largest)), task.compute)
    parts = await insider_bits(session.lane("insiders"), secrets, two_party, task, every)
    bits: XorShare | None = None
    if two_party is not None and shared is not None:
        enough = await none_or_enough(session.lane("enough"), two_party, shared, task.k, largest)
        fine = await all_of(session.lane("rules"), two_party, [enough, *parts])
        failing = await to_additive(session.lane("number"), two_party, ~fine)
        number = node_sums(failing, np.cumsum(sizes) - sizes)
        bits = ~(await at_least(session.lane("all"), two_party, number, 1, width_for(int(sizes.max()))))
    opened = await open_bits(session, bits, label="open levels", holders=task.compute, number=len(counts))
    assert opened is not None  # it is opened to all
    return np.asarray(opened != 0, np.bool_)


def _starts(task: JointAnonymisation) -> NDArray[np.int64]:
    """Where each quasi-identifier's levels start among all."""
    sizes = np.array(task.shape, np.int64)
    return np.cumsum(sizes) - sizes


def _label_counts(hierarchy: Hierarchy, level: int, occurring: Cells) -> Cells:
    """Rows with each label of a level."""
    counts = np.zeros(len(hierarchy.labels[level]), np.int64)
    np.add.at(counts, hierarchy.maps[level], occurring)
    return counts


def losses_by_level(hierarchy: Hierarchy, occurring: Cells, unit: int) -> NDArray[np.uint64]:
    """What rows lose at each level of a quasi-identifier, shape (levels,).

    Args:
        hierarchy: Of the quasi-identifier.
        occurring: Rows with each leaf.
        unit: What a suppressed cell loses.
    """
    levels = range(hierarchy.height + 1)
    found = [occurring @ label_losses(hierarchy.leaf_counts(each), unit)[hierarchy.maps[each]] for each in levels]
    return np.array(found, np.int64).view(np.uint64)
