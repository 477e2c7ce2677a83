"""Other ways to do a job: what each costs, and what it discloses more or less than the job as it is written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobs.kinds.rows.parameters import helper_of, horizontal_mining
from jobs.kinds.rows.plan_figures import Figures
from jobs.plan.alternatives import alternative, is_possible
from jobs.plan.answer import Answer
from jobs.plan.plan import Alternative
from jobs.spec.job import JobSpec
from jobs.statement import statement
from link.errors import ConfigurationError
from mining.joint.disclosure import may_be_level_wise
from mining.joint.parameters import HorizontalMining
from mining.rules.measure_names import DEFAULT_MEASURES


@dataclass(frozen=True)
class Variant:
    """The job with some settings changed.

    Attributes:
        name: What it is about.
        change: The lines of the job file that choose it.
        spec: The changed job.
    """

    name: str
    change: tuple[str, ...]
    spec: JobSpec


def variants(spec: JobSpec) -> list[Variant]:
    """One change at a time, and two that go all the way: to the least disclosure, and to the most speed.

    What the specification itself refuses is none.
    """
    written = spec.itemsets
    changes: list[tuple[str, dict[str, Any]]] = [
        (f'disclose = "{disclose}"', {"disclose": disclose}) for disclose in ("candidates", "supports", "frequent")
    ]
    if written.catalogue is None:
        changes += [(f'universe = "{universe}"', {"universe": universe}) for universe in ("hidden", "frequent-items")]
    task = horizontal_mining(spec)
    if may_be_level_wise(task) and task.strategy != "one-shot":
        changes.append((f"{'not ' * written.thin}thinned", {"thin": not written.thin}))
    if task.allows(2):
        changes += [(f'strategy = "{name}"', {"strategy": name}) for name in ("level-wise", "one-shot")]
    found = [_changed(spec, name, change) for name, change in changes]
    if task.is_shared and len(spec.job.parties) > 2:
        found.append(_helped(spec))
    if task.helper is not None or written.catalogue is not None:
        found.append(_secured(spec))
    free = {"strategy": "auto"} if written.catalogue is not None else {"strategy": "auto", "universe": "auto"}
    least = {**free, "thin": False, "prefer": "disclosure", "disclose": "frequent"}
    found += [_changed(spec, "least disclosure", least), _changed(spec, "most speed", {**free, "prefer": "speed"})]
    by_task: dict[HorizontalMining, Variant] = {}
    for variant in found:
        if is_possible(variant.spec):
            by_task.setdefault(horizontal_mining(variant.spec), variant)
    by_task.pop(task, None)
    return list(by_task.values())


def alternatives(spec: JobSpec, written: Figures, answers: Mapping[str, Answer], latency_s: float) -> list[Alternative]:
    """The variants that differ from the job as it is written in cost or statement, and could run.

    Args:
        spec: The job.
        written: Its figures.
        answers: What each of its parties is taken to be, in the order of the job.
        latency_s: Seconds that a message is expected to take from party to party.
    """
    here, found = statement(spec), []
    for variant in variants(spec):
        try:
            figures = Figures.of(horizontal_mining(variant.spec), answers, latency_s, spec.plan.bytes_per_s)
        except ConfigurationError:  # min_confidence has too many digits for rules on shares: that job would fail
            continue
        if statement(variant.spec) == here and figures.bytes_sent == written.bytes_sent:
            continue
        strategy = figures.found.strategy if figures.found is not None else None
        known = figures if figures.found is not None else None
        found.append(alternative(variant.name, variant.change, spec, variant.spec, strategy, known))
    return found


def _helped(spec: JobSpec) -> Variant:
    """The job with a third computing party, or without the one that it has."""
    helper = "none"
    if helper_of(spec) is None:
        helper = next(party for party in spec.job.parties if party not in spec.compute)
    trust = spec.trust.model_copy(update={"helper": helper})
    return Variant(f'helper = "{helper}"', (f'[trust] helper = "{helper}"',), spec.model_copy(update={"trust": trust}))


def _secured(spec: JobSpec) -> Variant:
    """The job that holds against parties that deviate, too, or against semi-honest ones alone."""
    security = "semi-honest" if spec.is_verified else "malicious"
    line = f'security = "{security}"'
    trust = spec.trust.model_copy(update={"security": security})
    return Variant(line, (f"[trust] {line}",), spec.model_copy(update={"trust": trust}))


def _changed(spec: JobSpec, name: str, change: Mapping[str, Any]) -> Variant:
    """The job with these settings of `[itemsets]`, and what they ask of others."""
    change = {key: value for key, value in change.items() if getattr(spec.itemsets, key) != value}
    lines = [f"[itemsets] {key} = {json.dumps(value)}" for key, value in change.items()]
    update: dict[str, Any] = {"itemsets_": spec.itemsets.model_copy(update=change)}
    if spec.rules is not None and change.get("disclose") == "frequent" and spec.rules.measures != DEFAULT_MEASURES:
        update["rules"] = spec.rules.model_copy(update={"measures": DEFAULT_MEASURES})
        lines.append("[rules] without measures")
    return Variant(name, tuple(lines), spec.model_copy(update=update))
