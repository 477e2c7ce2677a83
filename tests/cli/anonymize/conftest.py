"""The configuration of a test."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.cli.anonymize.patients import CITIES, CONFIG, HEADER, HIERARCHIES, ROWS, Configure, K


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    """Writes the patients, their hierarchy, and a configuration; gives the name of its file."""
    with (tmp_path / "patients.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=";", lineterminator="\n").writerows([HEADER, *ROWS])
    lines = [f"{city};{region};*" for region, cities in CITIES.items() for city in cities]
    (tmp_path / "city.csv").write_text("\n".join(lines) + "\n")

    def write(
        algorithm: str = "optimal", model: str = K, more: str = HIERARCHIES, top: str = "", name: str = "a.toml"
    ) -> str:
        (tmp_path / name).write_text(CONFIG.format(algorithm=algorithm, model=model, more=more, top=top))
        return name

    return write
