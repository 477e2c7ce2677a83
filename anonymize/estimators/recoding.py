"""Anonymisers that generalise: full-domain recoding and Mondrian."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from decimal import Decimal
from importlib import import_module
from typing import Final, Literal, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anonymize.columns import Value, text_of
from anonymize.estimators.base import Frame, ModelAnonymizer, like
from anonymize.grouping import group
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.reading import ArrowTable, Rows, Tabular
from anonymize.release import Release, recode
from anonymize.tables import Table
from link.errors import ConfigurationError

_SEARCHES: Final = ("samarati", "incognito", "optimal", "datafly")


@dataclass(eq=False, repr=False)
class FullDomain(ModelAnonymizer):
    """Full-domain recoding: every column at one level of its hierarchy.

    Args:
        hierarchies: One for each quasi-identifier.
        algorithm: "optimal" (least loss), "incognito", "samarati" or "datafly".
        max_suppression: Share of the rows that may be suppressed, exact as a decimal.
        suppressed: What becomes of suppressed rows, see `fulldomain.releasing.release`.
        suppression: Of whole rows or of single cells.
        loss: What is minimised: "gcp", "prec", "entropy" or "dm".

    Attributes:
        node_: Level of each quasi-identifier.

    Example:
        Of a table with the ages and illnesses of six people:

        >>> recoding = FullDomain(table.roles, hierarchies, k=2)
        >>> recoding.fit_transform(table.data)["age"].to_pylist()[:3], recoding.node_
        (['[30, 39]', '[30, 39]', '[40, 49]'], {'age': 1})
    """

    hierarchies: Mapping[str, Hierarchy]
    _: KW_ONLY
    algorithm: Literal["optimal", "incognito", "samarati", "datafly"] = "optimal"
    max_suppression: float | Decimal | str = 0
    suppressed: Literal["drop", "blank", "keep"] = "drop"
    suppression: Literal["row", "cell"] = "row"
    loss: str = "gcp"
    node_: Mapping[str, int] = field(init=False)

    def _release(self, table: Table) -> Release:
        if self.algorithm not in _SEARCHES:
            raise ConfigurationError(f'algorithm is "{self.algorithm}"; it must be one of {", ".join(_SEARCHES)}.')
        search: Callable[..., Release] = getattr(
            import_module(f"anonymize.fulldomain.{self.algorithm}"), self.algorithm
        )
        release = search(
            table,
            self.hierarchies,
            self._requirements(),
            max_suppression=self.max_suppression,
            loss=self.loss,
            suppressed=self.suppressed,
            suppression=self.suppression,
        )
        assert release.node is not None
        self.node_ = release.node
        return release

    @overload
    def transform(self, data: Frame) -> Frame: ...
    @overload
    def transform(self, data: Rows) -> pa.Table: ...
    def transform(self, data: Tabular) -> ArrowTable:
        """Recodes further rows as the fitted ones are; rows that would form a class of their own are left out.

        Together with the fitted release, all classes still meet the models: whatever joins a good class leaves it good.

        Args:
            data: A table with the columns of the fitted one.

        Raises:
            ConfigurationError: Nothing was fitted yet, or a model is not kept when rows join a class.
            InputDataError: The table cannot be used, or a hierarchy lacks one of its values.
        """
        if not hasattr(self, "release_"):
            raise ConfigurationError("FullDomain is not fitted yet; call fit first.")
        if not self._requirements().monotone_with_suppression or self.suppression == "cell":
            raise ConfigurationError(
                "Further rows can join the classes of a release of whole rows, under models that any rows leave "
                "as they are: k, distinct l, p and H. Fit all rows together instead."
            )
        table = self._read(data)
        keys = np.concatenate([self._keys(self.table_), self._keys(table)])
        labels, classes = group(keys)
        published = np.ones(self.table_.n_rows, bool)
        published[self.release_.suppressed] = False
        known = np.zeros(classes, bool)
        known[labels[: self.table_.n_rows][published]] = True
        keep = known[labels[self.table_.n_rows :]]
        recoded = recode(table, self.hierarchies, [self.node_[c.name] for c in table.quasi_identifiers], keep)
        self._warn(_together(self.table_.data, table.data.take(np.flatnonzero(keep))))
        made: ArrowTable = like(data, recoded, table.kept[keep])
        return made

    def _keys(self, table: Table) -> NDArray[np.int32]:
        """Shape (n, d): labels at the fitted levels, which hierarchies number alike for all tables."""
        codes = [
            self.hierarchies[column.name].codes(column, self.node_[column.name])[column.codes]
            for column in table.quasi_identifiers
        ]
        return np.stack(codes, axis=1)


@dataclass(eq=False, repr=False)
class Mondrian(ModelAnonymizer):
    """Multidimensional recoding by recursive partitioning, see `mondrian.mondrian`.

    Args:
        mode: "strict", "relaxed" or "hierarchical".
        hierarchies: Of quasi-identifiers of kind tree or code.
        publish: "ranges" or "centres".

    Example:
        Of a table with the ages and illnesses of six people:

        >>> Mondrian(table.roles, k=2).fit_transform(table.data)["age"].to_pylist()[:3]
        ['[31, 45]', '[31, 45]', '[31, 45]']
    """

    _: KW_ONLY
    mode: Literal["strict", "relaxed", "hierarchical"] = "strict"
    hierarchies: Mapping[str, Hierarchy] | None = None
    publish: Literal["ranges", "centres"] = "ranges"

    def _release(self, table: Table) -> Release:
        from anonymize.multidimensional.mondrian import mondrian

        trees = self.hierarchies or {}
        return mondrian(table, self._requirements(), mode=self.mode, hierarchies=trees, release=self.publish)


def _together(first: pa.Table, second: pa.Table) -> pa.Table:
    """The rows of both as text, since libraries may have read them as other types."""

    def text(value: Value | None) -> str | None:
        return None if value is None or value != value else text_of(value)  # a number that is none is missing, too

    names, parts = first.column_names, (first, second)
    texts = {name: [text(each) for part in parts for each in part[name].to_pylist()] for name in names}
    return pa.table({name: pa.array(column, pa.string()) for name, column in texts.items()})
