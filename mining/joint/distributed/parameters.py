"""The public parameters of joint mining under distributed noise."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from mining.joint.parameters import RuleParameters

NoiseLaw = Literal["discrete-gaussian", "skellam"]

DEFAULT_LENGTH: Final = 5
"""The most items of an itemset, where a job does not say: the budget is dealt out to lengths beforehand."""

LONGEST: Final = 20
"""The most items that a job may ask for: of more, noise would drown each length."""


@dataclass(frozen=True, slots=True)
class DistributedMining:
    """What all parties agree on before a run.

    Attributes:
        epsilon: ε of one record towards anyone who sees all that is opened, with the noise of `colluding` parties.
        delta: δ of that.
        min_support: A fraction of all transactions in (0, 1], or a count of at least 1; None with `top_k` alone.
        top_k: Only so many itemsets, those of the largest noisy counts; None for all.
        max_length: The most items of an itemset; each length has its share of the budget, whether it comes to it or
            not.
        colluding: t, how many parties may share their noise with those who see what is opened.
        noise: The law of the noise in sums.
        contributions: To how many itemsets of 1, 2, … items a record counts at most; the last holds for longer ones.
            None: as `budget.contributions` says.
        catalogue: The public items, distinct, in ascending order of UTF-8 bytes; None: every party names items whose
            own noisy count is large enough.
        max_candidates: The most candidates of one length.
        rules: The rules that are asked for.
        learners: The parties whose result it is; what is opened is opened to all.
    """

    epsilon: Decimal
    delta: Decimal
    min_support: int | Decimal | None
    learners: tuple[str, ...]
    top_k: int | None = None
    max_length: int = DEFAULT_LENGTH
    colluding: int = 0
    noise: NoiseLaw = "discrete-gaussian"
    contributions: tuple[int, ...] | None = None
    catalogue: tuple[str, ...] | None = None
    max_candidates: int = 5_000_000
    rules: RuleParameters | None = None
