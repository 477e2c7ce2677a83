"""`hiding.json`: what hiding rules changed in transactions, as a model from which its published schema is made."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from jobs.documents.part import Part
from link.version import software_version
from mining.hiding.effects import Effects
from mining.hiding.hide import Sanitised
from mining.hiding.sensitive import Scope, Thresholds


class EffectsDocument(Part):
    """Side effects on one kind of patterns."""

    sensitive: int = Field(ge=0, description="Sensitive patterns that could be found before.")
    hiding_failure: float = Field(ge=0, le=1, description="Share of them that can be found still.")
    others: int = Field(ge=0, description="Other patterns that could be found before.")
    lost: int = Field(ge=0, description="How many of those can no longer be found.")
    misses_cost: float = Field(ge=0, le=1, description="lost / others.")
    ghosts: int = Field(ge=0, description="Patterns that can be found now and could not before.")
    artefactual: float = Field(ge=0, le=1, description="ghosts / patterns that can be found now.")


class SolverDocument(Part):
    """How the exact search ended."""

    status: Literal["optimal", "time limit", "heuristic"]
    bound: float = Field(description="No solution has a lower weighted sum of lost itemsets and deletions.")
    gap: float = Field(ge=0, description="By how much, as a share, the solution may be above the best one.")
    seconds: float = Field(ge=0)


class HidingDocument(Part):
    """The whole of `hiding.json`. It names no sensitive rule."""

    schema_: Literal["comine.hiding/1"] = Field(alias="schema")
    method: str
    scope: Scope
    min_support: str
    min_confidence: str
    n_sensitive: int = Field(ge=1, description="Rules and itemsets that were to be hidden.")
    n_rows: int = Field(ge=0, description="Transactions that may be released.")
    removed_rows: int = Field(ge=0)
    deleted_cells: int = Field(ge=0)
    added_cells: int = Field(ge=0)
    dissimilarity: float = Field(ge=0, description="Changed cells / cells.")
    itemsets: EffectsDocument
    rules: EffectsDocument
    solver: SolverDocument | None = None
    software: str


def hiding_document(found: Sanitised, thresholds: Thresholds, scope: Scope, n_sensitive: int) -> HidingDocument:
    """The document of a run."""
    solved = found.solved
    return HidingDocument(
        schema="comine.hiding/1",
        method=found.method,
        scope=scope,
        min_support=str(thresholds.min_support),
        min_confidence=str(thresholds.min_confidence),
        n_sensitive=n_sensitive,
        n_rows=found.transactions.n_rows,
        removed_rows=found.removed,
        deleted_cells=found.deleted,
        added_cells=found.added,
        dissimilarity=found.dissimilarity,
        itemsets=_effects(found.itemsets),
        rules=_effects(found.rules),
        solver=None
        if solved is None
        else SolverDocument(status=solved.status, bound=solved.bound, gap=solved.gap, seconds=round(solved.seconds, 3)),
        software=software_version(),
    )


def _effects(found: Effects) -> EffectsDocument:
    return EffectsDocument(
        sensitive=found.sensitive,
        hiding_failure=found.hiding_failure,
        others=found.others,
        lost=found.lost,
        misses_cost=found.misses_cost,
        ghosts=found.ghosts,
        artefactual=found.artefactual,
    )
