"""The time limit of exact hiding ends the search, whatever that is doing: each test would never end without it."""

from __future__ import annotations

import sys
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pytest

from mining.data.transactions import Transactions
from mining.hiding import exact, hide
from mining.hiding.exact import Found, searched
from mining.hiding.sensitive import SensitiveRule, Thresholds
from tests.errors import fails

pytestmark = pytest.mark.turn(3)

D = Transactions.from_rows(["abc", "abc", "ab", "ac", "bc", "a", "b", "abd", "bd", "cd"])
AB = SensitiveRule(("a",), ("b",))
THREE = Thresholds(3, Decimal("0.6"))

STUCK = {
    "in the solver": "import scipy.optimize as o, time; o.milp = lambda *a, **k: time.sleep(1e6)",
    "while the program is made": "import mining.hiding.exact as e, time; e._program = lambda *a: time.sleep(1e6)",
    "in the interpreter": "import mining.hiding.exact as e\ndef f(*a):\n  while True: pass\ne._program = f",
    "deaf to signals": "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(1e6)",
}


@pytest.mark.parametrize("where", STUCK)
def test_the_limit_ends_a_search_that_would_never_end(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    run = f"{STUCK[where]}\nimport mining.hiding.search_process as p\np.main()"
    monkeypatch.setattr(exact, "SEARCH", (sys.executable, "-c", run))
    found = hide.hide(D, [AB], THREE, method="exact", time_limit=0.5)
    assert found.solved is not None
    assert (found.solved.status, found.solved.bound) == ("heuristic", 0.0)
    assert (found.itemsets.lost, found.deleted, found.itemsets.still_found) == (0, 2, 0)  # as the heuristics do


def test_a_process_that_nobody_waits_for_ends_by_itself() -> None:
    import pickle
    import subprocess
    import time

    run = f"{STUCK['in the interpreter']}\nimport mining.hiding.search_process as p\np.main()"
    task = exact.Task(D, [(0, 1)], [], 3, [(0, 0), (1, 0)])
    given = pickle.dumps((task, time.monotonic() + 0.5))
    assert subprocess.run([sys.executable, "-c", run], input=given, check=False).returncode < 0


def test_nothing_is_solved_once_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    import scipy.optimize

    asked = []
    monkeypatch.setattr(scipy.optimize, "milp", lambda *_, **options: asked.append(options))
    clock = iter([100.0])
    monkeypatch.setattr(exact, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    assert searched(exact.Task(D, [(0, 1)], [], 3, [(0, 0), (1, 0)]), 99.0) == Found(None, False, 0.0)
    assert asked == []


def test_the_solver_has_what_the_program_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    import scipy.optimize

    asked = []
    solve = scipy.optimize.milp

    def milp(*given: object, **options: object) -> object:
        asked.append(options["options"])
        return solve(*given, **options)

    monkeypatch.setattr(scipy.optimize, "milp", milp)
    clock = iter([96.5])
    monkeypatch.setattr(exact, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    known = [(row, 0) for row in (0, 1)]
    assert searched(exact.Task(D, [(0, 1)], [], 3, known), 99.0).is_optimal
    assert asked == [{"time_limit": 2.5, "mip_rel_gap": 0.0}]


def test_a_search_that_breaks_off_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "SEARCH", (sys.executable, "-c", "raise ValueError('torn')"))
    with fails("E700"):
        hide.hide(D, [AB], THREE, method="exact")


def test_the_same_solution_as_ever() -> None:
    draw = np.random.default_rng(3)
    data = Transactions.from_rows([[f"i{i}" for i in range(7) if draw.random() < 0.5] for _ in range(30)])
    found = hide.hide(data, [SensitiveRule(("i0",), ("i1",))], Thresholds(6, Decimal(0)), method="exact")
    assert found.solved is not None
    assert found.solved.status == "optimal"
