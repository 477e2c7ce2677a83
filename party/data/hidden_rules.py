"""Rules that no joint job shall find in a party's own rows: hidden in what the party contributes."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from jobs.spec.toml import TomlTable
from jobs.spec.values import Fraction, Support
from link.errors import ConfigurationError
from mining.data.transactions import Transactions
from mining.hiding.hide import Method, sanitise
from mining.hiding.sensitive import Scope, SensitiveRule, Thresholds


def _rule(value: Any) -> Any:
    """A rule in one text, `bread, milk -> beer`; a table says the same for items with commas or arrows."""
    if not isinstance(value, str):
        return value
    try:
        rule = SensitiveRule.parse(value)
    except ConfigurationError as error:
        raise ValueError(error.message) from None
    return {"antecedent": list(rule.antecedent), "consequent": list(rule.consequent)}


class RuleSection(TomlTable):
    """A sensitive rule; without a consequent, an itemset.

    Attributes:
        antecedent: The items of its left side.
        consequent: Those of its right side.
    """

    antecedent: tuple[str, ...] = Field(min_length=1)
    consequent: tuple[str, ...] = ()


class HidingSection(TomlTable):
    """The `[dataset.hiding]` table.

    Attributes:
        rules: What nobody shall find in these rows.
        min_support: From where on somebody would: a fraction of this party's rows, or a count.
        min_confidence: Of rules.
        method: As of `mining.hiding.hide`; `exact` takes long on every change of the data.
        scope: Whether a rule covers those that say more on either side, too.
    """

    rules: tuple[Annotated[RuleSection, BeforeValidator(_rule)], ...] = Field(min_length=1, max_length=1000)
    min_support: Support
    min_confidence: Fraction = Decimal(0)
    method: Method = "bba"
    scope: Scope = "supersets"


def without_rules(data: Transactions, hiding: HidingSection) -> Transactions:
    """The rows as this party contributes them. A rule with an item that no row has is hidden already.

    Raises:
        ConfigurationError: The thresholds or the method do not fit the rules.
    """
    known = set(data.items)
    rules = [SensitiveRule(rule.antecedent, rule.consequent) for rule in hiding.rules]
    present = [rule for rule in rules if known.issuperset((*rule.antecedent, *rule.consequent))]
    thresholds = Thresholds(hiding.min_support, hiding.min_confidence)
    if not present or (isinstance(hiding.min_support, int) and hiding.min_support > data.n_rows):
        return data
    work, *_ = sanitise(data, present, thresholds, hiding.method, hiding.scope)
    return work.result()
