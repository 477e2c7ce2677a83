"""What all anonymisers share: parameters, fitting, and tables in the library that they came in."""

from __future__ import annotations

import inspect
import reprlib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self, TypeVar, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anonymize.columns import Kind, Value
from anonymize.models import KAnonymity, Model, Requirements
from anonymize.reading import ArrowTable, Rows, Tabular
from anonymize.release import Release
from anonymize.roles import Roles
from anonymize.tables import Missing, Table
from anonymize.uniqueness import DisclosureWarning, doubts
from link.errors import ConfigurationError

Frame = TypeVar("Frame", bound=ArrowTable)


@dataclass(eq=False, repr=False)
class Anonymizer(ABC):
    """What all anonymisers share: scikit-learn's interface, as a dataclass of the parameters.

    Of columns that point at rows or persons by themselves they warn (`uniqueness.DisclosureWarning`) and go on, where
    the command refuses.

    Args:
        roles: Of every column.
        kinds: Of columns that are not of the default kind.
        orders: Of ordinal columns.
        missing: What becomes of rows that lack values.

    Attributes:
        release_: The release, with its classes, suppressed rows and statistics; set by `fit`.
        table_: The input as it was read.
        feature_names_in_: Names of the input's columns, shape (columns,).
        n_features_in_: How many they are.
    """

    roles: Roles
    _: KW_ONLY
    kinds: Mapping[str, Kind] | None = None
    orders: Mapping[str, Sequence[Value]] | None = None
    missing: Missing = "error"

    release_: Release = field(init=False)
    table_: Table = field(init=False)
    feature_names_in_: NDArray[np.object_] = field(init=False)
    n_features_in_: int = field(init=False)

    @abstractmethod
    def _release(self, table: Table) -> Release:
        """Runs the algorithm."""

    def fit(self, data: Tabular, y: object = None) -> Self:  # noqa: ARG002 - scikit-learn passes it
        """Makes the release.

        Args:
            data: The table: of pyarrow, pandas or polars, a dictionary of lists, or a list of dictionaries.
            y: Ignored.

        Raises:
            ConfigurationError: A parameter is wrong, or the requirements cannot be met.
            InputDataError: The table or a hierarchy cannot be used.
        """
        self.table_ = self._read(data)
        self.release_ = self._release(self.table_)
        self._warn(self.table_.data)
        self.feature_names_in_ = np.array(self.table_.data.column_names, dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        return self

    @overload
    def fit_transform(self, data: Frame, y: object = None) -> Frame: ...
    @overload
    def fit_transform(self, data: Rows, y: object = None) -> pa.Table: ...
    def fit_transform(self, data: Tabular, y: object = None) -> ArrowTable:
        """Makes the release and gives it as what the input is: a data frame, or a `pyarrow.Table`.

        A pandas index keeps the labels of the rows that are published, where published rows are rows of the input.
        """
        self.fit(data, y)
        rows = self.release_.rows
        made: ArrowTable = like(data, self.release_.table, None if rows is None else self.table_.kept[rows])
        return made

    def get_params(self, deep: bool = True) -> dict[str, object]:  # noqa: ARG002 - scikit-learn passes it
        """The constructor's parameters by name."""
        names = list(inspect.signature(type(self).__init__).parameters)[1:]
        return {name: getattr(self, name) for name in names}

    def set_params(self, **parameters: object) -> Self:
        """Changes parameters; `fit` checks them.

        Raises:
            ConfigurationError: There is no such parameter.
        """
        known = self.get_params()
        for name, value in parameters.items():
            if name not in known:
                raise ConfigurationError(
                    f"{type(self).__name__} has no parameter {name}; its parameters are {', '.join(known)}."
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        given = [f"{k}={reprlib.repr(v)}" for k, v in self.get_params().items() if defaults[k].default is not v]
        return f"{type(self).__name__}({', '.join(given)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "release_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags  # type: ignore[import-untyped]  # only it asks

        tags = InputTags(two_d_array=False, string=True, categorical=True)
        return Tags(None, TargetTags(required=False), TransformerTags(preserves_dtype=[]), input_tags=tags)

    @property
    def _least(self) -> int:
        """How many rows must have a value that is released as it is, so that it identifies none of them."""
        return max(2, getattr(self, "k", None) or 2)

    @property
    def _as_they_are(self) -> Sequence[str]:
        """Insensitive columns that are released."""
        return self.roles.insensitive

    def _warn(self, data: pa.Table) -> None:
        for each in doubts(data, self.roles, self._as_they_are, self._least):
            warnings.warn(each, DisclosureWarning, stacklevel=3)

    def _read(self, data: Tabular) -> Table:
        return Table.of(data, self.roles, self.kinds or {}, self.orders or {}, self.missing)


@dataclass(eq=False, repr=False)
class ModelAnonymizer(Anonymizer):
    """Anonymisers that take any models.

    Args:
        k: Of k-anonymity; None where `models` are all.
        models: Further models that every class must meet.
    """

    _: KW_ONLY
    k: int | None = None
    models: Sequence[Model] = ()

    @property
    def _least(self) -> int:
        return max(super()._least, *(model.k for model in self.models if isinstance(model, KAnonymity)), 0)

    def _requirements(self) -> Requirements:
        first = () if self.k is None else (KAnonymity(self.k),)
        return Requirements((*first, *self.models))


def like(data: Any, table: pa.Table, rows: NDArray[np.int64] | None) -> Any:
    """A table in the library of another one; `rows` are the input's, whose labels a pandas index keeps."""
    library = type(data).__module__.partition(".")[0]
    if library == "pandas":
        frame = table.to_pandas()
        if rows is not None:
            frame.index = data.index[rows]
        return frame
    if library == "polars":
        from polars import from_arrow  # type: ignore[import-not-found, unused-ignore]

        return from_arrow(table)
    return table
