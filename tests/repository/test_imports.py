"""Imports stand at the top of modules, with the exceptions of CONTRIBUTING, and no files import each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("ldp", "anonymize", "mining", "crypto", "link", "client", "jobs", "party", "coordinator", "comine")
LIBRARIES = {"duckdb", "jinja2", "pandas", "polars", "pyspark", "rbcl", "scipy", "sklearn"}  # heavy, or optional
COMMANDS = {  # which load what they run
    *(f"party/{name}.py" for name in ("check", "cli", "inbox_cli", "init")),
    *(str(path.relative_to(ROOT)) for path in (ROOT / "coordinator" / "cli").rglob("*.py")),
    *(f"comine/{name}.py" for name in ("__init__", "__main__", "command", "quickstart/command")),
}
LATE = {  # what brings one of the libraries, or numpy to a coordinator that only shows what a job discloses
    "anonymize/estimators/perturbing.py",
    "anonymize/estimators/recoding.py",
    "jobs/kinds/noisy/parameters.py",
    "jobs/loading.py",
    "ldp/sets/size_histogram.py",
    "mining/joint/disclosure.py",
    "mining/joint/hybrid/budget.py",
    "mining/joint/hybrid/parameters.py",
    "mining/joint/hybrid/sizes.py",
    "party/services/anonymization/worker.py",
    "party/services/frequency/estimates.py",
}


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def inside_functions(path: Path) -> Iterator[str]:
    """The modules that are imported in functions."""
    for function in ast.walk(parsed(path)):
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
    assert found - COMMANDS == LATE


def imported(module: str, tree: ast.AST, modules: set[str]) -> Iterator[str]:
    """The modules that one needs: what it imports, in functions and for types too, and their packages."""
    for node in ast.walk(tree):
        found = list[str]()
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            inner = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            found = [inner[name] if inner[name] in modules else str(node.module) for name in inner]
        for name in found:
            parts = name.split(".")
            for length in range(1, len(parts) + 1):
                package = ".".join(parts[:length])
                if package == name or not f"{module}.".startswith(f"{package}."):  # its own packages are there already
                    yield package


def graph(root: Path, packages: tuple[str, ...]) -> dict[str, set[str]]:
    """By module those that it needs."""
    paths = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for package in packages
        for path in (root / package).rglob("*.py")
    }
    names = set(paths)
    return {
        module: ({*imported(module, parsed(path), names)} & paths.keys()) - {module} for module, path in paths.items()
    }


def test_no_files_import_each_other() -> None:
    assert len([*TopologicalSorter(graph(ROOT, (*PACKAGES, "protos"))).static_order()]) > 800


@pytest.mark.parametrize(
    "lines",
    [
        ["import p.b", "import p.a"],
        ["from p import b", "def f():\n    from p.a import A"],
        ["from p.b import B", "from p.c.d import D", "from p.a import A"],
        ["TYPE_CHECKING = False\nif TYPE_CHECKING:\n    from p.b import B", "class B:\n    import p.a"],
    ],
)
def test_a_circle_is_found(tmp_path: Path, lines: list[str]) -> None:
    (tmp_path / "p" / "c").mkdir(parents=True)
    for name, text in zip(("a", "b", "c/__init__"), lines, strict=False):
        (tmp_path / "p" / f"{name}.py").write_text(text)
    (tmp_path / "p" / "c" / "d.py").write_text("")
    with pytest.raises(CycleError):
        TopologicalSorter(graph(tmp_path, ("p",))).prepare()
