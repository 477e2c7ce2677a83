"""The configuration: every key works or is refused, numbers are exact, and nothing secret is told of it."""

from __future__ import annotations

import json
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest

from anonymize.models import PSensitive, SensitiveLevels, TCloseness
from jobs.anonymization.inputs import load, requirements_of
from jobs.anonymization.running import run
from jobs.anonymization.spec import (
    FULL_DOMAIN,
    Algorithm,
    AnonymizationSpec,
    AnonymizeSection,
    parameters,
    read_spec,
)
from jobs.schema import generate
from jobs.spec.toml import validate
from link.errors import ConfigurationError
from tests.errors import fails

MINIMAL: dict[str, Any] = {
    "source": "people.csv",
    "quasi_identifiers": ["age", "zip"],
    "sensitive": ["disease"],
    "model": {"k": 2},
}


def section(**more: Any) -> AnonymizeSection:
    return validate(AnonymizationSpec, {"anonymize": {**MINIMAL, **more}}, "a.toml").anonymize


def refused(**more: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        section(**more)
    return caught.value.message


def test_defaults() -> None:
    spec = section()
    assert (spec.algorithm, spec.max_suppression, spec.suppressed, spec.suppression) == ("optimal", 0, "drop", "row")
    assert (spec.loss, spec.missing, spec.seed, spec.separator) == ("gcp", "error", None, ",")
    assert (spec.row_order, spec.allow_unique, spec.allow_repeated) == ("sorted", (), ())


def test_shares_stay_the_decimals_that_are_written(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(
        '[anonymize]\nsource = "a.csv"\nmax_suppression = 0.020000000000000000001\n[anonymize.model]\nalpha = 0.1\n'
    )
    spec = read_spec(tmp_path / "a.toml")
    assert spec.max_suppression == Decimal("0.020000000000000000001")
    assert spec.model.alpha[0].value == Decimal("0.1")


def test_models_in_short_and_at_length() -> None:
    short = section(model={"k": 3, "l": 2, "t": 0.2, "p": 2, "alpha": 0.5})
    long = section(
        model={
            "k": 3,
            "l": [{"kind": "distinct", "value": 2, "column": "disease"}],
            "t": {"distance": "equal", "value": 0.2, "column": "disease"},
            "p": {"value": 2, "columns": ["disease"]},
            "alpha": {"value": 0.5, "column": "disease"},
        }
    )
    assert requirements_of(short, {}) == requirements_of(long, {})


def test_every_model_of_the_configuration_is_required() -> None:
    levels = {"values": [["flu"], ["HIV"]], "weights": [0.1, 0.9]}
    spec = section(
        model={
            "k": 3,
            "l": {"kind": "recursive", "value": 2, "c": 1.5},
            "t": {"distance": "kl", "value": 1},
            "p": 2,
            "alpha": 0.6,
            "H": 2,
            "beta": {"value": 2, "enhanced": True},
            "delta": 1.5,
        },
        levels=levels,
    )
    found = requirements_of(spec, {})
    assert found is not None
    assert [model.name for model in found.models] == [
        *("k-anonymity", "recursive (c, l)-diversity", "t-closeness", "p-sensitive k-anonymity"),
        *("(alpha, k)-anonymity", "beta-likeness", "delta-disclosure privacy", "H sensitive levels"),
    ]
    by_name = {model.name: model for model in found.models}
    assert by_name["H sensitive levels"] == SensitiveLevels(2, (("flu",), ("HIV",)), "disease", (0.1, 0.9))
    assert by_name["p-sensitive k-anonymity"] == PSensitive(2, ("disease",))
    assert by_name["t-closeness"] == TCloseness(1, "disease", "kl")


def test_a_model_names_its_column_where_there_are_several() -> None:
    several = section(sensitive=["disease", "salary"], model={"l": 2})
    with fails("E100"):
        requirements_of(several, {})
    model = {"l": [{"value": 2, "column": "salary"}, {"value": 3, "column": "disease"}], "p": 2}
    found = requirements_of(section(sensitive=["disease", "salary"], model=model), {})
    assert found is not None
    assert found.columns == ("salary", "disease")


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"model": {}}, "[anonymize.model] is missing"),
        ({"model": {"q": 1}}, "is not a known key"),
        ({"colour": 1}, "is not a known key"),
        ({"algorithm": "mdav", "model": {"l": 2}}, "needs k"),
        ({"algorithm": "ppir", "ppir": {"ranges": {"age": 1}}}, "forms no classes and meets no model"),
        ({"algorithm": "ppir", "model": {}}, "needs [anonymize.ppir] ranges"),
        ({"algorithm": "condensation", "model": {"k": 2, "l": 2}}, "forms no classes, so l says nothing"),
        ({"mondrian": {"mode": "strict"}}, 'belongs to algorithm = "mondrian"'),
        ({"maa-slie": {"base": 2}}, 'belongs to algorithm = "maa-slie"'),
        ({"model": {"l": {"kind": "distinct", "value": 2, "c": 2}}}, "c belongs to recursive"),
        ({"model": {"t": {"value": -1}}}, "greater than or equal to 0"),
        ({"model": {"alpha": 0}}, "greater than 0"),
        ({"columns": {"age": {"kind": "tree", "order": ["a"]}}}, "belong together"),
        ({"hierarchies": {"age": {}}}, "needs a file or a builder"),
        ({"hierarchies": {"age": {"builder": "intervals", "widths": []}}}, "needs at least 1 entry"),
        ({"hierarchies": {"age": {"builder": "intervals", "widths": [1], "range": [9, 0]}}}, "ascending"),
        ({"suppressed": "hide"}, "suppressed:"),
        ({"max_suppression": "1e-99"}, "at most 40 digits"),
        ({"seed": 1.5}, "seed:"),
    ],
)
def test_what_contradicts_itself_is_refused(more: dict[str, Any], sentence: str) -> None:
    assert sentence in refused(**more)


