"""Itemsets and rules that a job has found, exact."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from jobs.kinds.finding import Finding, SavedFinding
from jobs.kinds.packed_itemsets import digest, pack, unpack
from jobs.kinds.packed_tables import packed_tables
from jobs.report.tables import MOST_ROWS, most_common, page_data, top, with_intervals
from jobs.spec.job import JobSpec
from link.files.quantities import quantity
from mining.itemsets import Itemsets
from mining.rules.association import Rules, association_rules
from protos.v1.control_pb2 import Release

_TOP: Final = 25
_FIGURES: Final = {"itemsets": "frequent itemsets"}


@dataclass(frozen=True)
class FoundItemsets(Finding):
    """Itemsets and rules that a job has found, exact.

    Attributes:
        itemsets: The frequent itemsets; with their supports if these were opened.
        rules: The rules that hold, where the parties decided on them and opened no support; otherwise they follow.
    """

    itemsets: Itemsets
    rules: Rules | None = None

    name = signed_as = "itemsets"

    @classmethod
    def files(cls, spec: JobSpec) -> frozenset[str]:
        return table_files(spec)

    @classmethod
    def differences(cls, saved: SavedFinding, release: Release) -> Iterator[str]:
        counted = saved.spec.itemsets.disclose != "frequent"
        rules = not counted and saved.spec.rules is not None
        for suffix in ("csv", "parquet"):
            names = [f"itemsets.{suffix}", *([f"rules.{suffix}"] if rules else [])]
            try:
                packed = _read_once(saved, suffix, release.n_rows, counted=counted, rules=rules)
            except (OSError, KeyError, ValueError, TypeError, OverflowError, csv.Error, pa.ArrowException) as error:
                saved.spoiled.update(names)
                what = f"cannot be read ({type(error).__name__}), and {release.party} signed what is in it"
                yield f"{' and '.join(names)} {what}"
                continue
            if digest(packed) != release.result_digest:
                saved.spoiled.update(names)
                what = "do not hold the itemsets and rules" if rules else "does not hold the itemsets"
                yield f"{' and '.join(names)} {what} that {release.party} signed"
            elif saved.finding is None:
                saved.finding = cls.unpack(packed)

    @classmethod
    def unpack(cls, packed: bytes) -> FoundItemsets:
        """What `pack` made.

        Raises:
            ValueError: It is something else.
        """
        return cls(*unpack(packed))

    @property
    def value(self) -> Itemsets:
        return self.itemsets

    @property
    def n_rows(self) -> int:
        return self.itemsets.n_rows

    def pack(self) -> bytes:
        return pack(self.itemsets, self.rules)

    def canonical(self) -> FoundItemsets:
        return replace(self, itemsets=self.itemsets.canonical())

    def fits(self, spec: JobSpec) -> bool:
        uncounted = spec.itemsets.disclose == "frequent"
        decided = uncounted and spec.rules is not None
        return self.itemsets.counted != uncounted and (self.rules is not None) == decided

    def tables(self, spec: JobSpec) -> dict[str, pa.Table]:
        found = {"itemsets": self._itemsets}
        if spec.rules is not None:
            found["rules"] = self._rules(spec)
        return found

    @cached_property
    def _itemsets(self) -> pa.Table:
        return self.itemsets.to_arrow()

    def _rules(self, spec: JobSpec) -> pa.Table:
        asked = spec.rules
        assert asked is not None
        if self.rules is not None:
            return replace(self.rules, measures=asked.measures).to_arrow()
        found = association_rules(
            self.itemsets, asked.min_confidence, consequent=asked.consequent, measures=asked.measures
        )
        return found.to_arrow()

    def account(self, spec: JobSpec) -> dict[str, Any]:
        return sizes(self.tables(spec)) | {"counted": self.itemsets.counted, "estimated": False}

    def facts(self, spec: JobSpec) -> list[tuple[str, str]]:
        return [] if self.itemsets.counted else [("supports", "not disclosed: only which itemsets are frequent")]

    def figures(self, spec: JobSpec) -> list[tuple[str, int]]:
        return [(_FIGURES.get(name, name), len(table)) for name, table in self.tables(spec).items()]

    def sections(self, spec: JobSpec) -> dict[str, Any]:
        return sections(self.tables(spec), counted=self.itemsets.counted, estimated=False)

    def page_data(self, spec: JobSpec) -> dict[str, Any]:
        return page_data(self.tables(spec), self.itemsets.items, counted=self.itemsets.counted, estimated=False)

    def methods(self, spec: JobSpec) -> tuple[tuple[str, ...], str]:
        return table_names(spec), "give tables"

    def summary(self, spec: JobSpec) -> str:
        found = quantity(len(self.itemsets), "frequent itemset")
        if spec.rules is not None:
            found += f" and {quantity(len(self.tables(spec)['rules']), 'rule')}"
        return found if self.itemsets.counted else f"{found}, supports not disclosed,"


def table_names(spec: JobSpec) -> tuple[str, ...]:
    """The tables of itemsets, and of rules where the job finds some."""
    return ("itemsets",) if spec.rules is None else ("itemsets", "rules")


def table_files(spec: JobSpec) -> frozenset[str]:
    """The files of these tables."""
    return frozenset(f"{name}.{suffix}" for name in table_names(spec) for suffix in ("csv", "parquet"))


def _read_once(saved: SavedFinding, suffix: str, n_rows: int, *, counted: bool, rules: bool) -> bytes:
    """The tables in the form that is signed."""
    if (suffix, n_rows) not in saved.packed:
        saved.packed[suffix, n_rows] = packed_tables(saved.folder, suffix, n_rows, counted=counted, rules=rules)
    return saved.packed[suffix, n_rows]


def sizes(tables: Mapping[str, pa.Table]) -> dict[str, Any]:
    """How many itemsets and rules `result.json` counts."""
    return {"n_itemsets": len(tables["itemsets"]), "n_rules": len(tables["rules"]) if "rules" in tables else None}


def sections(tables: Mapping[str, pa.Table], *, counted: bool, estimated: bool) -> dict[str, Any]:
    """What the templates of a report show of itemsets and rules.

    Args:
        tables: The itemsets, and the rules where there are any.
        counted: Whether supports are known.
        estimated: Whether they are estimates.
    """
    found = {"itemsets": _of_itemsets(tables["itemsets"], counted=counted, estimated=estimated)}
    if "rules" in tables:
        found["rules"] = _of_rules(tables["rules"], counted=counted, estimated=estimated)
    return found


def _of_itemsets(table: pa.Table, *, counted: bool, estimated: bool) -> dict[str, Any]:
    numbers = [(entry["values"], entry["counts"]) for entry in table["length"].value_counts().to_pylist()]
    return {
        "counted": counted,
        "estimated": estimated,
        "total": len(table),
        "shown": min(len(table), MOST_ROWS),
        "lengths": _with_shares(sorted(numbers)),
        "top": top(table, "count" if counted else "length", _TOP),
        "common": [] if counted else _with_shares(most_common(table["itemset"], _TOP)),
    }


def _of_rules(table: pa.Table, *, counted: bool, estimated: bool) -> dict[str, Any]:
    table = with_intervals(table)
    measures = list(table.column_names[6:]) if counted else []
    by = "lift" if "lift" in measures else "count"
    return {
        "counted": counted,
        "estimated": estimated,
        "total": len(table),
        "shown": min(len(table), MOST_ROWS),
        "measures": measures,
        "by": by,
        "top": top(table, by, _TOP) if counted else table.slice(0, _TOP).to_pylist(),
        "common": [] if counted else _with_shares(most_common(table["consequent"], _TOP)),
    }


def _with_shares(numbers: Sequence[tuple[Any, int]]) -> list[tuple[Any, int, float]]:
    """What is counted, the number, and the number as a share of the greatest."""
    most = max((number for _, number in numbers), default=1)
    return [(what, number, number / most) for what, number in numbers]
