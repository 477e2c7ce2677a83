"""Models: naive Bayes, decision trees and k-means, over columns of the same rows at several parties."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from jobs.kinds.alignment.groups import check_groups, column_groups, groups_fact
from jobs.kinds.alignment.parameters import check_alignment, row_alignment
from jobs.kinds.alignment.unions import of_alignment
from jobs.kinds.key import Key
from jobs.kinds.kind import ALL, Disclosure, Facet, Unions
from jobs.kinds.models.models_kind import (
    ModelsKind,
    check_model,
    check_table,
    disclosed,
    model_learned,
    model_openings,
)
from jobs.kinds.models.parameters import columns_of, model_parameters
from jobs.kinds.models.tables import MODEL_TABLES
from jobs.kinds.models.template import template
from jobs.kinds.templates import ALIGN
from jobs.spec.job import JobSpec
from mining.joint import align
from mining.joint.collusion import NOBODY_ELSE
from mining.joint.collusion import collusion as collusion_of_sums
from mining.joint.models.aligned import one_holder_each
from mining.joint.vertical.grouped.disclosure import repeated_learned, repeated_openings, several


class ModelsOfColumns(ModelsKind):
    """Models over columns of the same rows at several parties."""

    computation = "jobs.kinds.models.columns.run"
    planning = "jobs.kinds.models.columns.plan"
    over = "the columns"

    def template(self, key: Key, parties: tuple[str, ...]) -> str:
        return ALIGN + template(key.task)

    def tables(self, spec: JobSpec) -> Mapping[str, frozenset[str]]:
        own = {MODEL_TABLES[spec.job.task]: ALL, "columns": ALL, "align": ALL, "groups": ALL, "plan": ALL}
        return own | ({"trust": frozenset({"compute"})} if spec.k_means is not None else {})

    def check(self, spec: JobSpec) -> None:
        check_table(spec)
        check_alignment(spec)
        check_groups(spec)
        check_model(spec)

    def disclosure(self, spec: JobSpec) -> Disclosure:
        common, parties, groups = row_alignment(spec), spec.job.parties, column_groups(spec)
        everywhere = common.mode == "intersection"
        own = model_openings(spec, vertical=True, everywhere=everywhere)
        followed = model_learned(spec, vertical=True, everywhere=everywhere)
        return disclosed(
            spec,
            (*align.openings(common, parties), *repeated_openings(groups, parties), *own),
            (*align.learned(common, parties), *repeated_learned(groups, parties), *followed),
            _collusion(spec),
            _worst(spec),
        )

    def facets(self, spec: JobSpec) -> frozenset[Facet]:
        return super().facets(spec) | ({"column groups"} if spec.groups else frozenset())

    def shares(self, spec: JobSpec) -> bool:
        return spec.k_means is not None

    def unions(self, spec: JobSpec) -> Unions:
        return of_alignment(spec)

    def resumes(self, spec: JobSpec) -> bool:
        return True

    def refusals(self, spec: JobSpec) -> frozenset[str]:
        return frozenset({"domains", "ids"})

    def check_columns(self, spec: JobSpec, columns: Mapping[str, Collection[str]]) -> None:
        names = [attribute.name for attribute in columns_of(model_parameters(spec))]
        one_holder_each(names, columns, column_groups(spec))

    def engine(self, spec: JobSpec) -> str | None:
        return "ot" if spec.k_means is None else None

    def facts(self, spec: JobSpec, strategy: str) -> list[tuple[str, str]]:
        return [("alignment", spec.alignment.mode), *groups_fact(spec)]


def _collusion(spec: JobSpec) -> str:
    parties = spec.job.parties
    if len(parties) == 2:
        return "none is needed: each of the two parties is alone"
    rows = align.collusion(parties)
    if spec.k_means is not None:
        first, second = spec.compute
        if spec.alignment.mode == "union":
            hidden = (
                f"what is not opened withstands all parties but {first} and {second}; these two together could read "
                "the others' coordinates of every row, its cluster and whether it is common, not whose row it is"
            )
            return f"{hidden}; {collusion_of_sums(parties)}; of the alignment, {rows}"
        hidden = (
            f"distances withstand all parties but {first} and {second}; these two together could learn the sum over "
            "the others of each distance's parts"
        )
        return f"{hidden}; of the alignment, {rows}"
    first, second = parties[:2]
    hidden = (
        f"products over two parties withstand either of them, and those over more all parties but {first} and "
        f"{second}, which together could learn each product's count"
    )
    if several(column_groups(spec)):
        hidden += f", and of the groups how many ids are at two of their parties ({first} and {second} again)"
    return f"{hidden}; {collusion_of_sums(parties)}; of the alignment, {rows}"


def _worst(spec: JobSpec) -> str:
    parties = spec.job.parties
    if len(parties) == 2:
        return NOBODY_ELSE
    if spec.k_means is not None:
        first, second = spec.compute
        if spec.alignment.mode == "union":
            return f"{first} and {second} together could read the others' coordinates of every row, not whose it is"
        return f"{first} and {second} together could compute the others' part of every row's distances"
    first, second = parties[:2]
    return f"{first} and {second} together could compute the count of every combination of values"


KIND: Final = ModelsOfColumns()
