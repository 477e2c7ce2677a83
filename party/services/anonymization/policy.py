"""What releases of a dataset may be: the table `[dataset.anonymization]` of `party.toml`."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, model_validator

from jobs.anonymization.hierarchy_spec import FileEntry, HierarchyEntry
from jobs.anonymization.model_entry import outside
from jobs.anonymization.model_spec import KEYS, LevelsSection, ModelSection
from jobs.anonymization.spec import FULL_DOMAIN, Algorithm, AnonymizeSection, ColumnSection
from jobs.federation import Name
from jobs.spec.values import ColumnName, Duration, Fraction, Section, one_of
from link.errors import ConfigurationError, PolicyDenied
from party.policy.column_roles import Roles, columns_refusal, some_once
from party.policy.policy_input import listed
from party.services.anonymization.strength import released, unmet


def _model_key(value: str) -> str:
    """A key of `[anonymize.model]` that somebody has."""
    return value if outside([value]) else one_of([key for key in KEYS if key != "k"], value)


ModelKey = Annotated[str, AfterValidator(_model_key)]
MEGABYTE: Final = 1 << 20


class AnonymizationRules(Section):
    """The `[dataset.anonymization]` table; without it no release of the dataset leaves.

    Attributes:
        coordinators: Who may ask for one; all of the federation's coordinators, where absent.
        columns: Columns that may leave, and in which roles. All others stay, and releases know nothing of them.
        min_k: The least k of a release. Identity replacement (ppir) has none; it must be named under `algorithms`.
        algorithms: That may be taken.
        models: That requests may add to k and to what `require` has.
        require: What every release must meet at least, of the columns that it has.
        max_suppression: The largest share of rows that a request may let be suppressed.
        suppressed: What may become of suppressed rows.
        describe: `node`: kinds, hierarchies and levels are those below. `request`: who asks may give others; what he
            learns from whether they fit the data is bounded by `max_failures` alone.
        kinds: Of columns, as in `[anonymize.columns]`.
        hierarchies: Of columns, as in `[anonymize.hierarchies]`; files are beside `party.toml`.
        levels: Of sensitivity, as in `[anonymize.levels]`; a request that needs them repeats them.
        allow_unique: Columns that may leave as insensitive although they distinguish most rows, since nobody can know
            them of a person.
        report: Whether the report leaves, too; it shows figures of the original.
        max_releases: How many different releases leave in all: together they reveal more than each.
        max_failures: How many different requests may come to nothing on the data: which thresholds rows can meet
            reveals something about them.
        max_time: Of one run.
        max_memory: Of one run, in MiB.
    """

    coordinators: tuple[Name, ...] | None = None
    columns: dict[ColumnName, Roles] = Field(min_length=1)
    min_k: int = Field(ge=2, strict=True)
    algorithms: Annotated[tuple[Algorithm, ...], AfterValidator(some_once)]
    models: tuple[ModelKey, ...] = ()
    require: ModelSection = ModelSection()
    max_suppression: Fraction = Field(default=Decimal(0), ge=0, le=1)
    suppressed: Annotated[tuple[Literal["drop", "blank", "keep"], ...], AfterValidator(some_once)] = ("drop",)
    describe: Literal["node", "request"] = "node"
    kinds: dict[ColumnName, ColumnSection] = Field(default={})
    hierarchies: dict[ColumnName, HierarchyEntry] = Field(default={})
    levels: LevelsSection | None = None
    allow_unique: tuple[ColumnName, ...] = ()
    report: bool = False
    max_releases: int = Field(default=1, ge=1, strict=True)
    max_failures: int = Field(default=20, ge=1, strict=True)
    max_time: Duration = "30m"
    max_memory: int = Field(default=4096, ge=256, strict=True)

    @model_validator(mode="after")
    def _consistent(self) -> AnonymizationRules:
        for what, names in (("kinds", self.kinds), ("hierarchies", self.hierarchies)):
            if unknown := [name for name in names if name not in self.columns]:
                raise ValueError(f"{what} describes the column '{unknown[0]}', which columns does not let leave")
        if foreign := [name for name in self.allow_unique if "insensitive" not in self.columns.get(name, ())]:
            raise ValueError(f"allow_unique names '{foreign[0]}', which columns does not let leave as insensitive")
        if self.require.k is not None:
            raise ValueError("require names k; write it as min_k")
        if self.require.h is not None and (self.levels is None or self.levels.column is None):
            raise ValueError("require names H, which needs [dataset.anonymization.levels] with their column")
        for key, entries in self.require.entries.items():
            for entry in entries:
                if not entry.named:
                    raise ValueError(f"require {key} lacks its column; name the sensitive column that it protects")
                for name in entry.named:
                    if "sensitive" not in self.columns.get(name, ()):
                        raise ValueError(
                            f"require {key} protects the column '{name}', which columns does not let leave as sensitive"
                        )
        weak = [name for name in ("condensation", "ppir") if name in self.algorithms]
        if weak and self.require.beside_k:
            raise ValueError(f"algorithms names '{weak[0]}', which forms no classes and cannot meet what require has")
        return self

    def beside(self, folder: Path) -> AnonymizationRules:
        """The same with files of hierarchies taken from `folder`."""
        found = {
            name: entry.model_copy(update={"file": str(folder / entry.file)}) if isinstance(entry, FileEntry) else entry
            for name, entry in self.hierarchies.items()
        }
        return self.model_copy(update={"hierarchies": found})


def may_ask(rules: AnonymizationRules, coordinator: str) -> bool:
    """Whether a coordinator may ask for releases."""
    return rules.coordinators is None or coordinator in rules.coordinators


def described(rules: AnonymizationRules, spec: AnonymizeSection) -> AnonymizeSection:
    """A request with what the node says of its columns, as far as the request does not say it.

    Raises:
        ConfigurationError: A quasi-identifier has no hierarchy where the algorithm needs one.
    """
    generalised, used = spec.quasi_identifiers, released(spec)
    kinds = {name: kind for name, kind in rules.kinds.items() if name in used}
    trees = {name: tree for name, tree in rules.hierarchies.items() if name in (*generalised, *spec.sensitive)}
    changes = {"columns": kinds | spec.columns, "hierarchies": trees | spec.hierarchies}
    unique = tuple(name for name in rules.allow_unique if name in spec.insensitive)
    found = spec.model_copy(update=changes | ({"allow_unique": unique} if unique else {}))
    lacking = [name for name in generalised if name not in found.hierarchies]
    if found.algorithm in FULL_DOMAIN and lacking:
        raise ConfigurationError(
            f'there is no hierarchy of {listed(lacking)}, which algorithm = "{found.algorithm}" needs for every '
            "quasi-identifier; take another algorithm, such as mondrian, or have the hierarchy written into "
            "[dataset.anonymization.hierarchies] of the node"
        )
    return found


def check_request(rules: AnonymizationRules, spec: AnonymizeSection, coordinator: str, me: str) -> None:
    """Refuses a request that the policy does not allow.

    Args:
        rules: Of the dataset.
        spec: What is asked for, in the asker's words.
        coordinator: Who asks.
        me: This party.

    Raises:
        PolicyDenied: The sentence names the rule, and what would be allowed.
    """
    refusal = next(filter(None, (rule(rules, spec, coordinator) for rule in _RULES)), None)
    if refusal is not None:
        raise PolicyDenied(f"the policy of {me} {refusal}", party=me)


def _coordinators(rules: AnonymizationRules, spec: AnonymizeSection, coordinator: str) -> str | None:  # noqa: ARG001
    if may_ask(rules, coordinator):
        return None
    return (
        f"lets {listed(rules.coordinators or ())} ask for releases of this dataset, and not '{coordinator}' (rule "
        "coordinators)"
    )


def _columns(rules: AnonymizationRules, spec: AnonymizeSection, coordinator: str) -> str | None:  # noqa: ARG001
    return columns_refusal(rules.columns, spec)


def _algorithms(rules: AnonymizationRules, spec: AnonymizeSection, coordinator: str) -> str | None:  # noqa: ARG001
    if spec.algorithm in rules.algorithms:
        return None
    return f"allows algorithm = {listed(rules.algorithms)} only, not '{spec.algorithm}' (rule algorithms)"


def _min_k(rules: AnonymizationRules, spec: AnonymizeSection, coordinator: str) -> str | None:  # noqa: ARG001
    if spec.algorithm == "ppir" or (spec.model.k is not None and spec.model.k >= rules.min_k):
        return None
    has = "none" if spec.model.k is None else f"k = {spec.model.k}"
    return f"asks for k of at least {rules.min_k} (rule min_k), and the request has {has}"


def _models(rules: AnonymizationRules, spec: AnonymizeSection, coordinator: str) -> str | None:  # noqa: ARG001
    required = set(rules.require.beside_k)
    for key in spec.model.beside_k:
        if key not in rules.models and key not in required:
            allowed = listed(("k", *dict.fromkeys((*sorted(required), *rules.models))))
            return f"allows the models {allowed} only, not '{key}' (rule models)"
    return None


def _require(rules: AnonymizationRules, spec: AnonymizeSection, coordinator: str) -> str | None:  # noqa: ARG001
    lacking = unmet(rules.require, spec, None if rules.levels is None else rules.levels.column)
    return None if lacking is None else f"asks for {lacking} or stricter (rule require), and the request lacks it"


def _suppression(rules: AnonymizationRules, spec: AnonymizeSection, coordinator: str) -> str | None:  # noqa: ARG001
    if spec.max_suppression > rules.max_suppression:
        return (
            f"asks for max_suppression of at most {rules.max_suppression} (rule max_suppression), and the request has "
            f"{spec.max_suppression}"
        )
    if spec.suppressed not in rules.suppressed:
        return f"allows suppressed = {listed(rules.suppressed)} only, not '{spec.suppressed}' (rule suppressed)"
    return None


def _describe(rules: AnonymizationRules, spec: AnonymizeSection, coordinator: str) -> str | None:  # noqa: ARG001
    if rules.describe == "request":
        return None
    for table, given, own in (
        ("columns", spec.columns, rules.kinds),
        ("hierarchies", spec.hierarchies, rules.hierarchies),
    ):
        other = [name for name, entry in given.items() if own.get(name) != entry]
        if other:
            return (
                f"says itself what the columns of this dataset are (rule describe); leave '{other[0]}' out of "
                f"[anonymize.{table}]"
            )
    if spec.levels is not None and spec.levels != rules.levels:
        return (
            "says itself which values are how sensitive (rule describe); give [anonymize.levels] as comine anonymize "
            "datasets --json lists them"
        )
    return None


def _seed(rules: AnonymizationRules, spec: AnonymizeSection, coordinator: str) -> str | None:  # noqa: ARG001
    if spec.seed is None:
        return None
    return "lets nobody choose the draws, since who knows the seed can undo them; leave seed out"


def _row_order(rules: AnonymizationRules, spec: AnonymizeSection, coordinator: str) -> str | None:  # noqa: ARG001
    if spec.row_order == "sorted":
        return None
    return "sorts the rows of releases, since a row's place in the table shows which one it is; leave row_order out"


_RULES: Final[tuple[Callable[[AnonymizationRules, AnonymizeSection, str], str | None], ...]] = (
    _coordinators,
    _columns,
    _algorithms,
    _min_k,
    _models,
    _require,
    _suppression,
    _describe,
    _seed,
    _row_order,
)
