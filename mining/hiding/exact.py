"""Exact hiding by integer programming: the fewest lost itemsets, and among those solutions the fewest deletions.

    y(t, i)   1 where item i stays in row t, for the cells inside sensitive itemsets; all other cells stay
    z(s, t)   1 where all of s stays in row t
    lost(f)   1 where the non-sensitive frequent itemset f is given up

    Σ_t z(s, t) ≤ c − 1                            for each sensitive itemset s:  z ≥ Σ y − (cells − 1)
    Σ_t z(f, t) + rest(f) ≥ c · (1 − lost(f))      for each itemset f that deletions may cost: z ≤ y
    minimise  w · Σ lost + Σ (1 − y)               w above the number of cells, so that losses come first

There is one indicator for each *affected non-sensitive frequent itemset*, not for each border itemset: two solutions
that lose the same number of border itemsets may lose different numbers of itemsets. The search starts from a heuristic
solution, whose objective is an upper bound, and the better of the two is taken, so that no time limit makes exact
hiding worse than the heuristic. The program is made and solved in a process of its own, which ends with the time limit:
the solver looks at its clock too seldom for that.

Source: Gkoulalas-Divanis and Verykios, "An integer programming approach for frequent itemset hiding", CIKM 2006;
Menon, Sarkar and Mukherjee, "Maximizing accuracy of shared databases when concealing sensitive patterns", ISR 2005.
Solver: HiGHS, through `scipy.optimize.milp`.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from link.errors import InternalError
from mining.data.transactions import Transactions
from mining.hiding.sensitive import Items
from mining.hiding.workspace import Workspace

Status = Literal["optimal", "time limit", "heuristic"]
Cells = list[tuple[int, int]]

SEARCH: Final[tuple[str, ...]] = (sys.executable, "-P", "-m", "mining.hiding.search_process")
GRACE_S: Final = 0.5  # in which a solution that was found in time may still arrive


@dataclass(frozen=True, slots=True)
class Solved:
    """How an exact search ended.

    Attributes:
        status: `optimal`; `time limit`, where the solution is the best so far; or `heuristic`, where the search found
            none that is better than what it began with.
        lost: Itemsets that are lost.
        deleted: Cells that are deleted.
        bound: No solution has a lower objective w · lost + deleted.
        gap: By how much the objective may be above the best possible, as a share of it; 0 where it is optimal.
        seconds: Of the search, from making the program to its end.
    """

    status: Status
    lost: int
    deleted: int
    bound: float
    gap: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Task:
    """What a search is about.

    Attributes:
        data: The rows, unchanged.
        sensitive: The itemsets that are to be infrequent.
        kept: All frequent itemsets without a sensitive part.
        min_count: The least count of a frequent itemset.
        known: The cells of a solution that is known.
    """

    data: Transactions
    sensitive: Sequence[Items]
    kept: Sequence[Items]
    min_count: int
    known: Cells


@dataclass(frozen=True, slots=True)
class Found:
    """What a search has found.

    Attributes:
        cells: Of the best solution; None where it has none that is at least as good as the known one.
        is_optimal: Whether no solution is better.
        bound: No solution has a lower objective.
    """

    cells: Cells | None
    is_optimal: bool
    bound: float


@dataclass(frozen=True, slots=True)
class _Program:
    """The integer program in arrays: columns are y, then z, then lost."""

    cells: Cells
    weight: float
    rows: list[tuple[NDArray[np.int64], NDArray[np.float64], float, float]]
    n_products: int
    n_lost: int


def hide_exactly(work: Workspace, task: Task, time_limit: float) -> Solved:
    """Makes itemsets infrequent with the least loss.

    Args:
        work: The rows, unchanged so far; the cells of the solution are deleted.
        task: What is asked.
        time_limit: Seconds for the search; it is over `GRACE_S` later at the latest.

    Raises:
        InternalError: The search broke off by a fault of its own.
    """
    began = time.monotonic()
    found = searched_apart(task, began + time_limit)
    seconds = time.monotonic() - began
    status: Status = "heuristic"
    chosen = task.known
    if found.cells is not None:
        chosen, status = found.cells, "optimal" if found.is_optimal else "time limit"
    lost, weight = _lost(work, task, chosen), _weight(_cells(work, task.sensitive))
    work.delete_all(chosen)
    value = weight * lost + len(chosen)
    gap = 0.0 if status == "optimal" else max(0.0, value - found.bound) / max(value, 1.0)
    return Solved(status, lost, len(chosen), found.bound, gap, seconds)


def searched_apart(task: Task, deadline: float) -> Found:
    """Searches in a process of its own."""
    try:
        ran = subprocess.run(
            SEARCH,
            input=pickle.dumps((task, deadline)),
            capture_output=True,
            timeout=max(0.0, deadline + GRACE_S - time.monotonic()),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Found(None, False, 0.0)
    if ran.returncode < 0:  # by its own clock, or by the kernel for want of memory
        return Found(None, False, 0.0)
    if ran.returncode:
        last = ran.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise InternalError(f"the search for an exact solution broke off ({' '.join(last)})")
    found: Found = pickle.loads(ran.stdout)  # noqa: S301 - of our own process
    return found


def searched(task: Task, deadline: float) -> Found:
    """Makes the program and solves it, here: the solver may run on beyond the deadline.

    Args:
        task: What is asked.
        deadline: As of `time.monotonic`.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    work = Workspace(task.data)
    program = _program(work, task.sensitive, task.kept, task.min_count)
    first = program.weight * _lost(work, task, task.known) + len(task.known)
    sizes = (len(program.cells), program.n_products, program.n_lost)
    n = sum(sizes)
    cost = np.concatenate([np.full(sizes[0], -1.0), np.zeros(sizes[1]), np.full(sizes[2], program.weight)])
    at = np.fromiter(chain.from_iterable(columns for columns, *_ in program.rows), np.int64)
    values = np.fromiter(chain.from_iterable(values for _, values, *_ in program.rows), np.float64)
    starts = np.cumsum([0, *(len(columns) for columns, *_ in program.rows)])
    matrix = csr_array((values, at, starts), shape=(len(program.rows), n))
    limits = LinearConstraint(matrix, [low for *_, low, _ in program.rows], [high for *_, high in program.rows])
    no_worse = LinearConstraint(cost[None, :], -np.inf, first - sizes[0] + 0.5)
    integral = np.concatenate([np.ones(sizes[0]), np.zeros(sizes[1]), np.ones(sizes[2])])
    left = deadline - time.monotonic()
    if left <= 0:
        return Found(None, False, 0.0)
    found = milp(
        cost,
        integrality=integral,
        bounds=Bounds(0, 1),
        constraints=[limits, no_worse],
        options={"time_limit": left, "mip_rel_gap": 0.0},
    )
    bound = max(0.0, sizes[0] + found.mip_dual_bound) if found.mip_dual_bound is not None else 0.0
    if found.x is not None:
        deleted = [cell for cell, stays in zip(program.cells, found.x, strict=False) if stays < 0.5]
        value = program.weight * _lost(work, task, deleted) + len(deleted)
        if _hides(work, task.sensitive, task.min_count, deleted) and value <= first:
            return Found(deleted, found.status == 0, bound)
    return Found(None, False, bound)


