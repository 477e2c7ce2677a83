"""The pages on utility, risk and verification: examples run and print what the text says."""

from __future__ import annotations

import pathlib
import re

import pytest

from anonymize.certificate import Certificate
from anonymize.risk.high_dimension import coincidence, coincidence_bound
from anonymize.utility.dimensionality import least_side

PAGES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "anonymize"


def printed(name: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What the one example of a page prints."""
    (example,) = re.findall(r"^```python\n(.*?)^```", (PAGES / f"{name}.md").read_text(), re.MULTILINE | re.DOTALL)
    exec(compile(example, name, "exec"), {})
    return capsys.readouterr().out.splitlines()


def test_risk(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed("risk", capsys) == [
        "without names: 7 of 8 voters are one patient, 7 diseases are known",
        "whose row it is: prosecutor 1.00, journalist 0.92 on average",
        "3-anonymous: highest identity risk 0.33, 4 diseases are known",
    ]


def test_figures_of_long_records() -> None:
    rows = re.findall(r"^\| 10,000 \| (\d) \| (\d+) \| (\.\d+) \| (\.\d+) \|$", (PAGES / "risk.md").read_text(), re.M)
    assert len(rows) == 2
    for r, b, bound, exact in rows:
        assert f"{coincidence_bound(10_000, int(b), int(r)):.6f}" == f"0{bound}"
        assert f"{coincidence(10_000, int(b), int(r)):.6f}" == f"0{exact}"


def test_utility(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = printed("utility", capsys)
    assert first.startswith("MaxSup 0: node {'age': 2, 'zip': 3}")
    assert "dm 34" in first
    assert second.startswith("MaxSup 0.125: node {'age': ")
    assert "dm " in second


def test_figures_of_dimensions() -> None:
    page = (PAGES / "utility.md").read_text()
    (dimensions,), (sides,) = (re.findall(rf"^\| {name} \| (.*) \|$", page, re.M) for name in "dF")
    for d, side in zip(dimensions.split(" | "), sides.split(" | "), strict=True):
        assert f"{least_side(30_162, int(d), 5):.4f}" == f"0{side}"


def test_verification(capsys: pytest.CaptureFixture[str]) -> None:
    statement, honest, *found = printed("verification", capsys)
    assert statement.startswith("4 equivalence classes of at least 2 rows each")
    assert honest == "as written: True"
    assert {line.split(":")[0] for line in found} >= {"SHA-256 of release.csv", "classes", "k-anonymity, k = 2"}


def test_every_field_of_a_certificate_is_told() -> None:
    told = set(re.findall(r"`(\w+)`", (PAGES / "verification.md").read_text()))
    fields = {field.alias or name for name, field in Certificate.model_fields.items()}
    assert fields <= told