@pytest.mark.parametrize("algorithm", get_args(Algorithm))
def test_every_algorithm_can_be_named(algorithm: str) -> None:
    more: dict[str, Any] = {"algorithm": algorithm}
    if algorithm == "ppir":
        more |= {"model": {}, "ppir": {"ranges": {"age": 2}}}
    if algorithm == "maa-slie":
        more["levels"] = {"values": [["flu"]], "weights": [1]}
    assert section(**more).algorithm == algorithm
    assert set(FULL_DOMAIN) < set(get_args(Algorithm))


def test_a_certificate_tells_no_source_no_seed_and_no_values() -> None:
    spec = section(
        source="postgres://me@secret/x",
        query="select * from patients",
        password_file="secret.txt",
        seed=99,
        hierarchies={"age": {"builder": "grouping", "groups": [{"old": ["rare value"]}]}},
        columns={"age": {"kind": "ordinal", "order": ["rare value"]}},
        levels={"values": [["rare value"]]},
    )
    told = json.dumps(parameters(spec))
    assert not any(word in told for word in ("secret", "patients", "99", "rare value"))
    assert json.loads(told)["seeded"] is True


HIERARCHIES = {
    "age = { builder = 'intervals', widths = [10, 20], range = [0, 99] }": ("age", 100, ["33", "[30, 39]", "[20, 39]"]),
    "age = { builder = 'intervals', widths = [0.5], origin = 0.25 }": ("age", 3, ["33", "[32.75, 33.25)"]),
    "zip = { builder = 'prefix', masked = [2, 3] }": ("zip", 3, ["0123", "01**", "0***"]),
    "born = { builder = 'dates', levels = ['year', 'decade'] }": ("born", 3, ["1990-05-01", "1990", "1990s"]),
    "size = { builder = 'order', groups = [2] }": ("size", 3, ["S", "[S, M]"]),
    "zip = { builder = 'flat' }": ("zip", 3, ["0123", "*"]),
    "zip = { builder = 'grouping', groups = [{ a = ['0123', '0199'], b = ['4000'] }] }": ("zip", 3, ["0123", "a"]),
    "zip = { file = 'zip.txt', separator = '|', add_top = true }": ("zip", 3, ["0123", "a", "*"]),
    "zip = 'zip.json'": ("zip", 3, ["0123", "a", "*"]),
}


