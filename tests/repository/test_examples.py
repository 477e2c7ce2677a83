"""Every public name of `ldp` and `anonymize` has an example that runs: in its docstring, or in a page's block."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy
import pytest

from anonymize import Histograms, Roles, Table
from anonymize.hierarchies.builders import intervals
from tests.pages import BLOCK

ROOT = Path(__file__).parents[2]
PACKAGES = ("anonymize", "ldp")
BLOCKS = "\n".join(
    block  # which the tests of the pages run
    for package in PACKAGES
    for page in sorted((ROOT / "docs" / package).glob("*.md"))
    for block in BLOCK.findall(page.read_text(encoding="utf-8"))
)
AGES = [31, 32, 45, 46, 47, 48]
ILLNESSES = ["flu", "flu", "cold", "flu", "cold", "flu"]


def known() -> dict[str, Any]:
    table = Table.of({"age": AGES, "illness": ILLNESSES}, Roles(quasi_identifiers=["age"], sensitive=["illness"]))
    classes = Histograms(numpy.array([4, 2]), {"illness": numpy.array([[2, 2], [2, 0]])})
    return {
        "numpy": numpy,
        "table": table,
        "classes": classes,
        "hierarchies": {"age": intervals(AGES, [10, 20], name="age")},
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_has_an_example(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    module = import_module(package)
    names = {name: getattr(module, name) for name in module.__all__}
    runner, without = doctest.DocTestRunner(), []
    for name, found in names.items():
        parsed = doctest.DocTestParser().get_doctest(found.__doc__, {**known(), **names}, name, None, None)
        if parsed.examples:
            runner.run(parsed)
        elif not re.search(rf"\b{name}\b", BLOCKS):
            without.append(name)
    assert not runner.failures, capsys.readouterr().out
    assert not without, "no example"
