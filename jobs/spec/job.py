"""The job specification: a frozen model of `job.toml`, whose digest every party sees before it agrees."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Annotated, Any, Final, Literal

from pydantic import (
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from jobs.federation import Name
from jobs.kinds.key import Partition
from jobs.kinds.models.tables import (
    ColumnSection,
    DecisionTreeSection,
    KMeansSection,
    ModelSection,
    NaiveBayesSection,
)
from jobs.kinds.packages import Task
from jobs.kinds.release.table import JointAnonymizeSection
from jobs.spec.itemsets import ItemsetsSection, RulesSection
from jobs.spec.plan import PlanSection
from jobs.spec.privacy import PrivacySection
from jobs.spec.union import UnionSection
from jobs.spec.values import ColumnName, Section
from link.files.quantities import seconds
from mining.data.row_ids import Case, Unicode

MAX_SPEC_BYTES = 3 << 20  # a proposal is one gRPC message
AUTO_HELPER: Final = "auto"  # a third party helps where that is cheaper
UNIVERSES: Final = (
    "auto",
    "hidden-all",
    "hidden",
    "frequent-items",
    "all-items",
)  # anything else is the path of a catalogue


def _one_or_several(recipients: object) -> object:
    """A single recipient as a list of one."""
    return (recipients,) if isinstance(recipients, str) else recipients


_Several = Annotated[tuple[str, ...], Field(min_length=1)]
Recipients = Annotated[_Several, BeforeValidator(_one_or_several, json_schema_input_type=str | _Several)]


class JobSection(Section):
    """The `[job]` table: what is done, by whom, on which dataset, for whom, and for how long at most.

    Attributes:
        name: For people; a weekly job keeps it.
        task: What is computed.
        parties: Who takes part, by the names of the federation file; at least two.
        dataset: By which name each party has the data.
        partition: `horizontal`: parties hold rows. `vertical`: columns of the same rows. `hybrid`: rows and columns.
        recipients: Who gets the result: `coordinator`, parties, or `all`.
        deadline: How long the job may take, such as `30m`.
    """

    name: str = Field(min_length=1, max_length=200)
    task: Task
    parties: tuple[Name, ...] = Field(min_length=2, max_length=64)
    dataset: str = Field(min_length=1)
    partition: Partition = "horizontal"
    recipients: Recipients = ("coordinator",)
    deadline: str = "30m"

    @field_validator("deadline", mode="before")
    @classmethod
    def _duration(cls, value: object) -> object:
        if not isinstance(value, str):
            raise ValueError('must be a duration in quotes, such as "90s", "30m" or "2h"')
        match = re.fullmatch(r"([1-9][0-9]{0,6})([smh])", value)
        if match is None:
            raise ValueError(f'\'{value}\' must be a duration such as "90s", "30m" or "2h"')
        return value

    @model_validator(mode="after")
    def _names(self) -> JobSection:
        for name in self.parties:
            if self.parties.count(name) > 1:
                raise ValueError(f"the party '{name}' is named twice")
            if name in ("coordinator", "all"):
                raise ValueError(f"no party may be called '{name}', which means something else among recipients")
        for name in self.recipients:
            if name not in ("coordinator", "all", *self.parties):
                raise ValueError(f'the recipient \'{name}\' is neither "coordinator", "all" nor a party of the job')
            if self.recipients.count(name) > 1:
                raise ValueError(f"the recipient '{name}' is named twice")
        return self

    @property
    def deadline_s(self) -> int:
        """The deadline in seconds."""
        return seconds(self.deadline)


class AlignSection(Section):
    """The `[align]` table of a vertical job: how rows of the same id are found at all parties.

    Attributes:
        mode: `intersection` shows the parties which of their rows they share; `union` hides that, and costs more;
            `cardinality` shows only how many they share, for task = "align".
        trim: Whether white space around ids is removed first.
        case: `fold` takes ids for equal that differ in case only.
        unicode: `NFC` takes ids for equal that are canonically equivalent in Unicode.
        bound: The most rows that any party may have, rounded up to a size class; without it, that of the largest is
            published.
    """

    mode: Literal["intersection", "union", "cardinality"] = "intersection"
    trim: bool = False
    case: Case = "keep"
    unicode: Unicode = "none"
    bound: int | None = Field(default=None, ge=1, le=1 << 24)


class TrustSection(Section):
    """The `[trust]` table: whom the parties of the job trust with what.

    Attributes:
        compute: The two computing parties, which hold the shares of sums that stay hidden. Together they could learn
            the sums over the others; the first two parties of the job by default.
        helper: Who may help the two computing parties: nobody ("none"), or a third party, which holds shares beside
            them; with "auto" the first other party helps where that is expected to be cheaper.
            Over rows the three decide on replicated shares which sums are large enough, with a fraction of the
            bytes: any two of the three could learn the sums over the others. Vertical, with the engine `replicated`:
            any two of the three could learn all columns; with two parties the "coordinator" helps, which deals
            randomness, and with one of them could learn the other's columns.
        security: Against which parties the job is safe: `semi-honest`, which follow the protocol and study what they
            see, or also `malicious`, of which one of the computing parties may deviate from it, and any others: they
            can end the job, and no more. For itemsets and rules; over rows with no hidden universe, and without a
            helper level-wise over a public catalogue; over columns with a helper and rows aligned by intersection.
    """

    compute: tuple[Name, ...] | None = None
    helper: str = "none"
    security: Literal["semi-honest", "malicious"] = "semi-honest"

    @field_validator("compute")
    @classmethod
    def _two(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value is not None and len(set(value)) != 2:
            raise ValueError("names two different parties of the job")
        return value


Members = Annotated[tuple[Name, ...], Field(min_length=1)]


class JobSpec(Section):
    """The whole of `job.toml`.

    Attributes:
        groups_: Vertical: by the name of each column group, the parties that hold its columns of different rows.
    """

    job: JobSection
    itemsets_: ItemsetsSection | None = Field(default=None, alias="itemsets")
    union: UnionSection = UnionSection()
    trust: TrustSection = TrustSection()
    align: AlignSection | None = None
    groups_: dict[Name, Members] | None = Field(default=None, alias="groups")
    plan: PlanSection = PlanSection()
    privacy_: PrivacySection | None = Field(default=None, alias="privacy")
    rules: RulesSection | None = None
    naive_bayes: NaiveBayesSection | None = None
    decision_tree: DecisionTreeSection | None = None
    k_means: KMeansSection | None = None
    columns: dict[ColumnName, ColumnSection] = Field(default_factory=dict, max_length=1001)
    anonymize: JointAnonymizeSection | None = None

    @model_validator(mode="after")
    def _of_parties(self) -> JobSpec:
        """Refuses roles of strangers."""
        given, parties = self.privacy, self.job.parties
        if not set(self.compute) <= set(parties):
            raise ValueError("[trust] compute names two different parties of the job")
        for key, names in (
            ("analyst", (self.analyst,)),
            ("shufflers", self.shufflers),
            ("opted_in", given.opted_in or ()),
        ):
            for name in names:
                if name not in parties:
                    raise ValueError(f"[privacy] {key}: '{name}' is no party of the job")
                if names.count(name) > 1:
                    raise ValueError(f"[privacy] {key} names '{name}' twice")
        return self

    @model_validator(mode="after")
    def _grouped(self) -> JobSpec:
        """Refuses groups that do not have each party of the job once."""
        if self.groups_ is None:
            return self
        if len(self.groups_) < 2:
            raise ValueError(
                "[groups] needs two groups of parties or more; where all parties hold the same columns, "
                'leave the table out and use partition = "horizontal"'
            )
        where: dict[str, str] = {}
        for group, members in self.groups_.items():
            for name in members:
                if name not in self.job.parties:
                    raise ValueError(f"[groups] {group}: '{name}' is no party of the job")
                if name in where:
                    other = "twice" if where[name] == group else f"in '{where[name]}' and in '{group}'"
                    raise ValueError(f"[groups]: '{name}' is {other}; every party is in one group")
                where[name] = group
        for name in self.job.parties:
            if name not in where:
                raise ValueError(f"[groups]: the party '{name}' is in no group; every party is in one")
        return self

    @model_serializer(mode="wrap")
    def _said(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """What jobs had no word for once goes without saying: the bytes of those that do not use it are as before."""
        plain: dict[str, Any] = dump(self)
        if not self.is_verified and isinstance(plain.get("trust"), dict):
            plain["trust"].pop("security", None)
        if self.groups_ is None:
            for name in ("groups", "groups_"):
                plain.pop(name, None)
        return plain

    def canonical(self) -> bytes:
        """The specification as JSON, keys sorted, no blanks; decimals are strings, so that none is rounded."""
        plain = self.model_dump(mode="json", by_alias=True)
        return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()

    @property
    def digest(self) -> bytes:
        """SHA-256 of the canonical form."""
        return hashlib.sha256(self.canonical()).digest()

    def job_id(self, nonce: bytes, expiry: int) -> bytes:
        """SHA-256(spec digest ‖ nonce ‖ expiry): two runs of one job file never share it."""
        return hashlib.sha256(self.digest + nonce + expiry.to_bytes(8, "big")).digest()

    @property
    def anonymization(self) -> JointAnonymizeSection:
        """The `[anonymize]` table of a task that releases rows; no other has one."""
        if self.anonymize is None:
            raise ValueError(f"the task {self.job.task} anonymises nothing")
        return self.anonymize

    @property
    def model(self) -> ModelSection:
        """The table of a task that learns a model; no other has one."""
        section = self.naive_bayes or self.decision_tree or self.k_means
        if section is None:
            raise ValueError(f"the task {self.job.task} learns no model")
        return section

    @property
    def itemsets(self) -> ItemsetsSection:
        """The `[itemsets]` table of a task that mines; no other has one."""
        if self.itemsets_ is None:
            raise ValueError(f"the task {self.job.task} has no itemsets")
        return self.itemsets_

    @property
    def is_vertical(self) -> bool:
        """Whether parties hold columns of the same rows, in place of rows of their own."""
        return self.job.partition == "vertical"

    @property
    def is_hybrid(self) -> bool:
        """Whether parties hold whole rows, and the `[privacy]` table says under which model they are mined."""
        return self.job.partition == "hybrid"

    @property
    def privacy(self) -> PrivacySection:
        """Under which model the job runs; the exact one, unless said."""
        return self.privacy_ or PrivacySection(model="exact")

    @property
    def analyst(self) -> str:
        """The party that estimates from reports."""
        return self.privacy.analyst or self.job.parties[0]

    @property
    def shufflers(self) -> tuple[str, ...]:
        """The parties through which reports go, the first first."""
        return self.privacy.shufflers or tuple(p for p in self.job.parties if p != self.analyst)[-1:]

    @property
    def alignment(self) -> AlignSection:
        """How a vertical job aligns rows."""
        return self.align or AlignSection()

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """By column group its parties, all in the order of the job; none where every party has columns of its own."""
        members = {
            name: tuple(party for party in self.job.parties if party in given)
            for name, given in (self.groups_ or {}).items()
        }
        return dict(sorted(members.items(), key=lambda group: self.job.parties.index(group[1][0])))

    @property
    def learners(self) -> tuple[str, ...]:
        """The parties that learn the candidates' sums: the recipients among them; all, where there is none."""
        named = tuple(p for p in self.job.parties if p in self.job.recipients or "all" in self.job.recipients)
        return named or self.job.parties

    @property
    def compute(self) -> tuple[str, str]:
        """The two computing parties."""
        first, second, *_ = self.trust.compute or self.job.parties
        return first, second

    @property
    def is_verified(self) -> bool:
        """Whether the job holds against parties that deviate from the protocol."""
        return self.trust.security == "malicious"

    @property
    def to_coordinator(self) -> bool:
        """Whether the coordinator gets the result."""
        return "coordinator" in self.job.recipients or "all" in self.job.recipients
