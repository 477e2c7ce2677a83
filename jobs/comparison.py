"""One job under several privacy models: its specification under each, and how accurate what each finds is."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from jobs.kinds.kind import ALL
from jobs.kinds.packages import PrivacyModel
from jobs.kinds.registry import kind_of, read_spec
from jobs.loading import job_of
from jobs.spec.job import JobSpec
from ldp.sets.metrics import f1, ncr

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

DEFAULT_MODELS: Final[tuple[PrivacyModel, ...]] = ("exact", "local", "shuffle", "distributed")


def under(spec: JobSpec, model: PrivacyModel, epsilon: Decimal | None = None) -> JobSpec:
    """The same job under another privacy model.

    Args:
        spec: The job.
        model: In place of its own.
        epsilon: In place of its ε; None leaves that.

    Returns:
        The job with `[privacy] model` replaced, and without keys that mean nothing under that model.

    Raises:
        ConfigurationError: The job cannot run under the model.
    """
    contents = spec.model_dump(mode="json", by_alias=True)
    changed = {"model": model} if epsilon is None else {"model": model, "epsilon": str(epsilon)}
    contents["privacy"] = {**(contents["privacy"] or {}), **changed}
    where = f'[privacy] model = "{model}"'
    changed_spec = read_spec(contents, where)
    tables = kind_of(changed_spec).tables(changed_spec)
    for table, keys in contents.items():
        if table in tables and tables[table] != ALL and keys is not None:
            contents[table] = {key: value for key, value in keys.items() if key in tables[table]}
    return job_of(contents, where, Path())


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How near what was found comes to the truth: the itemsets that are frequent, and their supports.

    Attributes:
        found: Itemsets that were found.
        precision: The share of them that are true; 1 where none was found.
        recall: The share of true ones that were found; 1 where there are none.
        f1: The harmonic mean of both.
        ncr: Normalised cumulative rank: the most frequent of k true ones scores k, the last 1; the scores of those that
            were found, by the sum of all.
        mean_absolute: Mean absolute error of the supports of true itemsets that were found; None where none was.
        root_mean_square: Root of the mean squared error of the same.
        covered: The share of the same whose interval holds the true support; None without intervals.
    """

    found: int
    precision: float
    recall: float
    f1: float
    ncr: float
    mean_absolute: float | None
    root_mean_square: float | None
    covered: float | None


def accuracy(found: pa.Table, truth: pa.Table) -> Accuracy:
    """How accurate a result is.

    Args:
        found: Its table of itemsets, with supports.
        truth: That of the exact model, in the order of results.
    """
    right = [tuple(names) for names in truth["itemset"].to_pylist()]
    supports = truth["support"].to_numpy()
    ranked = [right[at] for at in np.argsort(-supports, kind="stable").tolist()]
    numbers = {tuple(names): at for at, names in enumerate(found["itemset"].to_pylist())}
    both = [(numbers[names], at) for at, names in enumerate(right) if names in numbers]
    there, here = np.array(both, np.int64).reshape(-1, 2).T
    errors = found["support"].to_numpy()[there] - supports[here]
    covered = None
    if "low" in found.column_names and len(both):
        low, high = (found[end].to_numpy()[there] for end in ("low", "high"))
        covered = float(np.mean((low <= supports[here]) & (supports[here] <= high)))
    return Accuracy(
        found=len(numbers),
        precision=len(both) / len(numbers) if numbers else 1.0,
        recall=len(both) / len(right) if right else 1.0,
        f1=f1(numbers, right),
        ncr=ncr(numbers, ranked) if right else 1.0,
        mean_absolute=_mean(np.abs(errors)),
        root_mean_square=None if not len(errors) else float(np.sqrt(np.mean(errors**2))),
        covered=covered,
    )


def _mean(numbers: NDArray[np.float64]) -> float | None:
    return float(np.mean(numbers)) if len(numbers) else None
