"""The engines of a vertical job beside one another: what each costs, who must be trusted, and which one is taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from jobs.kinds.columns.engine import engine_reason, helper_of
from jobs.kinds.columns.parameters import mines, vertical_mining
from jobs.kinds.columns.plan_figures import VerticalFigures
from jobs.plan.plan import EngineFigures
from jobs.spec.job import JobSpec
from mining.joint.vertical.choice import chosen_engine
from mining.joint.vertical.parameters import COORDINATOR, ChosenEngine
from mining.joint.vertical.sizes import ENGINES

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


Compared = Mapping[ChosenEngine, tuple[EngineVariant, VerticalFigures]]


def engine_variants(spec: JobSpec) -> dict[ChosenEngine, EngineVariant]:
    """The job with each engine; none of a job that does not mine."""
    if not mines(spec):
        return {}
    task = vertical_mining(spec)
    return {
        engine: EngineVariant(spec, (), chosen=True, allowed=True)
        if engine == chosen_engine(task)
        else _changed(spec, engine, allowed=engine != "replicated" or task.helper is not None)
        for engine in ENGINES
    }


def _changed(spec: JobSpec, engine: ChosenEngine, *, allowed: bool) -> EngineVariant:
    update: dict[str, Any] = {"itemsets_": spec.itemsets.model_copy(update={"engine": engine})}
    lines, helper = [f'[itemsets] engine = "{engine}"'], spec.trust.helper
    if engine == "replicated" and helper == "none":
        helper = helper_of(spec.model_copy(update=update)) or COORDINATOR
    elif engine != "replicated":
        helper = "none"
    if helper != spec.trust.helper:
        update["trust"] = spec.trust.model_copy(update={"helper": helper})
        lines.append(f'[trust] helper = "{helper}"')
    return EngineVariant(spec.model_copy(update=update), tuple(lines), chosen=False, allowed=allowed)


def of_engines(compared: Compared, *, known: bool) -> list[EngineFigures]:
    """The table of a plan.

    Args:
        compared: By engine the job with it, and its figures.
        known: Whether the parties tell what the figures hang on.
    """
    return [
        EngineFigures(
            engine=engine,
            chosen=variant.chosen,
            allowed=variant.allowed,
            trust=_trust(variant.spec, engine),
            change=list(variant.change),
            rounds=figures.traffic.rounds if known else None,
            seconds=figures.seconds if known else None,
            bytes_sent=figures.bytes_sent if known else None,
            memory_bytes=max(figures.memory_bytes.values()) if known else None,
        )
        for engine, (variant, figures) in compared.items()
    ]


def why(spec: JobSpec, compared: Compared) -> str | None:
    """Why the job takes its engine, and whether what the parties tell speaks for another one; None without engines."""
    if not compared:
        return None
    reason = engine_reason(spec)
    taken = next(engine for engine, (variant, _) in compared.items() if variant.chosen)
    seconds = {engine: figures.seconds for engine, (variant, figures) in compared.items() if variant.allowed}
    quickest = min(seconds, key=lambda engine: seconds[engine])
    if not compared[taken][1].found.mining_is_reckoned or seconds[quickest] > _NOTABLY * seconds[taken]:
        return reason
    change = ", ".join(compared[quickest][0].change)
    return (
        f"{reason} By what the parties tell {quickest} would be quicker here: {seconds[quickest]:.1f} s against "
        f"{seconds[taken]:.1f} s; set {change}."
    )


def _trust(spec: JobSpec, engine: ChosenEngine) -> str:
    helper = helper_of(spec)
    if engine == "paillier":
        return "nobody; but the time of answers tells something of columns"
    if engine != "replicated" or helper is None:
        return "nobody: products withstand all other parties together"
    if helper == COORDINATOR:
        return f"the {COORDINATOR}, who deals randomness, not to work together with a party"
    first, second = spec.compute
    return f"{first}, {second} and {helper}, who hold shares of all columns: no two of them to work together"
