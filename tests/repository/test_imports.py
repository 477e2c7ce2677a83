"""Imports stand at the top of modules, with the exceptions of CONTRIBUTING, and no files import each other."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "ldp",
    "anonymize",
    "mining",
    "crypto",
    "link",
    "client",
    "console",
    "jobs",
    "party",
    "relay",
    "coordinator",
    "comine",
)
LIBRARIES = {  # heavy, or optional
    *("adbc_driver_manager", "adbc_driver_postgresql", "duckdb", "jinja2", "pandas", "polars", "pyspark"),
    *("pymysql", "python_calamine", "rbcl", "scipy", "sklearn"),
}
COMMANDS = {  # which load what they run
    *(
        f"party/{name}.py"
        for name in ("check", "cli", "inbox_cli", "init", "operations_cli", "reload_cli", "running_cli")
    ),
    "party/console/cli.py",
    "relay/cli.py",
    *(str(path.relative_to(ROOT)) for path in (ROOT / "coordinator" / "cli").rglob("*.py")),
    *(f"comine/{name}.py" for name in ("__init__", "__main__", "command", "quickstart/command", "support_bundle")),
}
LATE = {  # what brings one of the libraries, or numpy or protocols to a coordinator that only shows a statement
    "anonymize/estimators/perturbing.py",
    "anonymize/estimators/recoding.py",
    "jobs/kinds/noisy/parameters.py",
    "jobs/kinds/rows/parameters.py",
    "jobs/loading.py",
    "ldp/sets/size_histogram.py",
    "mining/joint/disclosure.py",
    "mining/joint/hybrid/budget.py",
    "mining/joint/hybrid/parameters.py",
    "mining/joint/hybrid/sizes.py",
    "party/console/hosting.py",
    "party/services/anonymization/worker.py",
    "party/services/frequency/estimates.py",
    "party/services/notices/pushes.py",
}
COORDINATOR = (  # what `comine job run` loads for a job over rows
    *(
        "comine.command",
        "coordinator.cli.jobs.job",
        "coordinator.cli.terminal.live",
        "coordinator.cli.terminal.present",
    ),
    *("coordinator.interrupt", "coordinator.jobs.runner", "coordinator.member", "jobs.loading", "jobs.kinds.rows.kind"),
)
NOT_COORDINATOR = re.compile(
    r"(party|ldp|anonymize\.(hierarchies|models)"
    r"|mining\.(partitioned|miner|data\.(tables|loading)|joint\.(horizontal|vertical\.engines\.registry))"
    r"|crypto\.protocols\.(transfers|comparison|paillier)"
    r"|jobs\.(data|plan\.estimate|kinds\.(data|[a-z.]+\.(plan|run)|(?!rows\.)[a-z.]+\.kind)))(\..+)?"
)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """A tree and all statements in it: there are far fewer than expressions, which import nothing."""
    left = [tree]
    while left:
        yield (node := left.pop())
        for name in ("body", "orelse", "handlers", "finalbody", "cases"):
            if isinstance(inner := getattr(node, name, None), list):  # a lambda's body is an expression
                left += inner


def inside_functions(path: Path) -> Iterator[str]:
    """The modules that are imported in functions."""
    for function in statements(parsed(path)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in statements(function):
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
    for node in statements(tree):
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


def graph(
    root: Path, packages: tuple[str, ...], part: Callable[[ast.Module], ast.Module] = lambda tree: tree
) -> dict[str, set[str]]:
    """By module those that it needs, or that a part of it needs."""
    paths = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for package in packages
        for path in (root / package).rglob("*.py")
    }
    names = set(paths)
    return {
        module: ({*imported(module, part(parsed(path)), names)} & paths.keys()) - {module}
        for module, path in paths.items()
    }


def test_no_files_import_each_other() -> None:
    assert len([*TopologicalSorter(graph(ROOT, (*PACKAGES, "protos"))).static_order()]) > 800


def when_loaded(tree: ast.Module) -> ast.Module:
    """What of a module is run when it is imported, and not only for types."""
    found, left = list[ast.stmt](), [*tree.body]
    while left:
        node = left.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            left += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.append(node)
            left += [inner for inner in ast.iter_child_nodes(node) if isinstance(inner, ast.stmt)]
    return ast.Module([node for node in found if isinstance(node, ast.Import | ast.ImportFrom)], [])


def test_a_coordinator_loads_nothing_that_only_parties_or_other_jobs_need() -> None:
    """Of a job over rows: no protocol, no plan, no engine, no data, no other kind."""
    needs = graph(ROOT, (*PACKAGES, "protos"), when_loaded)
    loaded, left = set[str](), [*COORDINATOR]
    while left:
        module = left.pop()
        if module not in loaded:
            loaded.add(module)
            left += needs[module]
    assert "jobs.results.folder" in loaded
    assert sorted(filter(NOT_COORDINATOR.fullmatch, loaded)) == []


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
