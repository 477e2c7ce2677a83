"""What the analyst holds after a job: itemsets, rules or a model, costs, disclosure and signed receipts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs.spec import JobSpec
from link.costs import Costs
from link.errors import ConfigurationError

if TYPE_CHECKING:
    import pyarrow as pa

    from jobs.kinds.models.model import Model
    from jobs.kinds.release.release import Anonymized
    from jobs.plan import Plan
    from link.identity import Identity
    from mining.itemsets import Itemsets
    from mining.joint.estimated import Estimated
    from mining.rules import Rules
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
class Result:
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
        found: The frequent itemsets in canonical order; None where the coordinator is no recipient. Of estimates, these
            with whole counts.
        decided: The rules that hold, where the parties decided on them and opened no support; otherwise they follow
            from `found`.
        seed: The seed of a simulation with repeatable draws.
        simulated: Whether all parties ran in one process.
        proposal: What the coordinator signed and asked of all parties; None where nobody was asked.
        approvals: By party, its signed consent to the proposal.
        plan: What was expected of the job before it ran; None where nobody planned it.
        positions: How many public positions the rows of all parties were given, where `n_rows` is not told.
        trained: The model; None where the coordinator is no recipient or the task learns none.
        estimated: The estimates, of a job that gives such, with what each record has spent.
        anonymized: The release; None where the coordinator is no recipient or the task releases nothing.
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
    found: Itemsets | None
    decided: Rules | None = None
    seed: int | None = None
    simulated: bool = False
    proposal: SignedProposal | None = None
    approvals: Mapping[str, SignedApproval] = field(default_factory=dict)
    plan: Plan | None = None
    positions: int | None = None
    trained: Model | None = None
    estimated: Estimated | None = None
    anonymized: Anonymized | None = None
    alignments: Mapping[str, pa.Table] = field(default_factory=dict)
    signer: Identity | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """A copy in another process does not take the key with it."""
        return self.__dict__ | {"signer": None}

    def of_simulation(self, seed: int | None) -> Result:
        """The same, marked as the result of a simulation."""
        return replace(self, seed=seed, simulated=True)

    @cached_property
    def itemsets_table(self) -> pa.Table | None:
        """Columns itemset, length, count, support in the contract's order; None where there is no result here.

        Count and support are null where the job opened no support. Estimates have deviation, low and high besides.
        """
        if self.estimated is not None:
            return self.estimated.itemsets.to_arrow()
        return None if self.found is None else self.found.to_arrow()

    @cached_property
    def rules_table(self) -> pa.Table | None:
        """The rules with their measures; None where the task has none or there is no result here.

        All numbers are null where the job opened no support. Rules over estimates have low and high of their confidence
        besides.
        """
        asked = self.spec.rules
        if asked is None or self.found is None:
            return None
        if self.estimated is not None:
            return None if self.estimated.rules is None else self.estimated.rules.to_arrow(asked.measures)
        if self.decided is not None:
            return replace(self.decided, measures=asked.measures).to_arrow()
        from mining.rules import association_rules

        return association_rules(
            self.found, asked.min_confidence, consequent=asked.consequent, measures=asked.measures
        ).to_arrow()

    def itemsets(self) -> Any:
        """The frequent itemsets: a pandas DataFrame where pandas is installed, a pyarrow Table otherwise.

        Raises:
            ConfigurationError: The job's recipients do not include the coordinator, or its task finds no itemsets.
        """
        return _frame(self._require(self.itemsets_table))

    def rules(self) -> Any:
        """The association rules, as `itemsets` gives its table.

        Raises:
            ConfigurationError: The task was not "rules", or the coordinator is no recipient.
        """
        if self.spec.rules is None:
            raise ConfigurationError('this job has no rules; use task = "rules" with a [rules] table')
        return _frame(self._require(self.rules_table))

    def model(self) -> Model:
        """The model, which can `predict`.

        Raises:
            ConfigurationError: The job's recipients do not include the coordinator, or its task learns no model.
        """
        if not self.spec.trains:
            raise ConfigurationError(f'task = "{self.spec.job.task}" learns no model')
        if self.trained is None:
            recipients = ", ".join(self.spec.job.recipients)
            raise ConfigurationError(f"the recipients of this job are {recipients}; the coordinator gets no model")
        return self.trained

    def release(self) -> Anonymized:
        """The release of a job that anonymises, with its rows as a `table`.

        Raises:
            ConfigurationError: The job's recipients do not include the coordinator, or its task releases nothing.
        """
        if not self.spec.anonymizes:
            raise ConfigurationError(f'task = "{self.spec.job.task}" releases no rows')
        if self.anonymized is None:
            recipients = ", ".join(self.spec.job.recipients)
            raise ConfigurationError(f"the recipients of this job are {recipients}; the coordinator gets no release")
        return self.anonymized

    @property
    def size(self) -> str:
        """The number of rows, in words."""
        if self.n_rows is None:
            return f"{self.positions:,} positions of rows"
        shared = self.spec.is_vertical and not self.spec.mines
        return f"{self.n_rows:,} rows in common" if shared else f"{self.n_rows:,} rows"

    @property
    def disclosure(self) -> list[dict[str, Any]]:
        """Who learnt what, as data."""
        from jobs.statement import statement

        return statement(self.spec).as_data()

    def save(self, folder: Path | str) -> None:
        """Writes the result folder: tables, `result.json`, `report.html` and `manifest.json`; all or nothing.

        Raises:
            ConfigurationError: The folder holds something other than an earlier result.
            ResourceError: It cannot be written.
        """
        from jobs.folder import write_result_folder

        write_result_folder(Path(folder), self)

    def _repr_html_(self) -> str:
        from jobs.report.notebook import notebook

        return notebook(self)

    def _require(self, table: pa.Table | None) -> pa.Table:
        if not self.spec.mines:
            instead = "model()" if self.spec.trains else "release()" if self.spec.anonymizes else "n_rows"
            raise ConfigurationError(f'task = "{self.spec.job.task}" finds no itemsets; its result is {instead}')
        if table is None:
            recipients = ", ".join(self.spec.job.recipients)
            raise ConfigurationError(f"the recipients of this job are {recipients}; the coordinator gets no itemsets")
        return table

    def __repr__(self) -> str:
        parts = [repr(self.spec.job.name), self.spec.job.task, f"{len(self.spec.job.parties)} parties", self.size]
        if self.spec.mines:
            parts.append("result elsewhere" if self.found is None else f"{len(self.found):,} itemsets")
        if (self.spec.trains and self.trained is None) or (self.spec.anonymizes and self.anonymized is None):
            parts.append("result elsewhere")
        return f"Result({', '.join(parts)})"


def _frame(table: pa.Table) -> Any:
    import pyarrow as pa

    try:
        import pandas
    except ImportError:
        return table
    columns = {
        field.name: column.to_pylist() if pa.types.is_list(field.type) else column.to_numpy()
        for field, column in zip(table.schema, table.columns, strict=True)
    }
    return pandas.DataFrame(columns)
