"""What an engine declares: what it needs, costs and discloses, and how it starts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Final

from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.products.chains import Itemset
from crypto.protocols.products.outside_dealer import Dealings
from crypto.protocols.sums.pairwise import PairwiseSecrets
from link.disclosure import Learned
from link.session import Session
from link.traffic import Traffic
from mining.joint.vertical.engines.products import Naming, Products
from mining.joint.vertical.parameters import VerticalMining

TYPICAL_DENSITY: Final = 0.2


@dataclass(frozen=True)
class EngineSpeed:
    """Seconds of one operation on one core.

    Attributes:
        transfer_s: A random oblivious transfer, the sender's half and the receiver's.
        correction_s: A byte of a correlation that rides on a transfer, both halves.
        encryption_s: An encryption of zero by the key's owner, 3072 bits, which assumes nothing.
        decryption_s: A decryption.
        multiplication_s: A multiplication modulo n².
        residue_s: A uniform n-th residue.
        flop_s: A multiplication or addition of floats in a matrix product.
        element_s: An element that three parties share or multiply, at one of them.
    """

    transfer_s: float = 2.2e-7
    correction_s: float = 4.5e-9
    encryption_s: float = 1.2e-3
    decryption_s: float = 7.9e-3
    multiplication_s: float = 8.9e-6
    residue_s: float = 2.8e-2
    flop_s: float = 6e-11
    element_s: float = 4e-8

    @classmethod
    def by_transfer(cls, transfer_s: float) -> EngineSpeed:
        """A machine on which a transfer takes so long, and all else is in proportion to the machine of the defaults."""
        usual = cls()
        times = transfer_s / usual.transfer_s
        return cls(**{name: getattr(usual, name) * times for name in cls.__dataclass_fields__})


class EngineCosts(ABC):
    """What the calls of one run cost, one after the other: an instance may keep what earlier calls left behind."""

    @abstractmethod
    def traffic(self, traffic: Traffic, *, rows: int, itemsets: Sequence[Itemset], names: Naming | None = None) -> None:
        """Enters one call of `Products.addends`: all that is sent, and at least as many rounds.

        Args:
            traffic: Where it is entered.
            rows: As of the call; at least one.
            itemsets: As of the call; at least one.
            names: As of the call.
        """

    @abstractmethod
    def seconds(
        self,
        rows: int,
        itemsets: Sequence[Itemset],
        speed: EngineSpeed,
        density: float = TYPICAL_DENSITY,
        names: Naming | None = None,
    ) -> float:
        """Processor time of one call, all parties together.

        Args:
            rows: As of the call.
            itemsets: As of the call.
            speed: Of the machines.
            density: Share of the rows in which an item occurs.
            names: As of the call.
        """


@dataclass(frozen=True)
class Setup:
    """What an engine starts with.

    Attributes:
        session: A lane of its own.
        task: The public parameters.
        secrets: From `pairwise.agree` in this session.
        pairs: By peer this party's half of an agreement with it, whose holders are in the order of the job.
        dealings: What this party has of the dealer, where the coordinator deals.
    """

    session: Session
    task: VerticalMining
    secrets: PairwiseSecrets
    pairs: Mapping[str, TwoParty]
    dealings: Dealings | None = None


class Engine(ABC):
    """A way to compute supports across parties. It holds no state: what runs is what `start` returns.

    Attributes:
        name: By which jobs and policies name it.
        takes_helper: Whether somebody beside the two computing parties, whom the job names, has to help.
    """

    name: ClassVar[str]
    takes_helper: ClassVar[bool] = False

    @abstractmethod
    def start(self, setup: Setup) -> Products:
        """Makes ready to compute.

        Raises:
            ConfigurationError: The helper that it takes is missing.
        """

    @abstractmethod
    def costs(self, task: VerticalMining, parties: Sequence[str]) -> EngineCosts:
        """What the calls of a run will cost."""

    @abstractmethod
    def trust(self, task: VerticalMining, parties: Sequence[str]) -> str:
        """Whom it needs to be trusted, in words, for the table of a plan."""

    def learned(self, task: VerticalMining, parties: Sequence[str]) -> list[Learned]:
        """What the parties, and the helper, learn by it beside what every job over columns discloses."""
        return []

    def collusion(self, task: VerticalMining, parties: Sequence[str]) -> str:
        """Which parties of three or more may work together without learning more, in words."""
        return "products withstand all other parties together"

    def worst(self, task: VerticalMining, parties: Sequence[str]) -> str:
        """What some of three or more parties could read together, in plain words; empty where it is no column."""
        return ""

    def usual_helper(self, parties: Sequence[str]) -> str | None:
        """Who helps where the job names the engine, and no helper: nobody, or who is taken for granted then."""
        return None

    def helper(self, task: VerticalMining, parties: Sequence[str]) -> str | None:
        """Who helps in this job: a party, the coordinator as dealer, or nobody."""
        return None

    def agreements(self, task: VerticalMining, parties: Sequence[str]) -> list[tuple[str, str]]:
        """The pairs of parties that agree on the seeds of transfers."""
        return list(combinations(parties, 2))

    def working_bytes(self, moved: int) -> int:
        """Memory of a party, about, for what it works on at a time.

        Args:
            moved: Bytes that the party sends and receives.
        """
        return moved
