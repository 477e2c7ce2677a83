"""Every public name of comine is explained with an example, and the examples run."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy
import pandas
import pyarrow
import pytest

import comine
from jobs.report.job_file import job_file
from tests.cli.conftest import ANONYMIZE
from tests.cli.test_api import from_python
from tests.party.nodes import weekly

pytestmark = pytest.mark.turn(3)

AT_NODES = {"Federation", "JobHandle", "Plan"}
JOB = {
    "job": {"name": "weekly", "task": "rules", "parties": ["north", "south"], "dataset": "baskets"},
    "itemsets": {"min_support": 0.3},
    "rules": {"min_confidence": 0.5},
}
LEARNING = {
    "job": {"name": "risk", "task": "naive-bayes", "parties": ["north", "south"], "dataset": "people"},
    "columns": {"smoker": {"values": ["no", "yes"]}, "ill": {"values": ["no", "yes"]}},
    "naive_bayes": {"target": "ill", "attributes": ["smoker"]},
}
PEOPLE = pandas.DataFrame({"smoker": ["no", "no", "yes"] * 2, "ill": ["no", "no", "yes"] * 2})
ROWS = [["bread", "milk"], ["bread"], ["milk"]]


def examples(name: str) -> Iterator[doctest.DocTest]:
    """Those of a public name, and of what a class has."""
    found = getattr(comine, name)
    texts = {name: found.__doc__ or ""}
    if inspect.isclass(found):
        texts |= {f"{name}.{each}": inspect.getdoc(getattr(found, each)) or "" for each in vars(found)}
        texts |= {f"{name}.{each}": inspect.getdoc(getattr(found, each)) or "" for each in dir(found) if each[0] != "_"}
    known: dict[str, Any] = {
        "comine": comine,
        "pandas": pandas,
        "pyarrow": pyarrow,
        "numpy": numpy,
        "Decimal": Decimal,
        "job": JOB,
        "rows": ROWS,
        "learning": LEARNING,
        "tables": {"north": PEOPLE, "south": PEOPLE},
    }
    if name == "Result":
        known["result"] = comine.simulate(JOB, {"north": ROWS, "south": ROWS}, seed=1)
    for place, text in texts.items():
        parsed = doctest.DocTestParser().get_doctest(text, dict(known), place, None, None)
        if parsed.examples:
            yield parsed


def run(name: str) -> None:
    said = list[str]()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    ran = [runner.run(example, out=said.append) for example in examples(name)]
    assert sum(each.attempted for each in ran), f"{name} has no example"
    assert not sum(each.failed for each in ran), "".join(said)


@pytest.mark.parametrize("name", [name for name in comine.__all__ if name not in AT_NODES])
def test_the_example_of_a_name_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.toml").write_text(ANONYMIZE)
    rows = (f"{20 + n},{'ab'[n % 2]},{'xyz'[n % 3]}\n" for n in range(10))
    (tmp_path / "people.csv").write_text("age,town,illness\n" + "".join(rows))
    run(name)


@pytest.mark.parametrize("name", sorted(AT_NODES))
def test_the_example_of_a_name_runs_at_nodes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.toml").write_text(job_file(weekly()))
    from_python(tmp_path, lambda _: run(name))
