"""The public names of `comine`, `ldp` and `anonymize`: they load when they are used, and pages use no others."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("anonymize", "comine", "ldp")
OURS = (*PACKAGES, "coordinator", "crypto", "jobs", "link", "mining", "party")  # `client` has its names in one level
USERS = ("README", "docs/anonymize", "docs/ldp", "docs/tasks")  # pages of protocols show their modules
HEAVY = {"numpy", "pyarrow", "scipy", "pydantic", "grpc", "duckdb", "cryptography", "jobs", "mining"}
PAGES = [page for folder in ("docs", "examples") for page in (ROOT / folder).rglob("*.md")] + [ROOT / "README.md"]
SNIPPET = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
BESIDE_THEIR_MODULE = {  # names that mean something only with it
    "anonymize.auditing.intervals": {"pinned"},
    "anonymize.cells": {"format_interval"},
    "anonymize.clustering.maa_slie": {"Leftover", "Term"},
    "anonymize.covering": {"covered"},
    "anonymize.grouping": {"group"},
    "anonymize.hierarchies.builders": {"bins", "flat", "grouping", "intervals", "order", "prefix"},
    "anonymize.hierarchies.files": {"from_csv", "to_csv"},
    "anonymize.replacement.ppir": {"LEAK"},
    "jobs.audit.key": {"AuditKey", "result_mac"},  # how the audit log's evidence is computed again
    "jobs.kinds.packed_itemsets": {"digest"},
    "jobs.kinds.packed_tables": {"packed_tables"},
    "link.disclosure": {"session_key"},
    "ldp.accounting.batches": {"Batch", "collection", "least_batch"},
    "ldp.accounting.central_noise": {"confident_threshold", "partition_threshold", "sigma_for"},
    "ldp.accounting.composition": {"optimal"},
    "ldp.accounting.discrete_gaussian": {"DiscreteGaussian"},
    "ldp.accounting.shuffling": {"amplified_epsilon", "bounds", "largest_local_epsilon"},
    "ldp.audit": {"audit", "by_likelihood"},
    "ldp.defences.detection": {"detect"},
    "ldp.defences.recovery": {"recover"},
    "ldp.numeric.records": {"Categorical", "Numeric"},
    "ldp.rappor.decode": {"decode"},
    "ldp.reconstruction.columns": {"Column"},
    "ldp.reconstruction.decision_tree": {"DecisionTree"},
    "ldp.reconstruction.density": {"Density", "intervals"},
    "ldp.reconstruction.distribution": {"reconstruct"},
    "ldp.reconstruction.naive_bayes": {"NaiveBayes"},
    "ldp.reconstruction.noise": {"GaussianNoise", "UniformNoise"},
    "ldp.shuffling.batch": {"shuffled"},
    "ldp.shuffling.onion": {"peel", "wrap"},
    "ldp.shuffling.route": {"Route"},
    "ldp.streams.methods": {"restored"},
}


def snippets() -> Iterator[tuple[str, ast.Module]]:
    for page in PAGES:
        for code in SNIPPET.findall(page.read_text()):
            yield str(page.relative_to(ROOT)), ast.parse(code)
    for script in (ROOT / "examples").rglob("*.py"):
        yield str(script.relative_to(ROOT)), ast.parse(script.read_text())


def names_for_types(package: str) -> dict[str, str]:
    """By name, the module that a type checker takes it from."""
    tree = ast.parse((ROOT / package / "__init__.py").read_text())
    (block,) = (each for each in tree.body if isinstance(each, ast.If) and isinstance(each.test, ast.Name))
    imports = [each for each in block.body if isinstance(each, ast.ImportFrom)]
    return {alias.name: str(each.module) for each in imports for alias in each.names}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_loads_and_is_explained(package: str) -> None:
    module = import_module(package)
    assert list(module.__all__) == sorted(set(module.__all__))
    assert set(module.__all__) <= set(dir(module))
    for name, home in names_for_types(package).items():
        found = getattr(module, name)
        assert found is getattr(import_module(home), name)
        assert not isinstance(found, ModuleType), f"a module of {package} hides {name}"
        assert found.__doc__, name
    assert set(names_for_types(package)) == set(module.__all__)


def signatures(found: object, name: str) -> Iterator[tuple[str, dict[str, object]]]:
    """The annotations of a public function, and of the public methods and the constructor that a class itself has."""
    for each, member in {name: found, **(vars(found) if inspect.isclass(found) else {})}.items():
        function = getattr(member, "__func__", getattr(member, "fget", member))
        if inspect.isfunction(function) and (each[0] != "_" or each == "__init__"):
            yield f"{name}.{each}", dict(function.__annotations__)


@pytest.mark.parametrize("package", PACKAGES)
def test_signatures_say_what_they_take_and_give(package: str) -> None:
    """What an editor shows of them: a type parameter may be any, as of an array, but no argument and no outcome."""
    module = import_module(package)
    vague = [
        (place, argument)
        for name in module.__all__
        for place, annotations in signatures(getattr(module, name), name)
        for argument, kind in annotations.items()
        if re.search(r"\bAny\b", re.sub(r"\[[^][]*\]", "", re.sub(r"\[[^][]*\]", "", str(kind))))
    ]
    assert not vague


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_that_is_not_there(package: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        import_module(package).nothing  # noqa: B018


def test_importing_loads_nothing_heavy() -> None:
    script = "import sys, comine, ldp, anonymize; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    assert not HEAVY & set(loaded)


def test_pages_and_examples_use_public_names() -> None:
    used = dict[str, set[str]]()
    for place, tree in snippets():
        looked_at = OURS if place.startswith(USERS) else PACKAGES
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] in looked_at:
                names, module = {alias.name for alias in node.names}, str(node.module)
                if module in PACKAGES:
                    assert names <= set(import_module(module).__all__), place
                else:
                    assert names <= BESIDE_THEIR_MODULE.get(module, set()), f"{place}: {names} of {module}"
                    used.setdefault(module, set()).update(names)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in PACKAGES:
                assert node.attr in import_module(node.value.id).__all__, place
    assert used == BESIDE_THEIR_MODULE
