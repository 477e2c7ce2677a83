"""The patients, their hierarchy and a configuration, as files and as what a release has of them."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

DISEASES = ("flu", "cancer", "fever", "HIV")
CITIES = {"North": ("Oslo", "Turku"), "South": ("Rome", "Porto", "Nice")}
NAMES = [city for cities in CITIES.values() for city in cities]
ROWS = [
    (f"p{i}", 20 + i * 7 % 45, NAMES[i * i % 5], "mf"[i // 3 % 2], DISEASES[(i * 5 + i // 4) % 4], i % 3)
    for i in range(120)
]
HEADER = ("id", "age", "city", "sex", "disease", "visits")
CONFIG = """[anonymize]
source = "patients.csv"
separator = ";"
identifiers = ["id"]
quasi_identifiers = ["age", "city", "sex"]
sensitive = ["disease"]
insensitive = ["visits"]
algorithm = "{algorithm}"
max_suppression = 0.05
{top}
[anonymize.columns]
age = {{ kind = "numeric" }}
{model}
{more}
"""
HIERARCHIES = """[anonymize.hierarchies]
age = { builder = "intervals", widths = [5, 10, 20], range = [0, 99] }
city = "city.csv"
sex = { builder = "flat" }
disease = { builder = "grouping", groups = [{ mild = ["flu", "fever"], grave = ["cancer", "HIV"] }] }
"""
LEVELS = '[anonymize.levels]\nvalues = [["flu", "fever"], ["cancer"], ["HIV"]]\nweights = [0.1, 0.4, 0.8]\n'
K = "[anonymize.model]\nk = 4\n"

Configure = Callable[..., str]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def certificate(folder: Path) -> dict[str, Any]:
    contents: dict[str, Any] = json.loads((folder / "certificate.json").read_text())
    return contents


def classes(published: list[dict[str, str]]) -> Counter[tuple[str, ...]]:
    return Counter((row["age"], row["city"], row["sex"]) for row in published)


NUMBERS = """[anonymize]
source = "patients.csv"
separator = ";"
identifiers = ["id"]
quasi_identifiers = ["age"]
sensitive = ["visits"]
insensitive = ["city", "sex", "disease"]
algorithm = "{algorithm}"
{top}
[anonymize.columns]
age = {{ kind = "numeric" }}
visits = {{ kind = "numeric" }}
{more}
"""
