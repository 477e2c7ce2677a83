"""What the analyst holds after a job: itemsets, rules or a model, costs, disclosure and signed receipts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import pyarrow as pa

from jobs.kinds.finding import Finding
from jobs.kinds.registry import kind_of
from jobs.results.frames import FrameForm, frame_of
from jobs.spec.job import JobSpec
from jobs.statement import statement
from link.costs import Costs
from link.errors import ConfigurationError

if TYPE_CHECKING:
    import pandas
    import pyarrow as pa

    from jobs.kinds.models.model import Model
    from jobs.kinds.release.release import Anonymized
    from jobs.plan import Plan
    from link.pki.identity import Identity
    from protos.v1.control_pb2 import SignedApproval, SignedProposal


@dataclass(frozen=True, slots=True)
class Receipt:
    """A party's signed release, as it came.

    Attributes:
        release: A serialised `comine.v1.Release`.
        signature: Of the party, over the release.
        certificate: PEM; names the party.
        agrees_with: Peers whose transcript of the session equals this party's.
    """

    release: bytes
    signature: bytes
    certificate: bytes
    agrees_with: tuple[str, ...]


@dataclass(frozen=True)
class ResultRecord:
    """The result of one job.

    Attributes:
        spec: What was asked.
        job_id: Names the job.
        session_id: Names this run of it.
        n_rows: Transactions of all parties together; in a vertical job the rows that all parties have. None where
            nobody learns how many these are.
        strategy: The strategy that the parties took.
        parties: What the job cost each party.
        receipts: What each party signed.
        finding: What was found; None where it is not disclosed here, or the job finds nothing but numbers of rows.
        seed: The seed of a simulation with repeatable draws.
        simulated: Whether all parties ran in one process.
        proposal: What the coordinator signed and asked of all parties; None where nobody was asked.
        approvals: By party, its signed consent to the proposal.
        plan: What was expected of the job before it ran; None where nobody planned it.
        positions: How many public positions the rows of all parties were given, where `n_rows` is not known.
        alignments: By party, its own rows and their positions, with the task "align" in a simulation; nodes give them
            to nobody.
        signer: Who signs the manifest of a folder that this is saved in; None where nobody does.
    """

    spec: JobSpec
    job_id: bytes
    session_id: bytes
    n_rows: int | None
    strategy: str
    parties: Mapping[str, Costs]
    receipts: Mapping[str, Receipt]
    finding: Finding | None = None
    seed: int | None = None
    simulated: bool = False
    proposal: SignedProposal | None = None
    approvals: Mapping[str, SignedApproval] = field(default_factory=dict)
    plan: Plan | None = None
    positions: int | None = None
    alignments: Mapping[str, pa.Table] = field(default_factory=dict)
    signer: Identity | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """A copy in another process does not take the key with it."""
        return self.__dict__ | {"signer": None}

    def of_simulation(self, seed: int | None) -> Self:
        """The same, marked as the result of a simulation."""
        return replace(self, seed=seed, simulated=True)

    @cached_property
    def tables(self) -> Mapping[str, pa.Table]:
        """The tables of what was found, by name, in the contract's order; none where it is not disclosed here.

        `itemsets` has the columns itemset, length, count and support; estimates have deviation, low and high besides.
        `rules` has the measures that were asked for. Numbers are null where the job opened no support.
        """
        return {} if self.finding is None else self.finding.tables(self.spec)

    @overload
    def itemsets(self, form: Literal["pandas", "mlxtend"]) -> pandas.DataFrame: ...
    @overload
    def itemsets(self, form: Literal["arrow"]) -> pa.Table: ...
    @overload
    def itemsets(self, form: None = None) -> pandas.DataFrame | pa.Table: ...
    def itemsets(self, form: FrameForm | None = None) -> pandas.DataFrame | pa.Table:
        """The frequent itemsets.

        Args:
            form: "pandas", a data frame with a list of items in each row; "arrow", the same of pyarrow; "mlxtend", a
                data frame with mlxtend's columns, its `itemsets` as frozensets. Without it, pandas' where pandas is
                installed, Arrow's otherwise.

        Raises:
            ConfigurationError: The job's recipients do not include the coordinator, its task finds no itemsets, or
                pandas is asked for and not installed.

        Example:
            >>> result.itemsets("mlxtend").query("support > 0.6")
                support            itemsets
            0  0.666667  frozenset({bread})
            1  0.666667   frozenset({milk})
        """
        found = self._found("itemsets")
        return frame_of(self.tables["itemsets"], form, found.n_rows)

    @overload
    def rules(self, form: Literal["pandas", "mlxtend"]) -> pandas.DataFrame: ...
    @overload
    def rules(self, form: Literal["arrow"]) -> pa.Table: ...
    @overload
    def rules(self, form: None = None) -> pandas.DataFrame | pa.Table: ...
    def rules(self, form: FrameForm | None = None) -> pandas.DataFrame | pa.Table:
        """The association rules.

        Args:
            form: As of `itemsets`; mlxtend's columns are `antecedents` and `consequents`, frozensets, their supports,
                and its names of measures.

        Raises:
            ConfigurationError: The task was not "rules", the coordinator is no recipient, or pandas is asked for and
                not installed.

        Example:
            >>> result.rules("mlxtend")[["antecedents", "consequents", "confidence"]]
                      antecedents         consequents  confidence
            0  frozenset({bread})   frozenset({milk})         0.5
            1   frozenset({milk})  frozenset({bread})         0.5
        """
        if self.spec.rules is None:
            raise ConfigurationError('this job has no rules; use task = "rules" with a [rules] table')
        found = self._found("itemsets")
        return frame_of(self.tables["rules"], form, found.n_rows)

    def model(self) -> Model:
        """The model, which can `predict`.

        Raises:
            ConfigurationError: The job's recipients do not include the coordinator, or its task learns no model.
        """
        found: Model = self._found("model").value
        return found

    def release(self) -> Anonymized:
        """The release of a job that anonymises, with its rows as a `table`.

        Raises:
            ConfigurationError: The job's recipients do not include the coordinator, or its task releases nothing.
        """
        found: Anonymized = self._found("release").value
        return found

    @property
    def size(self) -> str:
        """The number of rows, in words."""
        if self.n_rows is None:
            return f"{self.positions:,} positions of rows"
        called = kind_of(self.spec).rows_called(self.spec)
        return f"{self.n_rows:,} {'rows' if called == 'transactions' else called}"

    @property
    def is_elsewhere(self) -> bool:
        """Whether something was found that is not disclosed here."""
        return self.finding is None and kind_of(self.spec).finds is not None

    @property
    def disclosure(self) -> list[dict[str, Any]]:
        """Who learnt what, as data."""
        return statement(self.spec).as_data()

    def _found(self, name: str) -> Finding:
        """What was found, which people call so."""
        finds = kind_of(self.spec).finds
        if finds != name:
            other = "n_rows" if finds is None else f"{finds}()"
            raise ConfigurationError(f'task = "{self.spec.job.task}" finds no {name}; its result is {other}')
        if self.finding is None:
            recipients = ", ".join(self.spec.job.recipients)
            raise ConfigurationError(f"the recipients of this job are {recipients}; the coordinator gets no {name}")
        return self.finding

    def __repr__(self) -> str:
        parts = [repr(self.spec.job.name), self.spec.job.task, f"{len(self.spec.job.parties)} parties", self.size]
        if self.is_elsewhere:
            parts.append("result elsewhere")
        elif "itemsets" in self.tables:
            parts.append(f"{len(self.tables['itemsets']):,} itemsets")
        return f"Result({', '.join(parts)})"


def cautions(result: ResultRecord) -> list[str]:
    """What readers of a result should know of rows that were cut."""
    if result.finding is None:
        return []
    return kind_of(result.spec).cautions(result.spec, result.strategy, result.finding)
