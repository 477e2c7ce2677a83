"""The public parameters of joint horizontal mining, and what comes out."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

from crypto.primitives.shares.replicated import Holders3
from crypto.protocols.union.size_classes import SETS

if TYPE_CHECKING:
    from mining.itemsets import Itemsets
    from mining.rules.association import Rules

Disclose = Literal["candidates", "supports", "frequent"]
Prefer = Literal["balanced", "disclosure", "speed"]
Security = Literal["semi-honest", "malicious"]
Universe = Literal["frequent-items", "hidden", "all-items", "catalogue"]

USUAL_ITEM_BYTES = 128  # of a name in a union, where the job does not say: eight blocks, which all lists may come to
MAX_ONE_SHOT_LENGTH = 64  # of an itemset in the one-shot strategy's union: its closure is enumerated
MAX_ENUMERATED = 1 << 18  # itemsets that the one-shot strategy enumerates: no job fills a node


@dataclass(frozen=True, slots=True)
class RuleParameters:
    """Which association rules are asked for.

    Attributes:
        min_confidence: Decimal in [0, 1]. Inclusive.
        consequent: `single` for consequents of one item, `any` for all.
    """

    min_confidence: Decimal
    consequent: Literal["any", "single"] = "any"


@dataclass(frozen=True, slots=True)
class HorizontalMining:
    """What all parties agree on before a joint horizontal mining run.

    Attributes:
        min_support: A fraction of all transactions in (0, 1], or a count of at least 1. Inclusive.
        learners: The parties that learn the sums that are opened; the others learn only which candidates are frequent.
        compute: The two computing parties, who hold the shares of what stays hidden.
        helper: Who computes beside these two, on replicated shares; None where they compute by themselves.
        security: Against whom it holds; `malicious` takes no hidden universe and, without a helper, no union at all.
        merger: The party that merges the sets of a union.
        max_length: The most items of an itemset.
        disclose: Which sums are opened: those of all `candidates`, the `supports` of the frequent ones, or none, so
            that only which are `frequent` is opened to it.
        strategy: How candidates are found.
        prefer: What `auto` values.
        thin: Level-wise only: candidates of a level are first thinned to those that are locally frequent somewhere.
        universe: Where level 1 gets its items from; `hidden` says the names of frequent items only.
        catalogue: The items of a public catalogue, distinct, in ascending order of UTF-8 bytes.
        union: Which locally frequent itemsets the union of the one-shot strategy carries.
        lambda_: Mixes the proportional local threshold with the even one, in [0, 1).
        max_candidates: The most candidates of one level, and of the one-shot strategy's closure.
        bound: The most elements of every set of a union, rounded up to a size class, and of every list of a hidden
            universe's items; None: no bound, and these lists have the size class of the largest one.
        max_item_bytes: The longest name of an item in a union.
        rules: The rules that are decided on shares, where no support is opened; otherwise they follow from supports.
    """

    min_support: int | Decimal
    learners: tuple[str, ...]
    merger: str
    compute: tuple[str, str]
    helper: str | None = None
    security: Security = "semi-honest"
    max_length: int | None = None
    disclose: Disclose = "supports"
    strategy: Literal["auto", "level-wise", "one-shot"] = "auto"
    prefer: Prefer = "balanced"
    thin: bool = False
    universe: Universe = "frequent-items"
    catalogue: tuple[str, ...] | None = None
    union: Literal["maximal", "all"] = "maximal"
    lambda_: Decimal = Decimal("0.8")
    max_candidates: int = 5_000_000
    bound: int | None = None
    max_item_bytes: int = USUAL_ITEM_BYTES
    rules: RuleParameters | None = None

    @property
    def hides_names(self) -> bool:
        """Whether items are counted at positions that name none, and only the frequent ones named."""
        return self.universe == "hidden"

    @property
    def unites_items(self) -> bool:
        """Whether level 1 begins with a union of names of items."""
        return self.universe in ("frequent-items", "all-items")

    @property
    def matches_in_pairs(self) -> bool:
        """Whether level 1 begins with what every two parties agree upon transfers for."""
        return self.hides_names or (self.unites_items and not self.is_verified)

    @property
    def is_shared(self) -> bool:
        """Whether sums stay shared between the computing parties until they have been compared."""
        return self.disclose != "candidates"

    @property
    def computing(self) -> tuple[str, str] | Holders3:
        """All who hold shares of what stays hidden: two, or three with a helper."""
        return self.compute if self.helper is None else (*self.compute, self.helper)

    @property
    def is_verified(self) -> bool:
        """Whether one of the computing parties, and any others, may deviate."""
        return self.security == "malicious"

    @property
    def three(self) -> Holders3:
        """The three computing parties of a job with a helper."""
        if self.helper is None:
            raise AssertionError("only a job with a helper has three computing parties")
        return (*self.compute, self.helper)

    def all_learn(self, parties: Collection[str]) -> bool:
        """Whether supports are opened to all of these parties."""
        return self.disclose != "frequent" and set(self.learners) == set(parties)

    def allows(self, length: int) -> bool:
        """Whether itemsets of this length are asked for."""
        return self.max_length is None or length <= self.max_length


@dataclass(frozen=True, slots=True)
class JointItemsets:
    """The outcome at one party.

    Attributes:
        n_rows: Transactions of all parties together.
        itemsets: All frequent itemsets, with their supports if these were opened; None at a party that is not a
            learner.
        strategy: The strategy that was taken.
        rules: The rules that hold, at a learner, where they were decided on shares.
    """

    n_rows: int
    itemsets: Itemsets | None
    strategy: str
    rules: Rules | None = None


def most_enumerated(task: HorizontalMining) -> int:
    """The most itemsets that the one-shot strategy enumerates as subsets of the union's."""
    return min(task.max_candidates, MAX_ENUMERATED)


def most_mined(task: HorizontalMining) -> int:
    """The most itemsets that the one-shot strategy enumerates in a party's rows.

    Whether it is enough for all parties is opened; so it is a size class, lest jobs with one limit after the other
    reveal how many itemsets are locally frequent at the party that has the most.
    """
    return min(SETS.rounded(task.max_candidates), MAX_ENUMERATED)
