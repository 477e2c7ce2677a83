"""What a node lets collections be: the `[frequency]` table of its `party.toml`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated, Final

from pydantic import Field, field_validator

from jobs.collections.mechanism import kept_epsilon, mechanism_of_round, report_epsilon
from jobs.collections.spec import MAX_SPEC_BYTES, CollectionSpec
from jobs.collections.tables import MECHANISMS
from jobs.federation import Name
from jobs.spec.toml import TomlTable
from jobs.spec.values import Duration, Fraction
from ldp.domain import LARGEST_DOMAIN, Domain
from ldp.registry import brought, is_brought
from link.errors import LimitExceeded, PolicyDenied
from link.files.json_text import read_json
from link.files.quantities import seconds

DAY_S: Final = 86_400
MOST_ROUNDS: Final = 100_000  # of one coordinator that may end in a day; each takes some 440 bytes of the audit log
MOST_MEMORY: Final = 1 << 30  # that the collections of one coordinator may take
_COLLECTION_BYTES: Final = 1 << 13  # of a collection, beside four times its specification
_LABEL_BYTES: Final = 120  # of a label, beside its text as it came and as it is looked up
_SUM_BYTES: Final = 16  # of a sum, and of its copy for whoever reads


class FrequencySection(TomlTable):
    """The `[frequency]` table; without it a node collects nothing.

    Attributes:
        max_epsilon: The largest ε that a collection may ask for, of a report and of all reports of a value that
            repeat a kept answer.
        create: Coordinators that may create collections; all, where absent.
        mechanisms: That collections may use; all of comine itself, where absent. Those of plug-ins must be named.
        max_collections: That are open at once.
        max_domain: Values that a collection's domain may have.
        min_window: The shortest window that a collection may have.
        min_reports: An estimate of fewer reports is not shown.
        max_disk: Bytes that all collections together may take; beyond, no report is taken.
        max_memory: Bytes that it may take whose reports have come in open periods; beyond, no report is taken.
    """

    max_epsilon: Fraction
    create: tuple[Name, ...] | None = None
    mechanisms: tuple[str, ...] | None = None
    max_collections: int = Field(default=100, ge=1, le=10_000)
    max_domain: int = Field(default=1 << 20, ge=2, le=LARGEST_DOMAIN)
    min_window: Duration | None = None
    min_reports: Annotated[int, Field(ge=0)] = 0
    max_disk: int = Field(default=10 << 30, ge=1 << 20)
    max_memory: int = Field(default=2 << 30, ge=1 << 10)

    @field_validator("max_epsilon")
    @classmethod
    def _positive(cls, value: Decimal) -> Decimal:
        if not (value.is_finite() and value > 0):
            raise ValueError(f"{value} must be a number above 0, such as 4.0")
        return value

    @field_validator("mechanisms")
    @classmethod
    def _known(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for name in value or ():
            if name not in MECHANISMS and not is_brought(name):
                raise ValueError(
                    f"there is no mechanism '{name[:40]}'; there are {', '.join((*MECHANISMS, *brought()))}"
                )
        return value


def check_creation(policy: FrequencySection, spec: CollectionSpec, coordinator: str, me: str, *, running: int) -> None:
    """Refuses a collection that the policy does not allow.

    Args:
        policy: This node's.
        spec: What is to be created.
        coordinator: Who asks.
        me: This party.
        running: How many collections are open.

    Raises:
        PolicyDenied: The sentence names the rule, and what would be allowed.
    """
    refusal = _refusal(policy, spec, coordinator, running)
    if refusal is not None:
        raise PolicyDenied(f"the policy of {me} {refusal}", party=me)


def read_spec(policy: FrequencySection, data: bytes, me: str) -> CollectionSpec:
    """Reads a specification that a coordinator sent; a plug-in's mechanism is made only where the policy names it.

    Args:
        policy: This node's.
        data: What was sent.
        me: This party.

    Raises:
        PolicyDenied: It asks for a plug-in's mechanism that the policy does not name.
        ConfigurationError: It cannot be read.
    """
    with contextlib.suppress(ValueError, TypeError, LookupError):  # what is wrong with it is said when it is read
        name = read_json(data[: MAX_SPEC_BYTES + 1])["collection"]["mechanism"]
        if isinstance(name, str) and is_brought(name) and name not in (policy.mechanisms or ()):
            raise PolicyDenied(f"the policy of {me} {_other_mechanism(policy, name)}", party=me)
    return CollectionSpec.from_canonical(data)


def check_rounds(spec: CollectionSpec, open_: Iterable[CollectionSpec], creator: str, me: str) -> None:
    """Refuses a collection with which its creator's rounds would end too often: the audit log keeps each end for ever.

    Args:
        spec: What is to be created.
        open_: The creator's other collections, as far as they are open.
        creator: Who asks.
        me: This party.

    Raises:
        LimitExceeded: They would.
    """
    if sum(map(_rounds_a_day, (spec, *open_))) > MOST_ROUNDS:
        raise LimitExceeded(
            f"the open collections of {creator} at {me} may end {MOST_ROUNDS:,} rounds a day together, and with "
            f"'{spec.name}' they would end more; take a longer window, or close a collection",
            party=me,
        )


def memory_of(spec: CollectionSpec, spec_bytes: int, label_bytes: int, *, closed: bool) -> int:
    """About how many bytes of memory a collection takes: itself and its labels and, while it is open, its sums.

    Args:
        spec: What it is.
        spec_bytes: Of the specification in canonical form.
        label_bytes: Of its labels, as they came.
        closed: Whether it has no open round any more.
    """
    section, taken = spec.collection, _COLLECTION_BYTES + 4 * spec_bytes
    if section.labelled:
        taken += 2 * label_bytes + _LABEL_BYTES * (section.size or 0)
    return taken if closed else taken + _SUM_BYTES * spec.sums


def check_memory(spec: CollectionSpec, label_bytes: int, taken: int, creator: str, me: str) -> None:
    """Refuses a collection with which those of its creator would take too much of the node's memory.

    Args:
        spec: What is to be created.
        label_bytes: Of its labels; as long as they are not there, nothing.
        taken: What its creator's other collections take, by `memory_of`.
        creator: Who asks.
        me: This party.

    Raises:
        LimitExceeded: They would.
    """
    if taken + memory_of(spec, len(spec.canonical()), label_bytes, closed=False) > MOST_MEMORY:
        raise LimitExceeded(
            f"the collections of {creator} at {me} may take {MOST_MEMORY >> 20} MiB of its memory together, with their "
            f"labels and sums, and with '{spec.name}' they would take more; delete some that are closed, or collect "
            "fewer values",
            party=me,
        )


def _rounds_a_day(spec: CollectionSpec) -> int:
    if spec.window is None:
        return 1
    rounds = -(-DAY_S // spec.window.length_s)
    return rounds if spec.window.periods is None else min(rounds, spec.window.periods)


def _refusal(policy: FrequencySection, spec: CollectionSpec, coordinator: str, running: int) -> str | None:
    section, window = spec.collection, spec.window
    if policy.create is not None and coordinator not in policy.create:
        allowed = ", ".join(policy.create) or "nobody"
        return f"lets {allowed} create collections, and not '{coordinator}' (rule create)"
    asked = report_epsilon(spec)
    if asked > policy.max_epsilon:
        return f"allows epsilon up to {policy.max_epsilon} (rule max_epsilon), and the collection asks for {asked:.6g}"
    kept = kept_epsilon(spec)
    if kept > policy.max_epsilon:
        return (
            f"allows epsilon up to {policy.max_epsilon} (rule max_epsilon), and all reports of a value together spend "
            f"{kept:.6g} in the collection; set its permanent_epsilon"
        )
    if section.mechanism not in (MECHANISMS if policy.mechanisms is None else policy.mechanisms):
        return _other_mechanism(policy, section.mechanism)
    if is_brought(section.mechanism):
        spent = mechanism_of_round(spec, None if section.size is None else Domain(section.size)).exact_epsilon
        if not spent <= float(policy.max_epsilon):  # nor where it is no number
            return (
                f"allows epsilon up to {policy.max_epsilon} (rule max_epsilon), and a report of '{section.mechanism}' "
                f"would spend {spent:.6g} with the collection's parameters"
            )
    if section.size is not None and section.size > policy.max_domain:
        return (
            f"allows domains of {policy.max_domain:,} values at most (rule max_domain), and the collection's has "
            f"{section.size:,}"
        )
    if policy.min_window is not None and window is not None and window.length_s < seconds(policy.min_window):
        return (
            f"asks for windows of at least {policy.min_window} (rule min_window), and the collection's have "
            f"{window.length}"
        )
    if running >= policy.max_collections:
        return f"allows {policy.max_collections} open collections at once (rule max_collections); close one first"
    return None


def _other_mechanism(policy: FrequencySection, asked: str) -> str:
    allowed = ", ".join(MECHANISMS if policy.mechanisms is None else policy.mechanisms) or "none"
    return f"allows the mechanisms {allowed} (rule mechanisms), and the collection takes '{asked}'"
