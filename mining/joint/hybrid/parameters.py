"""The public parameters of mining by perturbed records."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final, Literal, Protocol

if TYPE_CHECKING:
    from ldp.sets.plan import MiningPlan
    from mining.joint.parameters import RuleParameters

Model = Literal["local", "shuffle"]
Search = Literal["svim", "svsm", "ldp-miner", "privset", "wheel"]

DEFAULT_K: Final = 64
"""How many itemsets are sought where a job names a least support only."""

MOST_LOCAL: Final = 8.0
"""The largest ε of a report in the shuffle model, unless a job allows more or less: of more, hardly any estimate gains,
and it is what is left where all shufflers collude with the analyst."""

SET_LENGTH: Final = 8
"""To how many items whole rows are padded: by LDPMiner in its first phase, by PrivSet and the wheel."""


class Hops(Protocol):
    """What the way of shuffled records needs to know of a job."""

    @property
    def analyst(self) -> str:
        """The party that gets them."""

    @property
    def shufflers(self) -> tuple[str, ...]:
        """The parties through which they go, the first first."""

    @property
    def colluding(self) -> int:
        """How many parties may collude with those who see them."""


@dataclass(frozen=True, slots=True)
class HybridMining:
    """What all parties agree on before perturbed records are mined.

    Attributes:
        model: `local`: the analyst gets each party's reports. `shuffle`: shufflers hide whose report is whose.
        catalogue: The items that are asked about, distinct, in ascending order of UTF-8 bytes.
        k: How many of the most frequent itemsets are sought.
        search: How.
        epsilon: ε of a record: of its report in the local model, of the shuffled reports in the other.
        delta: δ of the shuffled reports; 0 in the local model.
        most_local: The largest ε that a report may have.
        analyst: The party that adds reports up.
        shufflers: The parties through which reports go, the first first; none in the local model.
        colluding: How many parties may help a party that sees reports or what follows from them.
        learners: The parties that get the result.
        min_support: Of those that were found, only itemsets whose estimated support reaches it are in the result.
        max_length: The most items of an itemset.
        rules: The rules that are asked for.
    """

    model: Model
    catalogue: tuple[str, ...]
    k: int
    search: Search
    epsilon: float
    delta: float
    most_local: float
    analyst: str
    shufflers: tuple[str, ...]
    colluding: int
    learners: tuple[str, ...]
    min_support: int | Decimal | None = None
    max_length: int | None = None
    rules: RuleParameters | None = None

    def plan(self, local_epsilon: float, by_phase: tuple[float, ...] = ()) -> MiningPlan:
        """The search, for reports that have this ε.

        Args:
            local_epsilon: ε of a report at most.
            by_phase: That of each phase, where users answer in one phase alone and not all phases have the same.

        Raises:
            ConfigurationError: The catalogue has too few items for it, or k is out of range.
        """
        size = len(self.catalogue)
        match self.search:
            case "svim":
                from ldp.sets.svim import ItemMining

                return ItemMining(size, local_epsilon, min(self.k, size), by_phase=by_phase)
            case "ldp-miner":
                from ldp.sets.ldp_miner import LDPMiner

                return LDPMiner(size, local_epsilon, min(self.k, size), SET_LENGTH)
            case "privset" | "wheel":
                from ldp.sets.one_phase import WholeSetMining

                return WholeSetMining(size, local_epsilon, min(self.k, size), min(SET_LENGTH, size), self.search)
            case "svsm":
                from ldp.sets.svsm import ItemsetMining

                return ItemsetMining(size, local_epsilon, self.k, largest=self.max_length, by_phase=by_phase)
