"""The job specification: a frozen model of `job.toml`, whose digest every party sees before it agrees."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from jobs.federation import Name
from jobs.itemsets_spec import ItemsetsSection, RulesSection
from jobs.kinds.models.tables import (
    MODEL_TABLES,
    ColumnSection,
    DecisionTreeSection,
    KMeansSection,
    ModelSection,
    NaiveBayesSection,
    check_columns,
)
from jobs.kinds.release.table import JointAnonymizeSection, with_hierarchies
from jobs.plan_spec import PlanSection
from jobs.privacy_spec import PrivacySection
from jobs.spec_values import ColumnName, Section
from jobs.toml import read_toml, validate
from jobs.union_limit import too_large_unions
from jobs.union_spec import UnionSection
from link.errors import ConfigurationError, InputDataError
from link.json_text import read_json
from link.printable import why_not_read
from mining.measure_names import DEFAULT_MEASURES
from mining.row_ids import Case, Unicode

MAX_SPEC_BYTES = 3 << 20  # a proposal is one gRPC message
UNIVERSES: Final = (
    "auto",
    "hidden-all",
    "hidden",
    "frequent-items",
    "all-items",
)  # anything else is the path of a catalogue
_HORIZONTAL_ITEMSETS: Final = frozenset({"strategy", "prefer", "thin", "universe", "catalogue", "union", "lambda_"})
_VERTICAL_ITEMSETS: Final = frozenset({"engine", "cuts", "quantiles"})
_UNION: Final = frozenset({"bound", "max_item_bytes"})
_UNITS = {"s": 1, "m": 60, "h": 3600}


Task = Literal["itemsets", "rules", "align", "naive-bayes", "decision-tree", "k-means", "anonymize"]


def _one_or_several(recipients: object) -> object:
    """A single recipient as a list of one."""
    return (recipients,) if isinstance(recipients, str) else recipients


_Several = Annotated[tuple[str, ...], Field(min_length=1)]
Recipients = Annotated[_Several, BeforeValidator(_one_or_several, json_schema_input_type=str | _Several)]


class JobSection(Section):
    """The `[job]` table: what is done, by whom, on which dataset, for whom, and for how long at most."""

    name: str = Field(min_length=1, max_length=200)
    task: Task
    parties: tuple[Name, ...] = Field(min_length=2, max_length=64)
    dataset: str = Field(min_length=1)
    partition: Literal["horizontal", "vertical", "hybrid"] = "horizontal"
    recipients: Recipients = ("coordinator",)
    deadline: str = "30m"

    @field_validator("deadline")
    @classmethod
    def _duration(cls, value: str) -> str:
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
        return int(self.deadline[:-1]) * _UNITS[self.deadline[-1]]


class AlignSection(Section):
    """The `[align]` table of a vertical job: how rows of the same id are found at all parties.

    Attributes:
        mode: `intersection` tells the parties which of their rows they share; `union` hides that, and costs more;
            `cardinality` tells only how many they share, for task = "align".
        trim: Whether white space around ids is removed first.
        case: `fold` takes ids for equal that differ in case only.
        unicode: `NFC` takes ids for equal that are canonically equivalent in Unicode.
        bound: The most rows that any party may have, rounded up to a size class; without it, that of the largest is
            told.
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
        helper: Vertical: who may help the two computing parties with the engine `replicated`: nobody ("none"); with
            two parties the "coordinator", which deals randomness, and with one of them could learn the other's columns;
            with more a third party, which holds shares beside them: any two of the three could learn all columns.
    """

    compute: tuple[Name, ...] | None = None
    helper: str = "none"

    @field_validator("compute")
    @classmethod
    def _two(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value is not None and len(set(value)) != 2:
            raise ValueError("names two different parties of the job")
        return value


class JobSpec(Section):
    """The whole of `job.toml`."""

    job: JobSection
    itemsets_: ItemsetsSection | None = Field(default=None, alias="itemsets")
    union: UnionSection = UnionSection()
    trust: TrustSection = TrustSection()
    align: AlignSection | None = None
    plan: PlanSection = PlanSection()
    privacy_: PrivacySection | None = Field(default=None, alias="privacy")
    rules: RulesSection | None = None
    naive_bayes: NaiveBayesSection | None = None
    decision_tree: DecisionTreeSection | None = None
    k_means: KMeansSection | None = None
    columns: dict[ColumnName, ColumnSection] = Field(default_factory=dict, max_length=1001)
    anonymize: JointAnonymizeSection | None = None

    @model_validator(mode="after")
    def _complete(self) -> JobSpec:
        task = self.job.task
        if task == "rules" and self.rules is None:
            raise ValueError('task = "rules" needs a [rules] table with min_confidence')
        if task != "rules" and self.rules is not None:
            raise ValueError('a [rules] table needs task = "rules"')
        if self.mines and self.itemsets_ is None:
            raise ValueError(f'task = "{task}" needs an [itemsets] table with min_support; the table is missing')
        if not self.mines and self.itemsets_ is not None:
            raise ValueError(f'an [itemsets] table means nothing with task = "{task}"; leave it out')
        frequent = self.mines and self.itemsets.disclose == "frequent"
        if self.rules is not None and frequent and self.rules.measures != DEFAULT_MEASURES:
            raise ValueError('disclose = "frequent" opens no number, so leave out [rules] measures, or use "supports"')
        if not set(self.compute) <= set(self.job.parties):
            raise ValueError("[trust] compute names two different parties of the job")
        return self

    @model_validator(mode="after")
    def _modelled(self) -> JobSpec:
        """Refuses tables of another model than the task's, and columns that do not fit it."""
        task = self.job.task
        for other, name in MODEL_TABLES.items():
            if other != task and getattr(self, name) is not None:
                raise ValueError(f'a [{name}] table needs task = "{other}"')
        if not self.trains:
            if self.columns:
                raise ValueError(f'a [columns] table means nothing with task = "{task}"; leave it out')
            return self
        name = MODEL_TABLES[task]
        if getattr(self, name) is None:
            raise ValueError(f'task = "{task}" needs a [{name}] table; the table is missing')
        check_columns(name, self.model, self.columns)
        from jobs.kinds.models.parameters import model_parameters  # most jobs need none of the arithmetic behind it

        try:
            model_parameters(self)
        except ConfigurationError as error:
            raise ValueError(f"[{name}] {error.message}") from None
        return self

    @model_validator(mode="after")
    def _anonymized(self) -> JobSpec:
        """Refuses what a job that anonymises cannot do."""
        if not self.anonymizes:
            if self.anonymize is not None:
                raise ValueError('an [anonymize] table needs task = "anonymize"')
            return self
        if self.anonymize is None:
            raise ValueError('task = "anonymize" needs an [anonymize] table; the table is missing')
        if self.is_hybrid:
            raise ValueError('task = "anonymize" needs partition = "horizontal" or "vertical"')
        if self.privacy_ is not None:
            raise ValueError('a [privacy] table means nothing with task = "anonymize"; leave it out')
        from jobs.kinds.release.parameters import check_partition, joint_anonymisation

        try:
            check_partition(self)
            joint_anonymisation(self)
        except (ConfigurationError, InputDataError) as error:
            raise ValueError(f"[anonymize] {error.message}") from None
        return self

    @model_validator(mode="after")
    def _partitioned(self) -> JobSpec:
        """Refuses what would be given in vain, so that nobody counts on it."""
        if self.is_vertical:
            given = [*_given("itemsets", self.itemsets_, _HORIZONTAL_ITEMSETS), *_given("union", self.union, _UNION)]
            if given:
                raise ValueError(f'{given[0]} means nothing with partition = "vertical"; leave it out')
            if not (self.mines or self.anonymizes or self.k_means is not None) and self.trust.compute is not None:
                raise ValueError(f'[trust] compute means nothing with task = "{self.job.task}"; leave it out')
            self._check_vertical()
        else:
            if self.job.task == "align":
                raise ValueError('task = "align" needs partition = "vertical": parties that hold the same rows')
            if self.align is not None:
                raise ValueError('an [align] table needs partition = "vertical"')
            given = [
                *_given("itemsets", self.itemsets_, _VERTICAL_ITEMSETS),
                *_given("trust", self.trust, {"helper"}),
                *_given("plan", self.plan, {"rows", "items", "density"}),
            ]
            if given:
                raise ValueError(f'{given[0]} needs partition = "vertical"')
            given = [*_given("union", self.union, _UNION), *_given("trust", self.trust, {"compute"})]
            if self.trains and given:
                raise ValueError(
                    f'{given[0]} means nothing with task = "{self.job.task}" and partition = "horizontal"; leave it out'
                )
        return self

    @model_validator(mode="after")
    def _private(self) -> JobSpec:
        """Refuses a model that does not fit the job, and parties in roles that they cannot have."""
        given, parties = self.privacy, self.job.parties
        if self.is_hybrid and self.privacy_ is None:
            raise ValueError('partition = "hybrid" needs a [privacy] table with model; the table is missing')
        if self.is_hybrid and not self.mines:
            raise ValueError(f'partition = "hybrid" means nothing with task = "{self.job.task}"; use "horizontal"')
        if self.is_vertical and self.privacy_ is not None:
            raise ValueError('a [privacy] table needs partition = "hybrid"; leave it out')
        if not self.mines and self.privacy_ is not None:  # or it would pass for one whose results noise protects
            raise ValueError(f'a [privacy] table means nothing with task = "{self.job.task}"; leave it out')
        if given.perturbs and not self.is_hybrid:
            raise ValueError(f'[privacy] model = "{given.model}" needs partition = "hybrid"')
        if self.mines and given.model == "exact" and self.itemsets.min_support_ is None:
            raise ValueError("[itemsets] min_support is missing; without noise there is no top_k alone")
        if self.mines and self.itemsets.top_k is not None and self.itemsets.disclose == "frequent":
            raise ValueError('[itemsets] disclose = "frequent" opens no supports, and top_k needs them; use "supports"')
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
        if given.model == "shuffle" and self.analyst in self.shufflers:
            raise ValueError(
                f"[privacy] '{self.analyst}' is analyst and shuffler, so it would see whose report is whose"
            )
        if given.colluding > len(parties) - 1:
            raise ValueError(f"[privacy] colluding = {given.colluding} leaves no honest party of {len(parties)}")
        if refusal := too_large_unions(self):
            raise ValueError(refusal)
        return self

    def _check_vertical(self) -> None:
        helper, parties = self.trust.helper, self.job.parties
        if self.alignment.mode == "cardinality" and self.job.task != "align":
            raise ValueError(
                '[align] mode = "cardinality" tells only how many rows all parties have; it needs task = "align"'
            )
        if self.alignment.mode == "union" and self.k_means is not None:
            raise ValueError(
                'task = "k-means" tells all parties the cluster of every common row, so [align] mode = "union" would '
                'hide nothing; use "intersection"'
            )
        if helper == "none":
            return
        if helper not in ("coordinator", *parties):
            raise ValueError(f'[trust] helper is "none", "coordinator" or a party of the job, not \'{helper}\'')
        if len(parties) == 2 and helper in parties:
            raise ValueError(f"[trust] helper: with two parties '{helper}' cannot deal randomness to itself")
        if len(parties) > 2 and helper == "coordinator":
            raise ValueError(
                '[trust] helper = "coordinator" deals randomness to two parties; with more of them, name the party '
                "that is to hold shares beside the two computing parties"
            )
        if len(parties) > 2 and helper in self.compute:
            raise ValueError(f"[trust] helper: '{helper}' is a computing party; name another one")
        if not self.mines or self.itemsets.engine not in ("auto", "replicated"):
            raise ValueError('[trust] helper needs [itemsets] engine = "replicated" or "auto"')

    @classmethod
    def load(cls, path: Path) -> JobSpec:
        """Reads a job file and the public catalogue that it may name.

        Raises:
            ConfigurationError: Something in the file is missing, unknown or wrong.
        """
        return cls.of(read_toml(path), str(path), path.parent)

    @classmethod
    def of(cls, contents: dict[str, Any], where: str, folder: Path) -> JobSpec:
        """A specification from the contents of a job file; a catalogue is looked for in `folder`."""
        task = contents.get("job", {}).get("task") if isinstance(contents.get("job"), dict) else None
        if task in ("union", "sum", "frequency"):
            raise ConfigurationError(f'{where}: [job] task: "{task}" is not available in this version')
        spec = validate(cls, with_hierarchies(contents, folder), where)
        if spec.anonymizes and len(spec.canonical()) > MAX_SPEC_BYTES:
            raise ConfigurationError(f"{where}: the hierarchies are too long for a job; take coarser leaves")
        if not spec.mines or spec.itemsets.universe in UNIVERSES or spec.itemsets.catalogue is not None:
            return spec
        universe = spec.itemsets.universe
        catalogue = _read_catalogue(folder / universe)
        itemsets = spec.itemsets.model_copy(update={"catalogue": catalogue, "universe": Path(universe).name})
        spec = spec.model_copy(update={"itemsets_": itemsets})
        if refusal := too_large_unions(spec):
            raise ConfigurationError(f"{where}: {refusal}")
        if len(spec.canonical()) > MAX_SPEC_BYTES:
            raise ConfigurationError(
                f'{folder / universe} is too long for a catalogue; use universe = "frequent-items"'
            )
        return spec

    @classmethod
    def from_canonical(cls, data: bytes) -> JobSpec:
        """Reads a specification that crossed the wire.

        Raises:
            ConfigurationError: It is not in canonical form.
        """
        try:
            contents = read_json(data)
        except ValueError:
            raise ConfigurationError("the proposed job is not JSON") from None
        spec = validate(cls, contents, "the proposed job")
        if spec.canonical() != data:
            raise ConfigurationError("the proposed job is not in canonical form; bring both nodes to the same version")
        return spec

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
    def mines(self) -> bool:
        """Whether the task finds itemsets, and so has an `[itemsets]` table."""
        return self.job.task in ("itemsets", "rules")

    @property
    def trains(self) -> bool:
        """Whether the task learns a model, and so has the table of that model and `[columns]`."""
        return self.job.task in MODEL_TABLES

    @property
    def anonymizes(self) -> bool:
        """Whether the task releases rows, and so has an `[anonymize]` table."""
        return self.job.task == "anonymize"

    @property
    def anonymization(self) -> JointAnonymizeSection:
        """The `[anonymize]` table of a task that releases rows; no other has one."""
        if self.anonymize is None:
            raise ValueError(f"the task {self.job.task} anonymises nothing")
        return self.anonymize

    @property
    def finds(self) -> bool:
        """Whether the task finds more than numbers of rows: itemsets, a model or a release."""
        return self.mines or self.trains or self.anonymizes

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
    def to_coordinator(self) -> bool:
        """Whether the coordinator gets the result."""
        return "coordinator" in self.job.recipients or "all" in self.job.recipients

    @property
    def table_to_coordinator(self) -> bool:
        """Whether the coordinator gets itemsets, a model or a release: it is a recipient, and the task finds some."""
        return self.finds and self.to_coordinator


def _given(table: str, section: Section | None, fields: frozenset[str] | set[str]) -> list[str]:
    """Those of the fields that are not at their defaults, as they are called in the file."""
    if section is None:
        return []
    known = type(section).model_fields
    return [
        f"[{table}] {known[name].alias or name}"
        for name in known
        if name in fields and getattr(section, name) != known[name].get_default(call_default_factory=True)
    ]


def _read_catalogue(path: Path) -> tuple[str, ...]:
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")  # no other sign ends a line, but may be in an item
    except UnicodeDecodeError:
        raise ConfigurationError(f"the catalogue {path} is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the catalogue {path} cannot be read: {why_not_read(error)}") from None
    items = sorted({line for line in lines if line}, key=str.encode)
    if not items:
        raise ConfigurationError(f"the catalogue {path} names no item")
    return tuple(items)