@pytest.mark.parametrize("line", HIERARCHIES)
def test_every_way_to_give_a_hierarchy(tmp_path: Path, line: str) -> None:
    (tmp_path / "people.csv").write_text(
        "age,zip,born,size\n33,0123,1990-05-01,S\n40,0199,1991-01-01,M\n55,4000,2001-01-01,L\n"
    )
    (tmp_path / "zip.txt").write_text("0123|a\n0199|a\n4000|b\n")
    (tmp_path / "zip.json").write_text('{"*": {"a": ["0123", "0199"], "b": ["4000"]}}')
    (tmp_path / "a.toml").write_text(
        "[anonymize]\nsource = 'people.csv'\nquasi_identifiers = ['age', 'zip', 'born', 'size']\n"
        "algorithm = 'mondrian'\n"
        "[anonymize.model]\nk = 1\n[anonymize.columns]\nage = { kind = 'numeric' }\nzip = { kind = 'code' }\n"
        "born = { kind = 'date' }\nsize = { kind = 'ordinal', order = ['S', 'M', 'L'] }\n[anonymize.hierarchies]\n"
        + line
    )
    inputs = load(tmp_path / "a.toml")
    name, leaves, labels = HIERARCHIES[line]
    hierarchy = inputs.hierarchies[name]
    leaf = hierarchy.align(inputs.table.columns[name])[inputs.table.columns[name].codes[0]]
    assert len(hierarchy.leaves) == leaves
    assert [hierarchy.label(level, int(leaf)) for level in range(len(labels))] == labels
    assert list(inputs.hierarchy_files) == ([name] if "zip." in line else [])


def test_the_example_loads(tmp_path: Path) -> None:
    example = Path(__file__).resolve().parents[3] / "examples/anonymization/patients.toml"
    jsonschema.validate(tomllib.loads(example.read_text()), json.loads(generate("anonymization")))
    (tmp_path / "a.toml").write_text(example.read_text())
    rows = [
        f"{i},{20 + i},0{i % 3}123,f,2024-0{1 + i % 9}-01,{('flu', 'HIV', 'cold', 'cancer')[i % 4]},day"
        for i in range(40)
    ]
    (tmp_path / "patients.csv").write_text("id,age,zip,sex,admitted,disease,ward\n" + "\n".join(rows) + "\n")
    inputs = load(tmp_path / "a.toml")
    assert set(inputs.all_hierarchies) == {"age", "zip", "sex", "admitted", "disease"}
    assert run(inputs).class_sizes.min() >= 5


def test_a_member_of_two_groups_is_refused(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("zip\n1\n")
    (tmp_path / "a.toml").write_text(
        "[anonymize]\nsource = 'people.csv'\nquasi_identifiers = ['zip']\n[anonymize.model]\nk = 1\n"
        "[anonymize.hierarchies]\nzip = { builder = 'grouping', groups = [{ a = ['1'], b = ['1'] }] }\n"
    )
    with fails("E101"):
        load(tmp_path / "a.toml")


def test_runs_in_order_are_not_built_of_text_without_one(tmp_path: Path) -> None:
    """Sorted by code point, months would be published as [apr, dec]."""
    (tmp_path / "a.csv").write_text("month\njan\napr\ndec\nmay\n")
    text = (
        '[anonymize]\nsource = "a.csv"\nquasi_identifiers = ["month"]\n[anonymize.model]\nk = 2\n'
        '[anonymize.hierarchies]\nmonth = { builder = "order", groups = [2] }\n'
    )
    (tmp_path / "a.toml").write_text(text)
    with fails("E100"):
        load(tmp_path / "a.toml")
    told = '[anonymize.columns]\nmonth = { kind = "ordinal", order = ["jan", "apr", "may", "dec"] }\n'
    (tmp_path / "a.toml").write_text(text + told)
    assert load(tmp_path / "a.toml").hierarchies["month"].labels[1] == ("[jan, apr]", "[may, dec]")


def test_flat_is_a_builder_and_no_path(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("marital\nwed\nfree\n")
    (tmp_path / "a.toml").write_text(
        '[anonymize]\nsource = "a.csv"\nquasi_identifiers = ["marital"]\n[anonymize.model]\nk = 2\n'
        '[anonymize.hierarchies]\nmarital = "flat"\n'
    )
    assert load(tmp_path / "a.toml").hierarchies["marital"].height == 1
