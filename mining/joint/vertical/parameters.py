"""The public parameters of joint vertical mining."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, Literal

from crypto.primitives.shares.replicated import Holders3
from link.errors import ConfigurationError
from mining.data.items.item_columns import Itemisation
from mining.data.row_ids import AS_THEY_ARE, IdNormalisation
from mining.joint.align import RowAlignment
from mining.joint.parameters import Disclose, RuleParameters, Security
from mining.joint.usual_network import BYTES_PER_S
from mining.joint.vertical.grouped.groups import Groups, column_holder, column_holders

Mode = Literal["intersection", "union"]

COORDINATOR: Final = "coordinator"


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a job takes for granted where `engine = "auto"` chooses: public, and the same at all parties.

    Attributes:
        parties: How many there are.
        rows: Common to all, about.
        items: Of one party, frequent among these rows, about.
        density: Share of the rows in which a frequent item occurs.
        bytes_per_s: That the network carries.
    """

    parties: int = 2
    rows: int = 100_000
    items: int = 50
    density: float = 0.2
    bytes_per_s: float = BYTES_PER_S


@dataclass(frozen=True, slots=True)
class VerticalMining:
    """What all parties agree on before a joint vertical mining run.

    Attributes:
        min_support: A fraction of the common rows in (0, 1], or a count of at least 1. Inclusive.
        learners: The parties that learn the sums that are opened; the others learn only which candidates are frequent.
        compute: The two computing parties, who hold the shares of what stays hidden.
        merger: The party that compares what is aligned.
        mode: How rows are aligned.
        normalisation: What is done to ids before they are compared.
        itemisation: How cells become items.
        disclose: Which sums are opened; see `HorizontalMining`.
        max_length: The most items of an itemset.
        max_candidates: The most candidates of one level.
        engine: How supports of itemsets that span parties are computed: the name of an engine, or `auto`.
        helper: Whose help is allowed, which `replicated` needs. With two parties the coordinator, who deals
            randomness; with more the third of the parties that hold shares of all columns. None: nobody's.
        bound: The most rows that any party may have, public; None: size classes are announced.
        rules: The rules that are decided on shares, where no support is opened.
        expectation: On which the choice of `auto` rests.
        groups: Of columns, where several parties hold the same columns of different rows, in the order of their first
            members; every party is in one, and the mode is `union`. Empty: every party has columns of its own.
        security: Against whom it holds; `malicious` takes a helper, an intersection and `replicated`.
    """

    min_support: int | Decimal
    learners: tuple[str, ...]
    compute: tuple[str, str]
    merger: str
    mode: Mode = "intersection"
    normalisation: IdNormalisation = AS_THEY_ARE
    itemisation: Itemisation = field(default_factory=Itemisation)
    disclose: Disclose = "supports"
    max_length: int | None = None
    max_candidates: int = 5_000_000
    engine: str = "auto"
    helper: str | None = None
    bound: int | None = None
    rules: RuleParameters | None = None
    expectation: Expectation = Expectation()
    groups: Groups = ()
    security: Security = "semi-honest"

    @property
    def is_verified(self) -> bool:
        """Whether one of three computing parties, and any others, may deviate."""
        return self.security == "malicious"

    @property
    def three(self) -> Holders3:
        """The three computing parties of a job that checks them."""
        if self.helper is None:
            raise AssertionError("only a job with a helper has three computing parties")
        return (*self.compute, self.helper)

    @property
    def alignment(self) -> RowAlignment:
        """How rows are aligned."""
        three = self.three if self.is_verified else None
        return RowAlignment(self.merger, self.mode, self.normalisation, self.bound, three)

    @property
    def computing(self) -> tuple[str, str]:
        """All who hold shares of supports that stay hidden, whoever helps with products."""
        return self.compute

    def holders(self, parties: Sequence[str]) -> tuple[str, ...]:
        """Who holds columns, by name: the groups, or where there are none the parties."""
        return column_holders(self.groups, parties)

    def holder_of(self, party: str) -> str:
        """The holder that a party is, or is a member of."""
        return column_holder(self.groups, party)

    def allows(self, length: int) -> bool:
        """Whether itemsets of this length are asked for."""
        return self.max_length is None or length <= self.max_length


def in_job_order(parties: Sequence[str], compute: tuple[str, str] | None) -> tuple[str, str]:
    """The two computing parties as they stand in the job; its first two by default."""
    chosen = parties[:2] if compute is None else [party for party in parties if party in compute]
    first, second = chosen
    return first, second


def holders_of(task: VerticalMining, parties: Sequence[str]) -> Holders3:
    """The three who hold shares of all columns: the computing parties, who get the result, and the helper.

    Where no helper is named it is the first of the other parties.

    Raises:
        ConfigurationError: The helper is no third party of the job.
    """
    others = [party for party in parties if party not in task.compute]
    helper = others[0] if task.helper is None and others else task.helper
    if helper not in others:
        raise ConfigurationError(
            f"[trust] helper: '{helper}' cannot help the computing parties {' and '.join(task.compute)}; "
            "name a third party of the job"
        )
    first, second = in_job_order(parties, task.compute)
    return first, second, helper
