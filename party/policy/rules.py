"""The rules of a policy, as `[policy]` and `[dataset.policy]` in `party.toml` write them down."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from jobs.federation import Name
from jobs.kinds.packages import GROUP, TASKS, PrivacyModel, Task
from jobs.spec.itemsets import Pattern, engine_name
from jobs.spec.privacy import Delta, Epsilon
from jobs.spec.toml import TomlTable
from jobs.spec.values import ColumnName, DataName, Duration
from link.files.quantities import seconds
from link.plugins import plugins
from mining.joint.parameters import Disclose
from party.policy.column_roles import Roles

MAX_EXPIRY_S: Final = 30 * 24 * 3600
FORMER: Final = frozenset({"max_unions"})
"""Rules of earlier versions that no job can break any more: files that still have them are read as if they had not."""


def _share(value: object) -> object:
    """A decimal in (0, 1]; `jobs.toml` reads numbers with a point as exact decimals."""
    if isinstance(value, Decimal) and value.is_finite() and 0 < value <= 1:
        return value
    raise ValueError(
        "must be a fraction above 0 and at most 1, such as 0.001; min_count sets a floor for counts of transactions"
    )


def _not_empty(names: object) -> object:
    if names == []:
        raise ValueError("names nothing, so no job could ever run; leave the key out to allow all")
    return names


def _any_task(tasks: object) -> object:
    if tasks == []:
        known = ", ".join(f'"{name}"' for name in TASKS)
        raise ValueError(f"names nothing, so no job could ever run; name some of {known}")
    return tasks


def _added(name: str) -> str:
    if name not in {plugin.name for plugin in plugins(GROUP)}:
        raise ValueError(
            f"there is no plug-in '{name}' with a kind of job on this machine; install it, or leave it out"
        )
    return name


def _expiry(value: str) -> str:
    if seconds(value) > MAX_EXPIRY_S:
        raise ValueError("must be at most 30 days")
    return value


Some = BeforeValidator(_not_empty)
Tasks = Annotated[tuple[Task, ...], BeforeValidator(_any_task)]
Count = Annotated[int, Field(ge=1)]


class ApprovalRule(TomlTable):
    """A `[[policy.approval]]` table: how the jobs are decided that fit everything it names.

    Attributes:
        decide: `auto` approves, `manual` asks a person, `refuse` refuses.
        coordinators: Who proposes; anybody, where absent.
        tasks: The task; any, where absent.
        datasets: The dataset; any, where absent.
        parties: All other parties of the job are among these; any, where absent.
    """

    decide: Literal["auto", "manual", "refuse"]
    coordinators: Annotated[tuple[Name, ...] | None, Some] = None
    tasks: Tasks | None = None
    datasets: Annotated[tuple[DataName, ...] | None, Some] = None
    parties: Annotated[tuple[Name, ...] | None, Some] = None


class Rules(TomlTable):
    """What `[policy]` and a `[dataset.policy]` may both hold. Every rule that is written is enforced.

    Attributes:
        approve: `auto` approves what the rules allow; `manual` asks a person.
        approval: Exceptions from `approve`; the first that fits a job decides.
        approvals: How many different people have to approve a job that people decide.
        release: `manual` holds what a job has found until a person of this party has seen and released it: no party
            hands anything of it over before. `auto`, where absent, holds nothing.
        tasks: Tasks that may run.
        kinds: Plug-ins whose kinds of jobs may run, by the names of their entry points: none, where absent. What such a
            job discloses, only its own statement says.
        coordinators: Who may propose; all of the federation's coordinators, where absent.
        peers: Parties that may take part beside this one; all of the federation, where absent.
        min_parties: The fewest parties of a job, this one included.
        min_support: The lowest support that a job may ask for, as a fraction.
        min_count: The lowest count of all parties' transactions that a job may ask for or its fraction may come to; of
            a joint release the least k, and the least `k_site` where it shows origins.
        max_length: The most items of an itemset; the job must set a limit that is no higher.
        withhold: Patterns of items that no job may see: the job must exclude each of them. No release or model takes
            a column `column` of which an item `column=value` could match.
        columns: Columns that a joint release may have, and in which roles: `quasi_identifiers` are generalised, others
            published as they are. Where absent, any.
        min_insider_k: The least `insider_k` of a joint release of rows.
        max_releases: How many releases of a dataset's rows may be made in all, over all who ask and all datasets of its
            source: of the same rows they combine, and reveal more than each. One of several parties counts from its
            start, one of this node alone has a limit of its own in `[dataset.anonymization]`.
        max_failed_releases: How many joint releases may come to nothing on its rows: which conditions these can meet
            reveals something about them.
        party_sets: `fixed`: all jobs on a dataset have the parties of the first one that was started.
        max_jobs: Jobs on a dataset that may be started within `max_jobs_period`.
        max_jobs_period: The period that `max_jobs` is for; 30 days, where absent.
        min_new_rows: By how many rows a dataset that has changed must have grown or shrunk since the last job on it.
        min_group: The fewest rows that the difference of any two exact jobs on a dataset may be about: its rows at each
            are those of another, or so many more or fewer. Their sums together give no number of fewer than
            `min_parties` parties, or of one where that is absent. Over columns, all compare ids and cut numbers alike.
            Where `disclose` allows only `frequent`, the thresholds of any two are equal, or so many transactions apart.
        max_candidates: The most candidates that a job may ask for.
        disclose: What a job may disclose: any of `candidates`, `supports` and `frequent`; where
            absent, all, but no `candidates` beside a floor of `min_count` or `min_support`, and no quantiles.
        keys: `union` allows a release for which all learn which combinations of values occur in large nodes; such jobs
            are refused where it is absent or `none`, whatever else is allowed.
        compute: Parties that may be computing parties of a job in which sums stay hidden, or columns are shared.
        engines: How a vertical job may compute supports across parties: any of `ot`, `paillier` and `replicated`, and
            engines of other distributions; all but the latter, where absent.
        helpers: Who may help the two computing parties of a job: parties, or of columns `coordinator`; perhaps nobody.
            Of a job over rows a helper has to be among `compute` too, where that is given.
        security: Against which parties jobs must be safe: `malicious`, those that deviate from the protocol, too; so
            that jobs under noise, and all that the mode does not know, are refused. Where absent, semi-honest ones.
        column_groups: Whether a vertical job may have groups of parties that hold the same columns of different rows;
            where absent, it may.
        models: Privacy models that a job may have; all, where absent.
        max_epsilon: The largest ε of a job towards anyone who sees its result; says nothing to jobs without noise.
        max_delta: The largest δ of a job, the same.
        max_local_epsilon: The largest ε of a report towards anyone who sees it as it leaves this party.
        analysts: Parties that may see reports; any, where absent.
        shufflers: Parties that may shuffle reports; any, where absent.
        max_deadline: The longest deadline of a job.
        max_union_bound: The highest bound of a union or of an alignment; a job with one must set a bound no higher.
        max_expiry: How far ahead a proposal may expire; 7 days, where absent.
    """

    approve: Literal["auto", "manual"] | None = None
    approval: tuple[ApprovalRule, ...] = ()
    approvals: Annotated[int, Field(ge=1, le=9)] = 1
    release: Literal["auto", "manual"] = "auto"
    tasks: Tasks | None = None
    kinds: tuple[Annotated[str, AfterValidator(_added)], ...] = ()
    coordinators: Annotated[tuple[Name, ...] | None, Some] = None
    peers: Annotated[tuple[Name, ...] | None, Some] = None
    min_parties: int | None = Field(default=None, ge=2, le=64)
    min_support: Annotated[Decimal, BeforeValidator(_share)] | None = None
    min_count: Count | None = None
    max_length: Count | None = None
    withhold: tuple[Pattern, ...] = ()
    columns: dict[ColumnName, Roles] | None = Field(default=None, min_length=1)
    min_insider_k: Count | None = None
    max_releases: Count = 1
    max_failed_releases: Count = 20
    party_sets: Literal["fixed"] | None = None
    max_jobs: Count | None = None
    max_jobs_period: Duration | None = None
    min_new_rows: Count | None = None
    min_group: Count | None = None
    max_candidates: Count | None = None
    disclose: Annotated[tuple[Disclose, ...] | None, Some] = None
    keys: Literal["none", "union"] | None = None
    compute: Annotated[tuple[Name, ...] | None, Some] = None
    engines: Annotated[tuple[Annotated[str, AfterValidator(engine_name)], ...] | None, Some] = None
    helpers: tuple[Name | Literal["coordinator"], ...] | None = None
    security: Literal["semi-honest", "malicious"] | None = None
    column_groups: Literal["allow", "refuse"] | None = None
    models: Annotated[tuple[PrivacyModel, ...] | None, Some] = None
    max_epsilon: Epsilon | None = None
    max_delta: Delta | None = None
    max_local_epsilon: Epsilon | None = None
    analysts: Annotated[tuple[Name, ...] | None, Some] = None
    shufflers: Annotated[tuple[Name, ...] | None, Some] = None
    max_deadline: Duration | None = None
    max_union_bound: Count | None = None
    max_expiry: Annotated[Duration, AfterValidator(_expiry)] = "7d"

    @model_validator(mode="before")
    @classmethod
    def _without_former(cls, contents: Any) -> Any:
        if not isinstance(contents, dict):
            return contents
        return {rule: value for rule, value in contents.items() if rule not in FORMER}


class PolicySection(Rules):
    """The `[policy]` table: a rule that is left out forbids nothing, but for `keys`, and limits of releases.

    Attributes:
        datasets: Datasets that may be used; all, where absent.
        max_plans: Plans that each coordinator may ask for within 24 hours.
        max_failed_jobs: Jobs of each coordinator on a dataset that may fail within 24 hours because of its data, or,
            among the same parties, since some party's data are over a limit of the job.
        max_open_jobs: Jobs of each coordinator that have not ended: those that await a decision, wait for their turn or
            run.
        max_running_jobs: Jobs of each coordinator that may run at once, while its others wait for their turn; where
            absent, as many as `max_running`.
        max_proposals: Proposals of each coordinator within a minute.
    """

    approve: Literal["auto", "manual"]
    tasks: Tasks
    datasets: Annotated[tuple[DataName, ...] | None, Some] = None
    max_plans: Count = 100
    max_failed_jobs: Count = 20
    max_open_jobs: Count = 256
    max_running_jobs: Count | None = None
    max_proposals: Count = 240

    def under(self, rules: Rules | None) -> PolicySection:
        """This policy with the rules that a dataset writes in place of these."""
        if rules is None:
            return self
        return self.model_copy(update={key: getattr(rules, key) for key in rules.model_fields_set})
