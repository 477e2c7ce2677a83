"""What every learner holds the rows against that the collector opened, before anything is signed.

    1. the classes are those that all agreed to release, each has k rows, and no more rows are missing than may be
       suppressed
    2. this learner's own rows are among them, as they were sent, and as often
    3. without its own rows the insider rule holds
    4. every class meets the models, which are those of the library here; models that compare classes with all rows take
       the totals that were opened

So a collector that leaves out, adds, doubles or changes rows is noticed where a learner has these rows, or where
classes or numbers do not fit any more. Not noticed is what meets all conditions: rows of parties that learn nothing,
changed within their class or left out where more may be, and rows more where as many are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anonymize.models import BetaLikeness, DeltaDisclosure, Model, Requirements, TCloseness
from anonymize.roles import Roles
from anonymize.tables import Table
from crypto.primitives.sealed import Rows
from link.errors import ProtocolViolation
from mining.joint.anonymisation.conditions.models import Compared, Tested, offered
from mining.joint.anonymisation.parameters import Carried, JointAnonymisation
from mining.joint.anonymisation.row_form import Assembled
from mining.joint.tally import Mask


def check_classes(
    task: JointAnonymisation,
    released: Mask,
    keys: NDArray[np.int64] | None,
    whole: Assembled,
    own: NDArray[np.int64],
    missing: int,
    allowed: int,
    me: str,
) -> None:
    """Steps 1 and 3.

    Args:
        task: The public parameters.
        released: Whether each class is released.
        keys: Their numbers, ascending; None where they are numbered as they stand.
        whole: The released rows.
        own: Class of each of this learner's rows, −1 where it is not released.
        missing: How many rows of all were left out.
        allowed: How many may be.
        me: This learner.

    Raises:
        ProtocolViolation: A class is too small, is none that was to be released, or has too few rows of others; or rows
            are missing.
    """
    size, cells = len(released), places(whole.cells, released, keys)
    if (cells == size).any() or not 0 <= missing <= allowed:
        raise differs(task)
    sizes = np.bincount(cells, minlength=size)
    rest = sizes - np.bincount(places(own[own >= 0], released, keys), minlength=size)
    if ((sizes > 0) != released).any() or (sizes[released] < task.k).any() or (rest < 0).any():
        raise differs(task)
    if ((rest > 0) & (rest < task.insider_k)).any():
        raise ProtocolViolation(
            f"without the rows of {me} a class of the release is left with fewer than {task.insider_k}; do not use it"
        )


def check_contained(task: JointAnonymisation, some: Rows, among: Rows) -> None:
    """Step 2: whether rows are among others, each as often at least.

    Args:
        task: The public parameters.
        some: The rows that must be there, shape (n, bytes).
        among: The others, shape (m, bytes).

    Raises:
        ProtocolViolation: They are not.
    """
    both = np.ascontiguousarray(np.concatenate([among, some]))
    whole = both.view(np.dtype((np.void, both.shape[1]))).reshape(-1)
    distinct, numbers = np.unique(whole, return_inverse=True)
    there, wanted = (np.bincount(part, minlength=len(distinct)) for part in np.split(numbers.reshape(-1), [len(among)]))
    if (wanted > there).any():
        raise differs(task)


def check_models(task: JointAnonymisation, totals: Mapping[str, NDArray[np.int64]], whole: Assembled) -> None:
    """Step 4.

    Args:
        task: The public parameters.
        totals: By column that classes are compared with, rows of all parties with each value, shape (values,).
        whole: The released rows.

    Raises:
        ProtocolViolation: A class misses a model.
    """
    distinct, labels = np.unique(whole.cells, return_inverse=True)
    labels, columns = labels.reshape(-1).astype(np.int64), {each.name: each for each in task.carried}
    for model in offered(task.requirements):
        column = columns[model.column]
        assert column.values is not None  # a model looks only at columns with public values
        compared = isinstance(model, Compared)
        present = np.flatnonzero(totals[column.name]) if compared else np.arange(len(column.values))
        table = _table(column, model, present)
        domain = table.sensitive_column(column.name)
        fitted = _fitted(model, table, totals[column.name][present] if compared else None)
        codes = dict(zip([column.values[place] for place in present.tolist()], domain.codes.tolist(), strict=True))
        cells = whole.carried[column.name]
        if not codes.keys() >= set(cells):
            raise differs(task)
        rows = replace(domain, codes=np.array([codes[cell] for cell in cells], np.int32))
        if not Requirements((fitted,)).check(labels, len(distinct), [rows]).all():
            raise differs(task)


def places(cells: NDArray[np.int64], released: Mask, keys: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Where classes stand in `released`, shape of `cells`; its length for what is none of them.

    Args:
        cells: Numbers of classes.
        released: Whether each class is released.
        keys: Their numbers, ascending; None where they are numbered as they stand.
    """
    if keys is None:
        return np.where((cells >= 0) & (cells < len(released)), cells, len(released))
    found = np.searchsorted(keys, cells)
    return np.where(np.append(keys, -1)[found] == cells, found, len(keys))


def differs(task: JointAnonymisation) -> ProtocolViolation:
    """The rows that were opened are no release of what was agreed."""
    return ProtocolViolation(
        f"the rows that {task.collector} opened are not those of the classes that all parties agreed to release; do "
        "not use them",
        party=task.collector,
    )


def _table(column: Carried, model: Tested, present: NDArray[np.int64]) -> Table:
    """A table of the library with one row for each of some public values.

    Values are distinguished by their text, but where a distance measures them: so they are counted on shares, too.
    """
    assert column.values is not None
    measured = isinstance(model, TCloseness) and (model.distance == "ordered" or model.hierarchy is not None)
    kind = column.kind if measured else "tree"
    cells = pa.table({column.name: pa.array([column.values[place] for place in present.tolist()], pa.string())})
    orders = {column.name: column.values} if kind == "ordinal" else {}
    return Table.of(cells, Roles(sensitive=(column.name,)), {column.name: kind}, orders, missing="value")


def _fitted(model: Tested, table: Table, totals: NDArray[np.int64] | None) -> Model:
    """A model with what it must know of all rows.

    Args:
        model: As the job gives it.
        table: The values of its column.
        totals: Rows of all parties with each of them; None where the model needs none.
    """
    if totals is None:
        return model.fitted(table)
    domain = table.sensitive_column(model.column)
    counts = np.zeros(domain.size, np.int64)
    np.add.at(counts, domain.codes, totals)
    if isinstance(model, TCloseness):
        return model.with_reference(domain, counts)
    assert isinstance(model, BetaLikeness | DeltaDisclosure)  # all that compare classes with all rows
    return model.with_reference(counts)
