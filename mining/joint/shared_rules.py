"""Association rules where no support is opened: the computing parties decide on shares which rules hold.

A rule X ⇒ Z∖X holds where s(Z) ≥ (num / den) · s(X), so where den·s(Z) − num·s(X) ≥ 0. The parties' counts of all
frequent itemsets are summed once and stay shared; each computing party forms the differences on its own shares, and one
batched comparison with 0 gives shared bits, which are opened. Consequents grow item by item as in
`mining.rules.growth`: every size of consequent is one batch, up to `FRONTIER` rules at a time.

Rounds:     1 for the sum, none with two parties; then per batch those of `at_least`, and 1 to open its bits. Three
            computing parties take those of `crypto.protocols.replicated`.
Output:     exactly the rules that the pooled supports give, at the learners.
Adversary:  semi-honest. Supports are private against any colluders but both computing parties together, or any two of
            three, who learn the supports over the others, as they do of all that they hold shares of.
Leakage:    which rules hold, to the learners and to the computing parties, who must know it to go on. Nothing else: the
            first batch follows from the frequent itemsets, and every later one from the rules that hold. In particular
            not how far a rule is from min_confidence. Where min_confidence is 0 nothing is summed, compared or opened.
Source:     Agrawal & Srikant, Fast algorithms for mining association rules, VLDB 1994, section 3; Kantarcioglu and
            Clifton, Privacy-preserving distributed mining of association rules on horizontally partitioned data, IEEE
            TKDE 16(9), 2004, "Securely finding confidence of a rule": the same test, of a sum against a threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import comb
from typing import Any, Protocol

import numpy as np

from crypto.primitives.shares.additive import AdditiveShare
from crypto.protocols.comparison.comparison import width_for
from crypto.protocols.comparison.shared_bits import open_bits
from link.disclosure import Declared, Learned
from link.errors import ConfigurationError, shareable
from link.journal import Known
from link.session import Session
from link.steps import step
from mining.itemsets import Itemsets
from mining.joint.parameters import RuleParameters
from mining.joint.tally import Addends, Mask, Tally, Tallying
from mining.rules.association import Rules
from mining.rules.growth import LONGEST, MAX_RULES, Batch, Family, RuleGrowth

MAX_EXAMINED = 100_000_000  # rules of one job: some minutes, and what the statement declares at most

_WORDS: tuple[np.dtype[np.unsignedinteger[Any]], ...] = (
    np.dtype(np.uint8),
    np.dtype(np.uint16),
    np.dtype(np.uint32),
    np.dtype(np.uint64),
)
LARGEST = 1 << 62  # of den·N: what is compared fits 64 bits with its sign


class DecidingRules(Tallying, Protocol):
    """What the statement on rules needs to know of a job; see `HorizontalMining`."""

    @property
    def max_length(self) -> int | None:
        """The most items of an itemset."""

    @property
    def max_candidates(self) -> int:
        """The most candidates of one length."""

    @property
    def rules(self) -> RuleParameters | None:
        """The rules that are decided on shares."""


@dataclass(frozen=True, slots=True)
class ConfidenceTest:
    """In what words den·s(Z) − num·s(X) is formed and compared with 0.

    Attributes:
        num: min_confidence is num / den, reduced.
        den: See `num`.
        word: The shortest with room for the width.
        width: Bits of a comparison. Since s(Z) ≤ s(X) ≤ N, the difference lies in −num·N … (den − num)·N.
    """

    num: int
    den: int
    word: np.dtype[np.unsignedinteger[Any]]
    width: int

    @classmethod
    def of(cls, min_confidence: Decimal, n_rows: int) -> ConfidenceTest:
        """For supports of up to N.

        Raises:
            ConfigurationError: den·N has no room in 62 bits.
        """
        num, den = Fraction(min_confidence).as_integer_ratio()
        if den * n_rows >= LARGEST:
            raise shareable(
                ConfigurationError(
                    f"min_confidence is {min_confidence}, which has too many digits to be compared exactly over "
                    "so many transactions; round it"
                )
            )
        width = width_for(max(num, den - num) * n_rows)
        word = next(word for word in _WORDS if 8 * word.itemsize >= width)
        return cls(num, den, word, width)


async def decide_rules(
    tally: Tally, itemsets: Itemsets, counts: Sequence[Addends], rules: RuleParameters
) -> Rules | None:
    """Decides which rules hold; every party of the job calls this.

    Args:
        tally: The parties' common means.
        itemsets: All frequent itemsets, canonical, without counts; public, equal at all parties.
        counts: Per level of `itemsets`, this party's own counts of them, or what else its addends are.
        rules: Which rules are asked for.

    Returns:
        The rules, at a learner; None elsewhere.

    Raises:
        ConfigurationError: min_confidence has too many digits for so many transactions, or too many rules hold or would
            have to be examined.
        MalformedMessage: A computing party sent messages of another size.
    """
    if not itemsets.is_canonical():
        raise ValueError("rules are decided on for itemsets in canonical order, so that counts match them")
    session, task = tally.session, tally.task
    test = ConfidenceTest.of(rules.min_confidence, tally.n_rows)
    lane = session.lane("rules")
    session.progress("rules", 0, 1)  # not how many: the coordinator need not learn the result
    compared = test.num > 0 and len(itemsets.levels) > 1  # else all that are asked for hold
    supports = await _shared_supports(lane, tally, counts, test) if compared else None
    found = None
    if session.me in receivers(task, session.parties):
        family = Family(itemsets)
        growth = await session.compute(RuleGrowth, family, single=rules.consequent == "single")
        examined = 0
        while (batch := await session.compute(growth.next_batch)) is not None:
            holds = np.ones(len(batch), bool)
            if compared:
                _check_number(examined + len(batch))
                holds = await _decided(lane, f"from {examined}", tally, test, supports, batch)
            await session.compute(growth.keep, holds)
            examined += len(batch)
        if session.me in task.learners:
            found = await session.compute(Rules.of, family, growth.found())
    session.progress("rules", 1, 1)
    return found


def receivers(task: Tallying, parties: Sequence[str]) -> tuple[str, ...]:
    """Who learns which rules hold, in the order of the job: the learners and the computing parties."""
    return tuple(party for party in parties if party in task.learners or party in task.computing)


def _check_number(examined: int) -> None:
    if examined > MAX_EXAMINED:
        raise shareable(
            ConfigurationError(
                f"more than {MAX_EXAMINED} rules would have to be examined; raise min_support or min_confidence, set "
                'max_length, or use consequent = "single"'
            )
        )


async def _shared_supports(
    lane: Session, tally: Tally, counts: Sequence[Addends], test: ConfidenceTest
) -> AdditiveShare | None:
    """The supports of all itemsets, one level after the other, shared between the computing parties."""
    words = np.concatenate([level.astype(test.word) for level in counts])
    return await tally.shared(lane.lane("sum"), words, test.width)


async def _decided(
    lane: Session, name: str, tally: Tally, test: ConfidenceTest, supports: AdditiveShare | None, batch: Batch
) -> Mask:
    """As `_decide`; a step where all parties know what comes out."""
    if len(receivers(tally.task, lane.parties)) < len(lane.parties):
        return await _decide(lane.lane(name), tally, test, supports, batch)

    async def take() -> Known:
        return Known(np.packbits(await _decide(lane.lane(name), tally, test, supports, batch)))

    return np.unpackbits((await step(lane, name, take)).public, count=len(batch)).view(np.bool_)


async def _decide(
    lane: Session, tally: Tally, test: ConfidenceTest, supports: AdditiveShare | None, batch: Batch
) -> Mask:
    """Which rules of a batch hold, at the computing parties and the learners."""
    task, difference = tally.task, None
    if supports is not None:
        difference = supports[batch.whole].times_public(test.den) - supports[batch.antecedent].times_public(test.num)
    bits = await tally.compared(lane.lane("comparison"), difference, 0, test.width)
    learning = receivers(task, lane.parties)
    opened = await open_bits(lane, bits, label="rules", holders=task.computing, number=len(batch), to=learning)
    if opened is None:
        raise AssertionError("which rules hold is opened to all who go on")
    holds: Mask = opened != 0
    return holds


# -- what the statement and the plan say -------------------------------------------------------------------------------
def rules_openings(task: DecidingRules, parties: tuple[str, ...]) -> tuple[Declared, ...]:
    """The label under which it is opened which rules hold; none where that is not asked for, or needs no comparison."""
    longest = min(task.max_length or LONGEST, LONGEST)
    if task.rules is None or task.rules.min_confidence == 0 or longest < 2:
        return ()
    most = task.max_candidates * (longest - 1) * longest  # each frequent itemset less any one item
    if task.rules.consequent == "any":
        most += MAX_RULES * (longest - 2)  # each rule that holds less any one more
    most = min(most, MAX_EXAMINED)
    what = "whether each rule that is examined holds; which are examined follows from those that hold"
    return (Declared("rules", frozenset(receivers(task, parties)), what, most, "once per size of consequent"),)


def rules_learned(task: DecidingRules, parties: tuple[str, ...]) -> tuple[Learned, ...]:
    """What the parties learn of the rules, in words."""
    if task.rules is None:
        return ()
    learning = receivers(task, parties)
    others = tuple(party for party in parties if party not in learning)
    lines = [
        Learned(
            learning, "result", "which association rules hold, but no confidence and nothing of how near one is"
        ).main("which association rules hold, but no confidence")
    ]
    if others:
        lines.append(Learned(others, "membership", "nothing of the rules"))
    return tuple(lines)


@dataclass(frozen=True, slots=True)
class RuleSteps:
    """What the decision on rules moves, where every rule is examined.

    Attributes:
        sums: Itemsets whose counts are summed, in words of `word_bytes`.
        word_bytes: Of a share.
        width: Bits of a comparison.
        batches: Comparisons, and bits opened, of each size of consequent, at most.
    """

    sums: int
    word_bytes: int
    width: int
    batches: tuple[int, ...]


def rule_steps(itemsets_by_length: Sequence[int], n_rows: int, rules: RuleParameters) -> RuleSteps:
    """The steps of a decision on rules, from public sizes.

    Args:
        itemsets_by_length: How many itemsets of 1, 2, … items are frequent.
        n_rows: Transactions of all parties.
        rules: Which rules are asked for.

    Raises:
        ConfigurationError: min_confidence has too many digits for so many transactions.
    """
    test = ConfidenceTest.of(rules.min_confidence, n_rows)
    if not test.num or not any(itemsets_by_length[1:]):
        return RuleSteps(0, test.word.itemsize, test.width, ())
    longest = len(itemsets_by_length)
    sizes = range(1, 2 if rules.consequent == "single" else longest)
    batches = tuple(
        sum(number * comb(length, size) for length, number in enumerate(itemsets_by_length, 1) if length > size)
        for size in sizes
    )
    return RuleSteps(sum(itemsets_by_length), test.word.itemsize, test.width, batches)
