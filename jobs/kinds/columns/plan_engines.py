"""The engines of a vertical job beside one another: what each costs, who must be trusted, and which one is taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from jobs.kinds.columns.engine import engine_reason, helper_of
from jobs.kinds.columns.parameters import mines, vertical_mining
from jobs.kinds.columns.plan_figures import VerticalFigures
from jobs.plan.plan import EngineFigures
from jobs.spec.job import AUTO_HELPER, JobSpec
from mining.joint.vertical.choice import allowed_engines, chosen_engine
from mining.joint.vertical.engines.engine import Engine
from mining.joint.vertical.engines.registry import OWN
from mining.joint.vertical.parameters import COORDINATOR

_NOTABLY: Final = 0.8  # of the seconds of the engine that is taken: less is worth a word


@dataclass(frozen=True)
class EngineVariant:
    """A vertical job with one of the engines.

    Attributes:
        spec: The job.
        change: The lines of the job file that choose the engine; none for the one that the job takes.
        chosen: Whether the job takes it.
        allowed: Whether the trust that the job states allows it.
    """

    spec: JobSpec
    change: tuple[str, ...]
    chosen: bool
    allowed: bool


Compared = Mapping[str, tuple[EngineVariant, VerticalFigures]]


def engine_variants(spec: JobSpec) -> dict[str, EngineVariant]:
    """The job with each engine of comine itself, and with its own; none of a job that does not mine.

    Where parties may deviate there is one engine alone.
    """
    if not mines(spec):
        return {}
    task = vertical_mining(spec)
    chosen, allowed = chosen_engine(task).name, allowed_engines(task)
    if task.is_verified:
        return {chosen: EngineVariant(spec, (), chosen=True, allowed=True)}
    return {
        name: _changed(spec, engine, allowed=name in allowed)
        if name != chosen
        else EngineVariant(spec, (), chosen=True, allowed=True)
        for name, engine in (OWN | {chosen: chosen_engine(task)}).items()
    }


def _changed(spec: JobSpec, engine: Engine, *, allowed: bool) -> EngineVariant:
    update: dict[str, Any] = {"itemsets_": spec.itemsets.model_copy(update={"engine": engine.name})}
    lines, helper = [f'[itemsets] engine = "{engine.name}"'], spec.trust.helper
    if not engine.takes_helper and helper != AUTO_HELPER:
        helper = "none"
    elif engine.takes_helper and helper == "none":
        helper = helper_of(spec.model_copy(update=update)) or COORDINATOR
    if helper != spec.trust.helper:
        update["trust"] = spec.trust.model_copy(update={"helper": helper})
        lines.append(f'[trust] helper = "{helper}"')
    return EngineVariant(spec.model_copy(update=update), tuple(lines), chosen=False, allowed=allowed)


def of_engines(compared: Compared, *, known: bool) -> list[EngineFigures]:
    """The table of a plan.

    Args:
        compared: By engine the job with it, and its figures.
        known: Whether the parties publish what the figures depend on.
    """
    return [
        EngineFigures(
            engine=engine,
            chosen=variant.chosen,
            allowed=variant.allowed,
            trust=_trust(variant.spec),
            change=list(variant.change),
            rounds=figures.traffic.rounds if known else None,
            seconds=figures.seconds if known else None,
            bytes_sent=figures.bytes_sent if known else None,
            memory_bytes=max(figures.memory_bytes.values()) if known else None,
        )
        for engine, (variant, figures) in compared.items()
    ]


def why(spec: JobSpec, compared: Compared) -> str | None:
    """Why the job takes its engine, and whether published sizes speak for another one; None without engines."""
    if not compared:
        return None
    reason = engine_reason(spec)
    taken = next(engine for engine, (variant, _) in compared.items() if variant.chosen)
    seconds = {engine: figures.seconds for engine, (variant, figures) in compared.items() if variant.allowed}
    quickest = min(seconds, key=lambda engine: seconds[engine])
    if not compared[taken][1].found.includes_mining or seconds[quickest] > _NOTABLY * seconds[taken]:
        return reason
    change = ", ".join(compared[quickest][0].change)
    return (
        f"{reason} By what the parties publish, {quickest} would be quicker here: {seconds[quickest]:.1f} s against "
        f"{seconds[taken]:.1f} s; set {change}."
    )


def _trust(spec: JobSpec) -> str:
    task = vertical_mining(spec)
    return chosen_engine(task).trust(task, spec.job.parties)
