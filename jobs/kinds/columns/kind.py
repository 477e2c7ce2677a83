"""Itemsets and rules over columns of the same rows at several parties, exact."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from jobs.kinds.alignment.groups import check_groups, column_groups, groups_fact
from jobs.kinds.alignment.parameters import check_alignment
from jobs.kinds.alignment.unions import of_alignment
from jobs.kinds.columns.engine import engine_reason, helper_of, is_dealt_by_coordinator
from jobs.kinds.columns.parameters import check_quantiles, itemisation, vertical_mining
from jobs.kinds.columns.template import template
from jobs.kinds.itemsets_finding import FoundItemsets
from jobs.kinds.itemsets_kind import ITEMSETS, ItemsetsKind, check_exact
from jobs.kinds.key import Key
from jobs.kinds.kind import ALL, EXACT, Disclosure, Facet, Unions
from jobs.kinds.rows.kind import OF_POSITIONS, mining_watched
from jobs.kinds.words import cut_to_top, exact_result, excluded
from jobs.privacy_account import Charge
from jobs.spec.job import AUTO_HELPER, JobSpec
from link.disclosure import Learned
from link.errors import ConfigurationError
from mining.data.items.item_columns import check_columns
from mining.joint.vertical import disclosure
from mining.joint.vertical.choice import VERIFIED, chosen_engine
from mining.joint.vertical.engines.names import AUTO
from mining.joint.vertical.engines.registry import engine_named
from mining.joint.vertical.grouped.disclosure import several
from mining.joint.vertical.grouped.groups import check_group_columns


class Columns(ItemsetsKind):
    """Itemsets and rules over columns of the same rows at several parties, exact."""

    computation = "jobs.kinds.columns.run"
    planning = "jobs.kinds.columns.plan"
    data = "table"
    in_blocks = True
    finding = FoundItemsets

    def template(self, key: Key, parties: tuple[str, ...]) -> str:
        return template(key, parties)

    def tables(self, spec: JobSpec) -> Mapping[str, frozenset[str]]:
        how = {"disclose", "max_candidates", "engine", "cuts", "quantiles"}
        return {
            "itemsets": ITEMSETS | how,
            "rules": ALL,
            "align": ALL,
            "groups": ALL,
            "trust": ALL,
            "plan": ALL,
        }

    def check(self, spec: JobSpec) -> None:
        check_exact(spec)
        check_alignment(spec)
        check_groups(spec)
        check_quantiles(spec)
        if spec.is_verified:
            _check_verified(spec)
        _check_helper(spec)
        vertical_mining(spec)

    def disclosure(self, spec: JobSpec) -> Disclosure:
        task, parties = vertical_mining(spec), spec.job.parties
        of_unions = OF_POSITIONS if several(task.groups) else ""
        return Disclosure(
            exact_result(spec),
            mining_watched(spec, of_unions),
            disclosure.openings(task, parties),
            (*cut_to_top(spec), *disclosure.learned(task, parties), *_quantiles(spec), *excluded(spec)),
            disclosure.collusion(task, parties),
            disclosure.worst(task, parties),
        )

    def charge(self, spec: JobSpec) -> Charge:
        return EXACT

    def facets(self, spec: JobSpec) -> frozenset[Facet]:
        return super().facets(spec) | ({"column groups"} if spec.groups else frozenset())

    def facts(self, spec: JobSpec, strategy: str) -> list[tuple[str, str]]:
        return [*super().facts(spec, strategy), *groups_fact(spec)]

    def resumes(self, spec: JobSpec) -> bool:
        """As over rows: where parties may deviate none is believed what it has kept."""
        return not spec.is_verified

    def shares(self, spec: JobSpec) -> bool:
        return spec.itemsets.disclose != "candidates" or self.helper(spec) is not None

    def unions(self, spec: JobSpec) -> Unions:
        return of_alignment(spec)

    def refusals(self, spec: JobSpec) -> frozenset[str]:
        return frozenset({"ids", "cells"})

    def check_columns(self, spec: JobSpec, columns: Mapping[str, Collection[str]]) -> None:
        if spec.groups:
            check_group_columns(columns, column_groups(spec), itemisation(spec).numeric)
        else:
            check_columns(columns, itemisation(spec).numeric)

    def engine(self, spec: JobSpec) -> str | None:
        return chosen_engine(vertical_mining(spec)).name

    def engine_reason(self, spec: JobSpec) -> str | None:
        return engine_reason(spec)

    def helper(self, spec: JobSpec) -> str | None:
        return helper_of(spec)

    def is_dealt(self, spec: JobSpec) -> bool:
        return is_dealt_by_coordinator(spec)


def _quantiles(spec: JobSpec) -> tuple[Learned, ...]:
    """Cuts that the job gives are public; where a party finds them in its rows, the names of items reveal them."""
    if not spec.itemsets.quantiles:
        return ()
    columns = ", ".join(f"'{name}'" for name in spec.itemsets.quantiles)
    rows = "in common" if spec.alignment.mode == "intersection" else "of their owner, common or not"
    what = "where quantiles cut: the ends of each frequent interval, which are numbers in single rows"
    detail = (
        f"of {columns} the ends of each frequent interval, as the names of items have them: numbers in a single row or "
        f"in several, at one k-th, two k-ths, … of the rows {rows}; no floor, such as min_count, holds for them"
    )
    who = (*("coordinator",) * spec.to_coordinator, *spec.job.parties)
    return (Learned(who, "membership", what, detail).main("where quantiles cut, which are numbers in single rows"),)


def _check_helper(spec: JobSpec) -> None:
    """Refuses a helper that cannot help."""
    helper, parties = spec.trust.helper, spec.job.parties
    if helper in ("none", AUTO_HELPER):
        return
    if helper not in ("coordinator", *parties):
        raise ConfigurationError(
            f'[trust] helper is "none", "auto", "coordinator" or a party of the job, not \'{helper}\''
        )
    if len(parties) == 2 and helper in parties:
        raise ConfigurationError(f"[trust] helper: with two parties '{helper}' cannot deal randomness to itself")
    if len(parties) > 2 and helper == "coordinator":
        raise ConfigurationError(
            '[trust] helper = "coordinator" deals randomness to two parties; with more of them, name the party that is '
            "to hold shares beside the two computing parties"
        )
    if len(parties) > 2 and helper in spec.compute:
        raise ConfigurationError(f"[trust] helper: '{helper}' is a computing party; name another one")
    if spec.itemsets.engine != AUTO and not engine_named(spec.itemsets.engine).takes_helper:
        raise ConfigurationError('[trust] helper needs [itemsets] engine = "replicated" or "auto"')


def _check_verified(spec: JobSpec) -> None:
    """Refuses what is not checked against parties that deviate."""
    given, needs = spec.itemsets, 'security = "malicious" in [trust] needs'
    if len(spec.job.parties) < 3 or spec.trust.helper == "none":
        raise ConfigurationError(
            f"{needs} three parties or more with columns, of which three compute; name the third as [trust] helper, or "
            'set it to "auto"'
        )
    if spec.alignment.mode != "intersection":
        raise ConfigurationError(f'{needs} rows that are aligned by intersection; set [align] mode to "intersection"')
    if given.engine not in (AUTO, VERIFIED):
        raise ConfigurationError(
            f'{needs} products that are checked, and those of engine = "{given.engine}" are not; set [itemsets] engine '
            f'to "{VERIFIED}" or "{AUTO}"'
        )
    if given.disclose == "candidates":
        raise ConfigurationError(
            f'{needs} sums that stay hidden until they are checked; set [itemsets] disclose to "supports" or "frequent"'
        )
    if given.disclose == "frequent" and spec.rules is not None:
        raise ConfigurationError(
            f'{needs} the supports of itemsets for rules, since no confidence is checked; set disclose = "supports"'
        )


KIND: Final = Columns()
