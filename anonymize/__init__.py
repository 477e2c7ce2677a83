"""Anonymisation: tables, hierarchies, privacy models, algorithms, risk and utility.

    from anonymize import DistinctDiversity, KAnonymity, Requirements, Roles, Table, optimal

Names are loaded when they are first used. Builders of hierarchies are in `anonymize.hierarchies.builders`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from link.public_names import lazily

if TYPE_CHECKING:
    from anonymize.grouping import Histograms
    from anonymize.hierarchies.hierarchy import Hierarchy
    from anonymize.models import (
        AlphaK,
        BetaLikeness,
        DeltaDisclosure,
        DistinctDiversity,
        EntropyDiversity,
        KAnonymity,
        Model,
        PSensitive,
        RecursiveDiversity,
        Requirements,
        SensitiveLevels,
        TCloseness,
    )
    from anonymize.models.model import ClassModel, Protection, SingleColumnModel
    from anonymize.roles import Roles, suggest_roles
    from anonymize.tables import Table

__all__ = [
    "AlphaK",
    "BetaLikeness",
    "ClassModel",
    "DeltaDisclosure",
    "DistinctDiversity",
    "EntropyDiversity",
    "Hierarchy",
    "Histograms",
    "KAnonymity",
    "Model",
    "PSensitive",
    "Protection",
    "RecursiveDiversity",
    "Requirements",
    "Roles",
    "SensitiveLevels",
    "SingleColumnModel",
    "TCloseness",
    "Table",
    "suggest_roles",
]

_HOMES: Final = {
    "anonymize.grouping": ("Histograms",),
    "anonymize.hierarchies.hierarchy": ("Hierarchy",),
    "anonymize.models": (
        "AlphaK",
        "BetaLikeness",
        "DeltaDisclosure",
        "DistinctDiversity",
        "EntropyDiversity",
        "KAnonymity",
        "Model",
        "PSensitive",
        "RecursiveDiversity",
        "Requirements",
        "SensitiveLevels",
        "TCloseness",
    ),
    "anonymize.models.model": ("ClassModel", "Protection", "SingleColumnModel"),
    "anonymize.roles": ("Roles", "suggest_roles"),
    "anonymize.tables": ("Table",),
}

if not TYPE_CHECKING:  # there, a name that is not public is an error
    __getattr__, __dir__ = lazily(__name__, _HOMES)
