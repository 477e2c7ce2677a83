"""Imports stand at the top of modules, with the exceptions of CONTRIBUTING; not yet in `jobs` and `coordinator`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("ldp", "anonymize", "mining", "crypto", "link", "client", "party", "comine")
LIBRARIES = {"duckdb", "polars", "rbcl", "scipy", "sklearn"}  # heavy, or optional
COMMANDS = {  # which load what they run
    *(f"party/{name}.py" for name in ("check", "cli", "inbox_cli", "init")),
    *(f"comine/{name}.py" for name in ("__init__", "__main__", "command")),
}
LATE = {  # what brings one of the libraries, or numpy to a coordinator that only shows what a job discloses
    "anonymize/estimators/perturbing.py",
    "anonymize/estimators/recoding.py",
    "ldp/sets/size_histogram.py",
    "mining/joint/disclosure.py",
    "mining/joint/hybrid/budget.py",
    "mining/joint/hybrid/parameters.py",
    "mining/joint/hybrid/sizes.py",
    "party/services/anonymization/worker.py",
    "party/services/frequency/estimates.py",
}
CIRCLES = {"mining/joint/vertical/parameters.py"}


def inside_functions(path: Path) -> Iterator[str]:
    """The modules that are imported in functions."""
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Import):
                    yield from (alias.name for alias in node.names)
                elif isinstance(node, ast.ImportFrom):
                    yield str(node.module)


def test_imports_stand_at_the_top() -> None:
    found = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if {module.partition(".")[0] for module in inside_functions(path)} - LIBRARIES
    }
    assert found - COMMANDS == LATE | CIRCLES
