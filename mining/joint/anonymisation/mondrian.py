"""Joint Mondrian: recursive partitioning of the rows of all parties, a level of the recursion at a time.

A region is a box of public places. Of a cut behind the place v of an axis, every party knows how many of its rows in
the region lie on either side, and shares these counts, capped, between the computing parties.

For all open regions of a level at once:
    1. spans: for every axis and cut, [left ≥ 1] and [right ≥ 1] are opened. They reveal the first and the last place
       that occurs, and nothing else: the tight box, which for the regions that remain is the release itself, but that
       of a tree it shows the label which these two have in common
    2. from the widest axis on, of equal widths in their order: for every cut of the axis, a_v is the AND of all that is
       asked of both sides (`conditions`). Opened is whether there is any; where there is none, the next axis is tried
    3. of the first axis with an allowed cut, the most balanced one, of two the smaller, is looked for obliviously: the
       least |left − right| of those with a_v = 1 (`argmin`). Its place alone is opened
    4. the region is divided; one without an allowed cut remains
    5. where unions of good classes may be bad (δ-disclosure), the regions that remain are judged once more as they are
       shown: those of a tree may show the same label. Opened is whether any union fails, which ends the job

Rounds:     for each level those of a comparison for step 1, those of step 2 for each axis that is tried, and those of a
            tournament.
Output:     exactly the regions of strict Mondrian on the pooled rows.
Adversary:  semi-honest; counts withstand all parties but both computing parties together.
Leakage:    boxes of all regions, of trees by their first and last leaves that occur; axes and places of the cuts. Of k
            alone these follow from the boxes that remain, up to which of two neighbouring cuts it was. With other
            requirements: that a cut was refused. No count, and no median of an axis that was not cut.
Source:     LeFevre, DeWitt and Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006, section 4; Jurczyk and
            Xiong, "Distributed anonymization", DBSec 2009 (rows at several parties).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.xor import XorShare
from crypto.protocols.comparison.argmin import argmin, open_positions, select
from crypto.protocols.comparison.comparison import at_least, width_for
from crypto.protocols.comparison.conversion import to_additive
from crypto.protocols.comparison.shared_bits import open_bits
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.sums.secure_sum import shared_sum
from link.errors import ConfigurationError, MalformedMessage, shareable
from link.journal import Known
from link.session import Session
from link.steps import step
from link.tasks import together
from mining.joint.anonymisation.axes import Places, PublicAxis, axes_of
from mining.joint.anonymisation.conditions.bits import all_of, node_sums, word_of
from mining.joint.anonymisation.conditions.conditions import condition_bits
from mining.joint.anonymisation.conditions.models import SensitiveTests
from mining.joint.anonymisation.parameters import JointAnonymisation
from mining.joint.anonymisation.regions import Cuts, OwnRegions
from mining.joint.anonymisation.rows import Counter


@dataclass(frozen=True, eq=False)
class Boxes:
    """The regions that remain.

    Attributes:
        axes: Of the quasi-identifiers.
        low: First place of each region on each axis, shape (regions, d).
        high: Last place, shape (regions, d).
    """

    axes: tuple[PublicAxis, ...]
    low: Places
    high: Places

    @property
    def spans(self) -> list[float]:
        """Of all regions together on each axis: those of the pooled table."""
        lows, highs = self.low.min(axis=0).tolist(), self.high.max(axis=0).tolist()
        return [axis.span(low, high) for axis, low, high in zip(self.axes, lows, highs, strict=True)]


@dataclass(frozen=True, eq=False)
class Partitioner:
    """The parties' common means to cut regions.

    Attributes:
        session: The lane of the partitioning.
        secrets: Pairwise secrets of this session.
        two_party: This party's half of what the computing parties agree upon; None at the others.
        task: The public parameters.
        tests: Of sensitive values.
        n_rows: N, of all parties.
        axes: Of the quasi-identifiers.
        own: This party's rows in the regions.
    """

    session: Session
    secrets: PairwiseSecrets
    two_party: TwoParty | None
    task: JointAnonymisation
    tests: SensitiveTests
    n_rows: int
    axes: tuple[PublicAxis, ...]
    own: OwnRegions

    async def run(self) -> tuple[Boxes, dict[str, int]]:
        """Cuts until no region can be cut.

        Returns:
            The regions that remain, and how much work it was. `own` has the region of each row.

        Raises:
            ConfigurationError: All rows together do not meet the requirements, or regions that show the same do not.
            MalformedMessage: A computing party sent messages of another size, or opened a cut that there is not.
        """
        await self._check_whole()
        low = np.zeros((1, len(self.axes)), np.int64)
        high = np.array([[len(axis.coordinates) - 1 for axis in self.axes]])
        done: list[tuple[Places, Places]] = []
        spans, levels, tried = None, 0, 0
        while len(low):
            level = partial(self._level, levels, low, high, spans)
            low, high, axis, place, asked = (await step(self.session, f"level {levels}", level)).public
            spans = self._spans(low, high) if not levels else spans
            tried, levels = tried + asked, levels + 1
            remains = axis < 0
            done.append((low[remains], high[remains]))
            await self.session.compute(self.own.divide, axis, place, sum(len(each) for each, _ in done[:-1]))
            low, high = _children(low, high, axis, place)
            self.session.progress("cutting regions", levels, levels + 1)
        boxes = Boxes(self.axes, np.concatenate([each for each, _ in done]), np.concatenate([each for _, each in done]))
        if not self.task.requirements.monotone:
            await self._check_shown(boxes)
        return boxes, {"regions": len(boxes.low), "levels": levels, "cuts_tried": tried}

    async def _level(self, number: int, low: Places, high: Places, spans: NDArray[np.float64] | None) -> Known:
        """The tight boxes of the regions of a level, and their cuts, which all parties learn."""
        lane = self.session.lane(f"level {number}")
        low, high = await self._tighten(lane.lane("spans"), low, high)
        widths = np.stack(
            [axis.coordinates[high[:, j]] - axis.coordinates[low[:, j]] for j, axis in enumerate(self.axes)]
        )
        cuts = await self._cut(lane, low, high, widths.T / (self._spans(low, high) if spans is None else spans))
        return Known((low, high, *cuts))

    def _spans(self, low: Places, high: Places) -> NDArray[np.float64]:
        """How wide the one region of the first level is on each axis."""
        ends = zip(self.axes, low[0].tolist(), high[0].tolist(), strict=True)
        return np.array([axis.width(a, b) for axis, a, b in ends])

    async def _check_whole(self) -> None:
        """Without suppression, all rows as one class are the last resort."""
        if (await step(self.session, "whole", self._whole_fails)).public:
            raise shareable(
                ConfigurationError(
                    "all rows of all parties as one class fail the requirements; weaken the model or insider_k"
                )
            )

    async def _whole_fails(self) -> Known:
        lane = self.session.lane("whole")
        counts = np.array([self.own.n_rows])
        met = await condition_bits(
            lane.lane("conditions"), self.secrets, self.two_party, self.task, self.tests, counts, self.own.histogram
        )
        opened = await open_bits(
            lane, None if met is None else ~met, label="verdicts", holders=self.task.compute, number=1
        )
        assert opened is not None  # it is opened to all
        return Known(bool(opened[0]))

    async def _check_shown(self, boxes: Boxes) -> None:
        """Step 5: regions that show the same are one class, and a model that is not monotone may refuse it."""
        columns = [axis.texts(boxes.low[:, j], boxes.high[:, j]) for j, axis in enumerate(self.axes)]
        numbers: dict[tuple[str, ...], int] = {}
        unions = np.array([numbers.setdefault(shown, len(numbers)) for shown in zip(*columns, strict=True)])
        if len(numbers) == len(unions):
            return
        lane, fails = self.session.lane("shown"), None
        met = await condition_bits(
            lane.lane("conditions"),
            self.secrets,
            self.two_party,
            self.task,
            self.tests,
            np.bincount(unions[self.own.classes], self.own.weights, len(numbers)).astype(np.int64),
            partial(self.own.union_histograms, unions),
        )
        if met is not None and self.two_party is not None:
            each = await to_additive(lane.lane("number"), self.two_party, ~met)
            fails = await at_least(lane.lane("some"), self.two_party, node_sums(each, [0]), 1, width_for(len(numbers)))
        opened = await open_bits(lane, fails, label="shown classes", holders=self.task.compute, number=1)
        assert opened is not None  # it is opened to all
        if opened[0]:
            raise shareable(
                ConfigurationError(
                    "regions that show the same quasi-identifiers fail the requirements together; weaken the model, or "
                    "take another algorithm"
                )
            )

    async def _tighten(self, lane: Session, low: Places, high: Places) -> tuple[Places, Places]:
        """Step 1: the boxes of what occurs."""
        region, axis = np.nonzero(high > low)
        if not len(region):
            return low, high
        cuts = await self.session.compute(self.own.cuts, region, axis, low, high)
        sides = np.minimum(np.concatenate([cuts.left, cuts.right]), 1)
        largest, bits = len(lane.parties), None
        shared = await shared_sum(lane.lane("sides"), self.secrets, sides.astype(word_of(largest)), self.task.compute)
        if shared is not None and self.two_party is not None:
            bits = await at_least(lane.lane("some"), self.two_party, shared, 1, width_for(largest))
        opened = await open_bits(lane, bits, label="spans", holders=self.task.compute, number=len(sides))
        assert opened is not None  # it is opened to all
        left, right = np.split((opened != 0).astype(np.int64), 2)
        tight_low, tight_high = low.copy(), high.copy()
        tight_low[region, axis] += np.add.reduceat(1 - left, cuts.starts)
        tight_high[region, axis] = low[region, axis] + np.add.reduceat(right, cuts.starts)
        if (tight_low > tight_high).any():
            raise MalformedMessage(
                f"{' and '.join(self.task.compute)} opened spans that no rows have; check these nodes"
            )
        return tight_low, tight_high

    async def _cut(
        self, lane: Session, low: Places, high: Places, widths: NDArray[np.float64]
    ) -> tuple[Places, Places, int]:
        """Steps 2 and 3: axis and place of each region's cut, −1 where there is none, and how many were tried."""
        order = np.argsort(-widths, axis=1, kind="stable")
        axis, place, tried = np.full(len(low), -1), np.full(len(low), -1), 0
        open_ = np.arange(len(low))
        for choice in range(order.shape[1]):
            chosen = order[open_, choice]
            wide = widths[open_, chosen] > 0  # if this axis has no width, further ones have none either
            open_, chosen = open_[wide], chosen[wide]
            if not len(open_):
                break
            step = lane.lane(f"choice {choice}")
            cuts = await self.session.compute(self.own.cuts, open_, chosen, low, high)
            allowed = await self._allowed(step, cuts)
            splits = await self._any(step.lane("any"), allowed, cuts)
            tried += len(open_)
            if splits.any():
                found = await self._most_balanced(step.lane("balance"), allowed, cuts, splits)
                axis[open_[splits]] = chosen[splits]
                place[open_[splits]] = low[open_[splits], chosen[splits]] + found
            open_ = open_[~splits]
        return axis, place, tried

    async def _allowed(self, lane: Session, cuts: Cuts) -> XorShare | None:
        """Shares of a_v for all cuts."""
        bits = await condition_bits(
            lane.lane("conditions"),
            self.secrets,
            self.two_party,
            self.task,
            self.tests,
            np.concatenate([cuts.left, cuts.right]),
            partial(self.own.side_histograms, cuts),
        )
        if bits is None or self.two_party is None:
            return None
        number = len(cuts.left)
        sides = [bits[np.arange(number)], bits[np.arange(number, 2 * number)]]
        return await all_of(lane.lane("both"), self.two_party, sides)

    async def _any(self, lane: Session, allowed: XorShare | None, cuts: Cuts) -> NDArray[np.bool_]:
        """Opens which regions have an allowed cut."""
        some = None
        if allowed is not None and self.two_party is not None:
            each = await to_additive(lane.lane("number"), self.two_party, allowed)
            most = int(cuts.sizes.max())
            some = await at_least(lane.lane("some"), self.two_party, node_sums(each, cuts.starts), 1, width_for(most))
        opened = await open_bits(lane, some, label="splits", holders=self.task.compute, number=len(cuts.sizes))
        assert opened is not None  # it is opened to all
        return np.asarray(opened != 0, bool)

    async def _most_balanced(
        self, lane: Session, allowed: XorShare | None, cuts: Cuts, splits: NDArray[np.bool_]
    ) -> Places:
        """Opens the most balanced allowed cut of each region that has one, counted from its first cut."""
        kept = np.flatnonzero(np.repeat(splits, cuts.sizes))
        own = (cuts.left - cuts.right)[kept].astype(np.uint64)  # modulo 2^64
        shared = await shared_sum(lane.lane("sum"), self.secrets, own, self.task.compute)
        worst, scores = self.n_rows + 1, None
        if shared is not None and allowed is not None and self.two_party is not None:
            above = await at_least(lane.lane("sign"), self.two_party, shared, 0, width_for(worst))
            below = await select(lane.lane("below"), self.two_party, ~above, shared)
            apart = (shared - below.times_public(2)).plus_public(-worst)
            scores = (await select(lane.lane("allowed"), self.two_party, allowed[kept], apart)).plus_public(worst)
        sizes = cuts.sizes[splits]
        starts = np.cumsum(sizes) - sizes
        groups = np.ceil(np.log2(np.maximum(sizes, 1))).astype(int)
        found = np.empty(len(sizes), np.int64)

        async def group(number: int, part: Session) -> None:
            rows = np.flatnonzero(groups == number)
            found[rows] = await self._least(part, scores, starts[rows], sizes[rows], worst)

        await together(group(number, lane.lane(f"up to {1 << number}")) for number in np.unique(groups).tolist())
        return found

    async def _least(
        self, lane: Session, scores: AdditiveShare | None, starts: Places, sizes: Places, worst: int
    ) -> Places:
        """Opens the place of the least score of each region; all are filled up to as many as the largest has."""
        columns, least = int(sizes.max()), None
        if scores is not None and self.two_party is not None:
            inside = np.arange(columns) < sizes[:, None]
            padding = worst if self.two_party.is_first else 0
            table = np.full((len(sizes), columns), padding, np.uint64)
            table[inside] = scores.values[(starts[:, None] + np.arange(columns))[inside]]
            shares = [AdditiveShare(column.copy(), scores.holder, scores.holders) for column in table.T]
            least = await argmin(lane, self.two_party, shares, worst)
        opened = await open_positions(
            lane, least, label="cuts", holders=self.task.compute, number=len(sizes), candidates=columns
        )
        assert opened is not None  # it is opened to all
        if (opened >= sizes).any():
            raise MalformedMessage(
                f"{' and '.join(self.task.compute)} opened cuts that there are not; check these nodes"
            )
        return opened


def partitioner(
    session: Session,
    secrets: PairwiseSecrets,
    two_party: TwoParty | None,
    task: JointAnonymisation,
    tests: SensitiveTests,
    counter: Counter,
    n_rows: int,
) -> Partitioner:
    """The means to cut this party's rows with those of the others; see `Partitioner`."""
    axes = axes_of(task.quasi_identifiers)
    own = OwnRegions.of(counter, axes)
    return Partitioner(session, secrets, two_party, task, tests, n_rows, axes, own)


def _children(low: Places, high: Places, axis: Places, place: Places) -> tuple[Places, Places]:
    """Boxes of both sides of each cut, the left one first."""
    cut = np.flatnonzero(axis >= 0)
    lows, highs = np.repeat(low[cut], 2, axis=0), np.repeat(high[cut], 2, axis=0)
    sides: Sequence[int] = range(0, 2 * len(cut), 2)
    highs[sides, axis[cut]] = place[cut]
    lows[[side + 1 for side in sides], axis[cut]] = place[cut] + 1
    return lows, highs
