"""One anonymised release of the columns of several parties, or column groups, over the rows that all have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.kinds.alignment.groups import check_groups, column_groups, groups_fact
from jobs.kinds.alignment.parameters import row_alignment
from jobs.kinds.alignment.unions import of_alignment
from jobs.kinds.key import Key
from jobs.kinds.kind import ALL, Disclosure, Facet, Unions
from jobs.kinds.release.parameters import joint_anonymisation
from jobs.kinds.release.release_kind import ReleaseKind, disclosed
from jobs.kinds.release.template import TABLES
from jobs.kinds.templates import ALIGN
from jobs.spec.job import JobSpec
from link.errors import ConfigurationError
from mining.joint.anonymisation.vertical.disclosure import collusion, learned, openings, worst


class ReleaseOfColumns(ReleaseKind):
    """One anonymised release of the columns of several parties."""

    in_blocks = True
    computation = "jobs.kinds.release.columns.run"
    planning = "jobs.kinds.release.columns.plan"

    def template(self, key: Key, parties: tuple[str, ...]) -> str:
        return ALIGN + TABLES.format(more="")

    def tables(self, spec: JobSpec) -> Mapping[str, frozenset[str]]:
        return {"anonymize": ALL, "trust": frozenset({"compute"}), "align": ALL, "groups": ALL, "plan": ALL}

    def check_section(self, spec: JobSpec) -> None:
        _check_section(spec)

    def disclosure(self, spec: JobSpec) -> Disclosure:
        task, parties, common = joint_anonymisation(spec), spec.job.parties, row_alignment(spec)
        groups = column_groups(spec)
        return disclosed(
            spec,
            openings(task, parties, common, groups),
            learned(task, parties, common, groups),
            collusion(task, parties, groups),
            worst(task, parties, groups),
        )

    def facets(self, spec: JobSpec) -> frozenset[Facet]:
        return super().facets(spec) | ({"column groups"} if spec.groups else frozenset())

    def facts(self, spec: JobSpec, strategy: str) -> list[tuple[str, str]]:
        return [*super().facts(spec, strategy), *groups_fact(spec)]

    def unions(self, spec: JobSpec) -> Unions:
        return of_alignment(spec)

    def refusals(self, spec: JobSpec) -> frozenset[str]:
        return super().refusals(spec) | {"ids"}

    def engine(self, spec: JobSpec) -> str | None:
        return "ot"


def _check_section(spec: JobSpec) -> None:
    check_groups(spec)
    if not spec.groups and spec.alignment.mode != "intersection":
        raise ConfigurationError(
            'columns of several parties are anonymised over the rows that all have; take [align] mode = "intersection"'
        )
    if spec.anonymization.algorithm == "mondrian":
        raise ConfigurationError('algorithm = "mondrian" needs parties that hold rows; take "optimal" or "samarati"')
    for name in ("insider_k", "k_site"):
        if getattr(spec.anonymization, name) is not None:
            raise ConfigurationError(
                f"{name} is about parties that hold rows; where every party has columns of all rows it means nothing, "
                "so leave it out"
            )
    if spec.anonymization.insiders > 1:
        raise ConfigurationError(
            "insiders is about parties that hold rows; where every party has columns of all rows it means nothing, so "
            "leave it out"
        )
    for name, value in (("disclose", "node"), ("keys", "union")):
        if getattr(spec.anonymization, name) == value:
            raise ConfigurationError(f'{name} = "{value}" needs parties that hold rows; leave it out')


KIND: Final = ReleaseOfColumns()
