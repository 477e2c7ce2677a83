"""An anonymity model that another package brings: configuration, run, certificate, page, policy and verification."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from anonymize.certificate import Certificate
from anonymize.models import KAnonymity, Requirements
from comine.command import run as command
from jobs.anonymization.api import anonymize
from jobs.anonymization.inputs import load
from jobs.anonymization.model_spec import ModelSection
from jobs.anonymization.page import report
from jobs.anonymization.running import run
from jobs.anonymization.spec import AnonymizeSection, parameters
from jobs.anonymization.verifying import verify
from jobs.spec.job import JobSpec
from jobs.spec.toml import validate
from link.errors import ConfigurationError
from mining.joint.anonymisation.conditions.models import offered
from party.services.anonymization.policy import AnonymizationRules, check_request
from party.services.anonymization.request import as_json
from party.services.anonymization.strength import unmet
from tests.brought import bring
from tests.errors import fails

SPREAD = '''
"""(k, e)-anonymity (Zhang et al. 2007): the numbers of a sensitive column reach over at least e in every class."""

from dataclasses import dataclass, field, replace
from decimal import Decimal

import numpy as np
from pydantic import Field

from anonymize import Protection, SingleColumnModel
from anonymize.verification import Finding
from jobs.anonymization.model_entry import ColumnEntry
from jobs.spec.values import ColumnName, Fraction


@dataclass(frozen=True)
class Spread(SingleColumnModel):
    e: Decimal
    column: str
    numbers: tuple = field(default=None, repr=False, compare=False, kw_only=True)
    name = "(k, e)-anonymity"
    protection = Protection("In each class {column} reaches over at least {e}.", "Most values may still be alike.")
    monotone_with_suppression = True
    least_size = 2

    def fitted(self, table):
        return replace(self, numbers=tuple(table.sensitive_column(self.column).numbers))

    def satisfied(self, classes):
        held, numbers = classes.sensitive[self.column] > 0, np.array(self.numbers)
        most, least = np.where(held, numbers, -np.inf).max(axis=1), np.where(held, numbers, np.inf).min(axis=1)
        return most - least >= float(self.e)

    def claim(self, table):
        return "e", {"value": float(self.e), "column": self.column}


class SpreadSection(ColumnEntry):
    value: Fraction = Field(gt=0)
    column: ColumnName | None = None

    def condition(self, columns, hierarchies):
        return Spread(self.value, columns[0])

    def is_as_strict_as(self, least):
        return self.value >= least.value


def check(claim, certificate, classes):
    spreads = []
    for each in classes:
        numbers = [float(value) for value in each.counts[claim["column"]]]
        spreads.append(max(numbers) - min(numbers))
    yield Finding("(k, e)-anonymity", "every class", f"least: {min(spreads)}", min(spreads) >= claim["value"])
'''
MODELS = {"comine.anonymity_models": {"e": "spread:SpreadSection"}}
CONDITIONS = {"comine.anonymity_conditions": {"e": "spread:check"}}

ROWS = "age,pay\n" + "".join(f"{20 + i},{1000 * (1 + i % 4)}\n" for i in range(24))


@pytest.fixture
def spread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bring(tmp_path, monkeypatch, "spread", SPREAD, MODELS | CONDITIONS)


def configured(folder: Path, model: str) -> Path:
    (folder / "pay.csv").write_text(ROWS)
    (folder / "anonymize.toml").write_text(
        '[anonymize]\nsource = "pay.csv"\nquasi_identifiers = ["age"]\nsensitive = ["pay"]\nalgorithm = "mondrian"\n'
        f'[anonymize.model]\nk = 2\n{model}\n[anonymize.columns]\npay = {{ kind = "numeric" }}\n'
        'age = { kind = "numeric" }\n'
    )
    return folder / "anonymize.toml"


def asked(**model: Any) -> AnonymizeSection:
    keys = {"source": "patients", "quasi_identifiers": ["age"], "sensitive": ["pay"], "algorithm": "mondrian"}
    return AnonymizeSection.model_validate(keys | {"model": {"k": 5} | model})


def ruled(**more: Any) -> AnonymizationRules:
    columns = {"age": ["quasi_identifiers"], "pay": ["sensitive"]}
    return AnonymizationRules.model_validate({"columns": columns, "min_k": 2, "algorithms": ["mondrian"]} | more)


@pytest.mark.usefixtures("spread")
def test_from_the_configuration_to_the_verified_release(tmp_path: Path) -> None:
    config = configured(tmp_path, "e = 3000")
    certificate = anonymize(config).save(tmp_path / "out")
    assert certificate.model.outside == {"e": [{"value": 3000.0, "column": "pay"}]}
    assert certificate.parameters["model"] == {"k": 2, "e": [{"value": "3000"}]}
    assert certificate.classes == 4
    assert Certificate.read(tmp_path / "out" / "certificate.json") == certificate
    found = verify(tmp_path / "out")
    assert found.ok
    assert ("(k, e)-anonymity", "least: 3000.0") in [(each.check, each.found) for each in found.findings]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "In each class pay reaches over at least 3000." in page
    assert "Most values may still be alike." in page


@pytest.mark.usefixtures("spread")
def test_the_commands_take_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    config = configured(tmp_path, "e = { value = 2000, column = 'pay' }")
    monkeypatch.chdir(tmp_path)
    assert command(["anonymize", "run", str(config), "--out", "out"]) == 0
    assert command(["anonymize", "verify", "out"]) == 0
    assert "(k, e)-anonymity" in capsys.readouterr().out


@pytest.mark.usefixtures("spread")
def test_what_cannot_be_met_is_refused(tmp_path: Path) -> None:
    inputs = load(configured(tmp_path, "e = 4000"))
    with fails("E100"):
        run(inputs)


@pytest.mark.usefixtures("spread")
def test_a_false_claim_is_found(tmp_path: Path) -> None:
    anonymize(configured(tmp_path, "e = 3000")).save(tmp_path / "out")
    path = tmp_path / "out" / "certificate.json"
    claimed = Certificate.read(path)
    more = claimed.model.model_copy(update={"e": [{"value": 3001.0, "column": "pay"}]})
    claimed.model_copy(update={"model": more}).sealed().write(path)
    assert "(k, e)-anonymity" in [each.check for each in verify(tmp_path / "out").failures]


def test_a_model_that_the_verifier_does_not_know_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    with monkeypatch.context() as patch:
        bring(tmp_path, patch, "spread", SPREAD, MODELS)
        anonymize(configured(tmp_path, "e = 3000")).save(tmp_path / "out")
        unknown = ["the model e"]
        assert [each.check for each in verify(tmp_path / "out").failures] == unknown
    found = verify(tmp_path / "out")
    assert [each.check for each in found.failures] == unknown
    assert found.failures[0].found == "this verifier does not know the model 'e', so nothing was checked of it"
    monkeypatch.chdir(tmp_path)
    assert command(["anonymize", "verify", "out"]) != 0
    assert "this verifier does not know the model 'e'" in capsys.readouterr().err


@pytest.mark.usefixtures("spread")
def test_policies_ask_for_it(tmp_path: Path) -> None:
    with fails("E300", party="north"):
        check_request(ruled(), asked(e=3000), "hub", "north")
    check_request(ruled(models=["e"]), asked(e=3000), "hub", "north")
    required = ruled(require={"e": {"value": 2000, "column": "pay"}})
    check_request(required, asked(e=2000), "hub", "north")
    for weaker in ({}, {"e": 1999}, {"l": 3}):
        with fails("E300", party="north"):
            check_request(required, asked(**weaker), "hub", "north")
    assert unmet(required.require, asked(e=[{"value": 2500}])) is None
    for wrong, words in (({"e": 2}, "require e lacks its column"), ({"e": {"value": 2, "column": "age"}}, "'age'")):
        with pytest.raises(ValueError, match=words):
            ruled(require=wrong)


@pytest.mark.usefixtures("spread")
def test_a_request_crosses_the_wire() -> None:
    spec = asked(l=2, e=[{"value": "0.5"}, {"value": 3, "column": "pay"}])
    assert AnonymizeSection.model_validate(json.loads(json.dumps(as_json(spec)))) == spec
    assert list(parameters(spec)["model"]) == ["k", "l", "e"]


@pytest.mark.usefixtures("spread")
def test_jobs_of_several_parties_refuse_it() -> None:
    model = asked(e=3).model.entries["e"][0].condition(("pay",), {})
    with fails("E100"):
        offered(Requirements((KAnonymity(2), model)))


def test_without_the_package_it_is_refused_everywhere(tmp_path: Path) -> None:
    with fails("E100"):
        load(configured(tmp_path, "e = 3000"))
    with pytest.raises(ValueError, match="Extra inputs are not permitted"):
        ModelSection.model_validate({"k": 5, "e": 3000})
    with pytest.raises(ValueError, match="Input should be 'l', 't', 'p', 'alpha', 'H', 'beta' or 'delta'"):
        ruled(models=["e"])
    with pytest.raises(ValueError, match="Extra inputs are not permitted"):
        ruled(require={"e": {"value": 3, "column": "pay"}})
    job = {"job": {"name": "j", "task": "anonymize", "parties": ["a", "b"], "dataset": "d"}}
    with fails("E100"):
        validate(JobSpec, job | joint(e=3), "job.toml")


def test_many_unknown_keys_are_looked_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    anonymize(configured(tmp_path, "")).save(tmp_path / "out")
    looked = []
    monkeypatch.setattr("link.plugins.entry_points", lambda **asked: looked.append(asked) or [])
    many = {f"key{i}": [] for i in range(500)}
    with pytest.raises(ValueError, match="500 validation errors"):
        ModelSection.model_validate({"k": 2} | many)
    path = tmp_path / "out" / "certificate.json"
    claimed = Certificate.read(path)
    claimed.model_copy(update={"model": claimed.model.model_copy(update=many)}).sealed().write(path)
    failed = [each for each in verify(tmp_path / "out").failures if each.check.startswith("the model key")]
    assert len(failed) == 500
    assert len(looked) == 2


def joint(**model: Any) -> dict[str, Any]:
    section = {"quasi_identifiers": ["age"], "sensitive": ["pay"], "model": {"k": 2} | model}
    return {"anonymize": section | {"hierarchies": {"age": [["1", "*"], ["2", "*"]]}}}


def test_no_package_replaces_a_model_of_comine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"comine.anonymity_models": dict.fromkeys(("k", "l", "t", "H", "h", "beta"), "spread:SpreadSection")}
    bring(tmp_path, monkeypatch, "spread", SPREAD, own)
    model = ModelSection.model_validate({"k": 5, "l": 3, "t": "0.2", "H": 2, "beta": 1})
    assert {type(each).__module__ for entries in model.entries.values() for each in entries} == {
        "jobs.anonymization.model_spec"
    }
    assert "spread" not in sys.modules


@pytest.mark.parametrize(
    ("source", "home", "words"),
    [
        (
            "import nothing_of_this_name",
            "broken:Section",
            "cannot be imported (ModuleNotFoundError); see why with: python -c 'import broken'",
        ),
        ("1 / 0", "broken:Section", "cannot be imported (ZeroDivisionError); see why with: python -c 'import broken'"),
        (
            "raise SystemError('secret')",
            "broken:Section",
            "cannot be imported (SystemError); see why with: python -c 'import broken'",
        ),
        ("", "broken:Section", "names 'Section', which its module broken does not have"),
        ("Section = 7", "broken:Section", "is no Entry"),
        ("class Section: pass", "broken:Section", "is no Entry"),
        (
            "from jobs.anonymization.model_entry import ColumnEntry\nclass Section(ColumnEntry): pass",
            "broken:Section",
            "lacks condition, is_as_strict_as",
        ),
    ],
)
def test_a_broken_package_is_named_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, home: str, words: str
) -> None:
    bring(tmp_path, monkeypatch, "broken", source, {"comine.anonymity_models": {"e": home}})
    with pytest.raises(ConfigurationError) as told:
        load(configured(tmp_path, "e = 3000"))
    assert told.value.message == f"the plug-in 'e' of the distribution 'broken' {words}"
    load(configured(tmp_path, "l = 2"))  # nothing else is touched


def test_two_packages_for_one_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("one", "two"):
        bring(tmp_path, monkeypatch, package, SPREAD, {"comine.anonymity_models": {"e": f"{package}:SpreadSection"}})
    with fails("E100"):
        load(configured(tmp_path, "e = 3000"))


def test_a_check_that_is_broken_is_no_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {"comine.anonymity_conditions": {"e": "spread:missing"}}
    bring(tmp_path, monkeypatch, "spread", SPREAD, MODELS | broken)
    anonymize(configured(tmp_path, "e = 3000")).save(tmp_path / "out")
    with fails("E100"):
        verify(tmp_path / "out")


@pytest.mark.usefixtures("spread")
def test_the_page_of_a_run_in_memory(tmp_path: Path) -> None:
    found = anonymize(configured(tmp_path, "e = 3000"))
    certificate = found.save(tmp_path / "out")
    assert "(k, e)-anonymity" in report(found.inputs, found.release, certificate)
