"""The pages on anonymisation: their examples print what the text says, and their figures are those of the code."""

from __future__ import annotations

import pathlib
import re

import pytest

from anonymize.certificate import Certificate
from anonymize.risk.high_dimension import coincidence, coincidence_bound
from anonymize.utility.dimensionality import least_side
from tests.pages import examples, printed

PAGES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "anonymize"


@pytest.mark.parametrize(
    "page", ["microaggregation", "sensitive-levels", "condensation", "identity-replacement", "uncertain-records"]
)
def test_examples_run(page: str) -> None:
    assert all(printed(PAGES / f"{page}.md"))


@pytest.mark.parametrize("page", ["tables", "hierarchies", "models"])
def test_examples_print_what_stands_beside_them(page: str) -> None:
    for example, lines in zip(examples(PAGES / f"{page}.md"), printed(PAGES / f"{page}.md"), strict=True):
        assert lines
        for promised in re.findall(r"^print\(.*\)  # (?:\(level, label\): )?(.*)$", example, re.MULTILINE):
            assert promised in lines


@pytest.mark.parametrize(("page", "said"), [("full-domain", "'zip': 3}"), ("mondrian", "[21, 25]")])
def test_examples_end_with(page: str, said: str) -> None:
    assert said in "\n".join(printed(PAGES / f"{page}.md")[-1])


def test_auditing() -> None:
    first, (second, *_) = printed(PAGES / "auditing.md")
    assert first == [
        "[0, 1] answered",
        "[1, 2] answered",
        "[0, 2] denied: disclosure",
        "[2, 3] answered",
        "max of 0 and 1: disclosure",
        "max after a sum: class",
    ]
    assert second.startswith("[Pinned(record=0, low=0.0, high=1.0), Pinned(record=1")


def test_risk() -> None:
    assert printed(PAGES / "risk.md")[0] == [
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


def test_utility() -> None:
    first, second = printed(PAGES / "utility.md")[0]
    assert first.startswith("MaxSup 0: node {'age': 2, 'zip': 3}")
    assert "dm 34" in first
    assert second.startswith("MaxSup 0.125: node {'age': ")
    assert "dm " in second


def test_figures_of_dimensions() -> None:
    page = (PAGES / "utility.md").read_text()
    (dimensions,), (sides,) = (re.findall(rf"^\| {name} \| (.*) \|$", page, re.M) for name in "dF")
    for d, side in zip(dimensions.split(" | "), sides.split(" | "), strict=True):
        assert f"{least_side(30_162, int(d), 5):.4f}" == f"0{side}"


def test_verification() -> None:
    statement, honest, *found = printed(PAGES / "verification.md")[0]
    assert statement.startswith("4 equivalence classes of at least 2 rows each")
    assert honest == "as written: True"
    assert {line.split(":")[0] for line in found} >= {"SHA-256 of release.csv", "classes", "k-anonymity, k = 2"}


def test_every_field_of_a_certificate_is_told() -> None:
    told = set(re.findall(r"`(\w+)`", (PAGES / "verification.md").read_text()))
    fields = {field.alias or name for name, field in Certificate.model_fields.items()}
    assert fields <= told
