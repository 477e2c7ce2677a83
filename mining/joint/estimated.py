"""What perturbed or noisy mining has found, in one form that every learner computes alike, also under signatures.

The form is canonical JSON in UTF-8, with a newline at its end:

    {"items": […], "itemsets": [[[0, 3], count, deviation], …], "n_rows": N,
     "rules": null | [[[0], [3], confidence, low, high], …],
     "spent": {"bound": …, "delta": …, "epsilon": …, "local_epsilon": …, "model": …, "n": …}, "version": 1}

Items are in ascending order and occur; itemsets are by length, then by their items, which are numbered; counts and
deviations are raw, as estimated. Numbers are written with the fewest digits that give the same number again.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields
from itertools import groupby, pairwise
from typing import Any, Final

import numpy as np

from link.files.json_text import read_json
from mining.estimates import EstimatedItemsets
from mining.joint.spent import Spent
from mining.rules.estimated import EstimatedRule, EstimatedRules

VERSION: Final = 1


@dataclass(frozen=True, eq=False)
class Estimated:
    """Estimates with what they have cost.

    Attributes:
        itemsets: The itemsets, canonical.
        spent: What each record has spent.
        rules: The rules that were asked for, over these itemsets.
    """

    itemsets: EstimatedItemsets
    spent: Spent
    rules: EstimatedRules | None = None


@dataclass(frozen=True, eq=False, slots=True)
class EstimatedOutcome:
    """What comes out at one party.

    Attributes:
        n_rows: Records of all parties together; with noise where the job adds it to their number.
        spent: What the job has cost each record.
        estimated: What was found; None at a party that is not a learner.
    """

    n_rows: int
    spent: Spent
    estimated: Estimated | None


def pack_estimates(found: Estimated) -> bytes:
    """The canonical bytes of what was found."""
    itemsets = found.itemsets.canonical()
    number = {item: at for at, item in enumerate(itemsets.items)}
    content = {
        "version": VERSION,
        "n_rows": itemsets.n_rows,
        "items": itemsets.items,
        "itemsets": [
            [each, count, deviation]
            for sets, counts, deviations in itemsets.levels
            for each, count, deviation in zip(sets.tolist(), counts.tolist(), deviations.tolist(), strict=True)
        ],
        "rules": None
        if found.rules is None
        else [
            [
                [number[item] for item in rule.antecedent],
                [number[item] for item in rule.consequent],
                rule.confidence,
                rule.low,
                rule.high,
            ]
            for rule in found.rules.rules
        ],
        "spent": asdict(found.spent),
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def unpack_estimates(packed: bytes) -> Estimated:
    """What is in packed estimates, which may come from anybody.

    Raises:
        ValueError: The bytes are not exactly what `pack_estimates` gives for some estimates.
    """
    wrong = ValueError("these are not packed estimates of this version")
    try:
        content = read_json(packed, parse_constant=_refuse)
        if content["version"] != VERSION:
            raise wrong
        itemsets = _itemsets(content)
        found = Estimated(itemsets, _spent(content["spent"]), _rules(content["rules"], itemsets))
        if pack_estimates(found) != packed:
            raise wrong
    except (KeyError, TypeError, IndexError, AttributeError, OverflowError, RecursionError, UnicodeError):
        raise wrong from None
    return found


def _refuse(constant: str) -> float:
    raise ValueError(f"a number cannot be {constant}")


def _itemsets(content: dict[str, Any]) -> EstimatedItemsets:
    items, n_rows = tuple(content["items"]), content["n_rows"]
    if not all(isinstance(item, str) for item in items) or type(n_rows) is not int or not 0 <= n_rows < 1 << 63:
        raise ValueError("the items or the number of rows cannot be")
    levels = []
    for length, rows in groupby(content["itemsets"], key=lambda row: len(row[0])):
        listed = list(rows)
        if not length or not all(type(item) is int and 0 <= item < len(items) for row in listed for item in row[0]):
            raise ValueError("an itemset is empty, or names an item that does not exist")
        if not all(_is_number(row[1]) and _is_number(row[2]) and row[2] >= 0 for row in listed):
            raise ValueError("a count or a deviation cannot be")
        sets = np.array([row[0] for row in listed], np.int32)
        counts, deviations = (np.array([row[at] for row in listed], np.float64) for at in (1, 2))
        if len({tuple(row[0]) for row in listed}) < len(listed) or (np.diff(sets, axis=1) <= 0).any():
            raise ValueError("an itemset is there twice, or an item twice in it")
        levels.append((sets, counts, deviations))
    return EstimatedItemsets(items, levels, n_rows)


def _rules(content: list[list[Any]] | None, itemsets: EstimatedItemsets) -> EstimatedRules | None:
    if content is None:
        return None
    known = {tuple(each) for sets, _, _ in itemsets.levels for each in sets.tolist()}
    found = []
    for antecedent, consequent, confidence, low, high in content:
        if tuple(antecedent) not in known or tuple(sorted((*antecedent, *consequent))) not in known:
            raise ValueError("a rule is over an itemset that does not exist")
        if not antecedent or not consequent or not all(_is_number(x) and 0 <= x <= 1 for x in (confidence, low, high)):
            raise ValueError("a rule has an empty side, or a confidence that cannot be")
        named = [tuple(itemsets.items[item] for item in side) for side in (antecedent, consequent)]
        found.append(EstimatedRule(named[0], named[1], confidence, low, high))
    orders = [rule.order() for rule in found]
    if any(a >= b for a, b in pairwise(orders)):
        raise ValueError("the rules are not distinct or not in ascending order")
    return EstimatedRules(itemsets, tuple(found))


def _spent(content: dict[str, Any]) -> Spent:
    if set(content) != {field.name for field in fields(Spent)}:
        raise ValueError("what was spent is not said")
    numbers = [content["epsilon"], content["delta"]]
    numbers += [] if content["local_epsilon"] is None else [content["local_epsilon"]]
    n = content["n"]
    if not all(_is_number(x) and x >= 0 for x in numbers) or not (n is None or (type(n) is int and n >= 1)):
        raise ValueError("what was spent cannot be")
    if not isinstance(content["model"], str) or not isinstance(content["bound"], str):
        raise ValueError("what was spent is not said")
    return Spent(**content)


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]
