"""What a policy judges, and what its rules say."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jobs.kinds.registry import kind_of
from jobs.privacy_account import Charge
from jobs.spec.job import JobSpec
from link.errors import PolicyDenied
from party.policy.joint_result import JointResult
from party.policy.privacy_budget import DatasetBudget
from party.services.anonymization.releases import NOTHING, Counted


@dataclass(frozen=True, slots=True)
class Earlier:
    """A job that was started at this party before.

    Attributes:
        job_id: The job.
        started: Unix seconds.
        parties: All its parties.
        min_support: As in its specification.
        state: How far it came.
        n_rows: Rows that its dataset had here; None where it did not come so far.
        data_digest: Of the dataset's content; kept at this party only.
    """

    job_id: bytes
    started: float
    parties: tuple[str, ...]
    min_support: str
    state: str
    n_rows: int | None = None
    data_digest: bytes | None = None


class Version(NamedTuple):
    """On what rows jobs ran.

    Attributes:
        n_rows: Rows that the dataset had here; None where nobody knows any more.
        digest: Of its content.
    """

    n_rows: int | None
    digest: bytes


@dataclass(frozen=True, slots=True)
class PolicyInput:
    """What is judged.

    Attributes:
        spec: What is proposed.
        coordinator: Who proposes it.
        me: This party.
        federation: All parties of its federation file.
        datasets: The names of its datasets.
        now: Unix seconds.
        expiry: When the proposal ends, Unix seconds; None where nothing is proposed yet.
        earlier: The jobs that were started on the dataset, first the first.
        budget: What jobs may cost the records of the dataset in all; None where nothing limits it.
        charged: What jobs have cost them that count, without this one.
        hides: Whether rules are hidden in what the dataset contributes.
        published_rows: How many rows its owner says that it has; None where nothing is published.
        made: Releases that were made of its rows before.
        results: What counts of the exact jobs that were started on its rows, where a rule asks for it.
    """

    spec: JobSpec
    coordinator: str
    me: str
    federation: Collection[str]
    datasets: Collection[str]
    now: float
    expiry: int | None = None
    earlier: Sequence[Earlier] = ()
    budget: DatasetBudget | None = None
    charged: Sequence[Charge] = ()
    hides: bool = False
    published_rows: int | None = None
    made: Counted = NOTHING
    results: Collection[JointResult] = ()

    @property
    def noise_protects(self) -> bool:
        """Whether noise stands in for floors of counts: only where totals of both ε and δ bound it.

        That the job keeps to the totals is a verdict of its own.
        """
        return noise_protects(self.spec, self.budget)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one rule says to a job.

    Attributes:
        rule: Its key in the policy.
        allows: What it allows, in words.
        refusal: Why it refuses the job: the end of a sentence that begins with "the policy of NAME"; None where it
            does not.
        later: Whether it is decided only once the rows are counted.
    """

    rule: str
    allows: str
    refusal: str | None = None
    later: bool = False


def noise_protects(spec: JobSpec, budget: DatasetBudget | None) -> bool:
    """Whether a job on a dataset with these totals is protected by noise that they bound."""
    return kind_of(spec).estimates and budget is not None and budget.bounds_noise


def listed(names: Collection[str]) -> str:
    """Names within a sentence."""
    return " and ".join(f"'{name}'" for name in names)


def denied(me: str, what: str) -> PolicyDenied:
    """The refusal of a policy, from the end of its sentence."""
    return PolicyDenied(f"the policy of {me} {what}", party=me)
