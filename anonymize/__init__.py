"""Anonymisation: tables, hierarchies, privacy models, algorithms, risk and utility.

    from anonymize import DistinctDiversity, KAnonymity, Requirements, Roles, Table, mondrian, publish_folder

    table = Table.of(rows, Roles(quasi_identifiers=["age", "zip"], sensitive=["disease"]))
    models = Requirements((KAnonymity(5), DistinctDiversity(3, "disease")))
    publish_folder("release", mondrian(table, models), table, models)

A name is loaded when it is first used. What means something only beside its module, such as the builders in
`anonymize.hierarchies.builders`, stays there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from link.public_names import lazily

if TYPE_CHECKING:
    from anonymize.auditing.column import ColumnAuditor
    from anonymize.auditing.extremes import MaxAuditor
    from anonymize.auditing.sums import SumAuditor
    from anonymize.certificate import Certificate
    from anonymize.certifying import publish_folder
    from anonymize.clustering.gpkc import gpkc
    from anonymize.clustering.maa_slie import maa_slie
    from anonymize.clustering.mdav import mdav
    from anonymize.condensation.static import condense
    from anonymize.condensation.streaming import Condenser
    from anonymize.estimators import FullDomain, Mondrian
    from anonymize.fulldomain.datafly import datafly
    from anonymize.fulldomain.incognito import incognito
    from anonymize.fulldomain.local_recoding import local_recode
    from anonymize.fulldomain.optimal import optimal
    from anonymize.fulldomain.samarati import samarati
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
    from anonymize.multidimensional.mondrian import mondrian
    from anonymize.release import Release
    from anonymize.replacement.ppir import ppir
    from anonymize.risk.linkage import linkage_attack, population_sizes
    from anonymize.risk.reidentification import journalist, marketer, prosecutor
    from anonymize.roles import Roles, suggest_roles
    from anonymize.tables import Table
    from anonymize.uncertain import publish_as_distributions
    from anonymize.utility.summary import summary
    from anonymize.verifier import verify
    from crypto.primitives.randomness import Randomness

__all__ = [
    "AlphaK",
    "BetaLikeness",
    "Certificate",
    "ClassModel",
    "ColumnAuditor",
    "Condenser",
    "DeltaDisclosure",
    "DistinctDiversity",
    "EntropyDiversity",
    "FullDomain",
    "Hierarchy",
    "Histograms",
    "KAnonymity",
    "MaxAuditor",
    "Model",
    "Mondrian",
    "PSensitive",
    "Protection",
    "Randomness",
    "RecursiveDiversity",
    "Release",
    "Requirements",
    "Roles",
    "SensitiveLevels",
    "SingleColumnModel",
    "SumAuditor",
    "TCloseness",
    "Table",
    "condense",
    "datafly",
    "gpkc",
    "incognito",
    "journalist",
    "linkage_attack",
    "local_recode",
    "maa_slie",
    "marketer",
    "mdav",
    "mondrian",
    "optimal",
    "population_sizes",
    "ppir",
    "prosecutor",
    "publish_as_distributions",
    "publish_folder",
    "samarati",
    "suggest_roles",
    "summary",
    "verify",
]

_HOMES: Final = {
    "anonymize.auditing.column": ("ColumnAuditor",),
    "anonymize.auditing.extremes": ("MaxAuditor",),
    "anonymize.auditing.sums": ("SumAuditor",),
    "anonymize.certificate": ("Certificate",),
    "anonymize.certifying": ("publish_folder",),
    "anonymize.clustering.gpkc": ("gpkc",),
    "anonymize.clustering.maa_slie": ("maa_slie",),
    "anonymize.clustering.mdav": ("mdav",),
    "anonymize.condensation.static": ("condense",),
    "anonymize.condensation.streaming": ("Condenser",),
    "anonymize.estimators": ("FullDomain", "Mondrian"),
    "anonymize.fulldomain.datafly": ("datafly",),
    "anonymize.fulldomain.incognito": ("incognito",),
    "anonymize.fulldomain.local_recoding": ("local_recode",),
    "anonymize.fulldomain.optimal": ("optimal",),
    "anonymize.fulldomain.samarati": ("samarati",),
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
    "anonymize.multidimensional.mondrian": ("mondrian",),
    "anonymize.release": ("Release",),
    "anonymize.replacement.ppir": ("ppir",),
    "anonymize.risk.linkage": ("linkage_attack", "population_sizes"),
    "anonymize.risk.reidentification": ("journalist", "marketer", "prosecutor"),
    "anonymize.roles": ("Roles", "suggest_roles"),
    "anonymize.tables": ("Table",),
    "anonymize.uncertain": ("publish_as_distributions",),
    "anonymize.utility.summary": ("summary",),
    "anonymize.verifier": ("verify",),
    "crypto.primitives.randomness": ("Randomness",),
}

if not TYPE_CHECKING:  # there, a name that is not public is an error
    __getattr__, __dir__ = lazily(__name__, _HOMES)