def _program(work: Workspace, sensitive: Sequence[Items], kept: Sequence[Items], min_count: int) -> _Program:
    holding = [(items, np.flatnonzero(work.holding(items))) for items in sensitive]
    cells = _cells(work, sensitive)
    number, weight = {cell: place for place, cell in enumerate(cells)}, _weight(cells)
    by_item: dict[int, NDArray[np.bool_]] = {}
    for row, item in cells:
        by_item.setdefault(item, np.zeros(work.data.n_rows, bool))[row] = True
    rows_: list[tuple[NDArray[np.int64], NDArray[np.float64], float, float]] = []
    products = 0

    def product() -> int:
        nonlocal products
        products += 1
        return len(cells) + products - 1

    for items, rows in holding:
        if len(rows) < min_count:
            continue
        ends = []
        for row in rows.tolist():
            z = product()
            ends.append(z)
            columns = np.array([z, *(number[row, item] for item in items)])
            rows_.append((columns, np.array([1.0, *[-1.0] * len(items)]), 1.0 - len(items), np.inf))
        rows_.append((np.array(ends), np.ones(len(ends)), -np.inf, min_count - 1.0))
    endangered = []
    for items in kept:
        own = [item for item in items if item in by_item]
        everywhere = work.holding(items)
        touched = everywhere & np.any([by_item[item] for item in own], axis=0) if own else everywhere & False
        rest = int(np.count_nonzero(everywhere & ~touched))
        if rest < min_count and touched.any():
            endangered.append((own, np.flatnonzero(touched), rest))
    first_lost = len(cells) + products  # the products of these follow, and their indicators behind all of them
    ends_of = []
    for own, rows, _ in endangered:
        ends = []
        for row in rows.tolist():
            inside = [number[row, item] for item in own if (row, item) in number]
            if len(inside) == 1:
                ends.append(inside[0])
                continue
            z = product()
            ends.append(z)
            for y in inside:
                rows_.append((np.array([z, y]), np.array([1.0, -1.0]), -np.inf, 0.0))
        ends_of.append(ends)
    first_lost = len(cells) + products
    for at, ((_, _, rest), ends) in enumerate(zip(endangered, ends_of, strict=True)):
        columns = np.array([*ends, first_lost + at])
        rows_.append((columns, np.array([*[1.0] * len(ends), float(min_count)]), float(min_count - rest), np.inf))
    return _Program(cells, weight, rows_, products, len(endangered))


def _cells(work: Workspace, sensitive: Sequence[Items]) -> Cells:
    """The cells inside sensitive itemsets: all that may be deleted."""
    holding = ((items, np.flatnonzero(work.holding(items)).tolist()) for items in sensitive)
    return list(dict.fromkeys((row, item) for items, rows in holding for row in rows for item in items))


def _weight(cells: Cells) -> float:
    """Of a lost itemset, so that losses come first."""
    return float(len(cells) + 1)


def _lost(work: Workspace, task: Task, deleted: Cells) -> int:
    """How many itemsets deletions cost, counted from the rows and not from the program."""
    gone: dict[int, NDArray[np.bool_]] = {}
    for row, item in deleted:
        gone.setdefault(item, np.zeros(work.data.n_rows, bool))[row] = True
    lost = 0
    for items in task.kept:
        if any(item in gone for item in items):
            here = work.holding(items)
            for item in items:
                if item in gone:
                    here &= ~gone[item]
            lost += int(np.count_nonzero(here)) < task.min_count
    return lost


def _hides(work: Workspace, sensitive: Sequence[Items], min_count: int, deleted: Cells) -> bool:
    gone = set(deleted)
    return all(
        sum(not any((row, item) in gone for item in items) for row in np.flatnonzero(work.holding(items)).tolist())
        < min_count
        for items in sensitive
    )
