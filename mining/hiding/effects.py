"""Side effects of hiding: what is lost, what appears, what was changed.

    HF    hiding failure: the share of sensitive patterns that can still be mined
    MC    misses cost: the share of other patterns that can no longer be mined
    AP    artefactual patterns: the share of what can be mined now that could not be mined before
    Diss  dissimilarity: the share of cells that were changed

Patterns are itemsets, and again rules. A frequent itemset that contains a sensitive one has to vanish with it, so it is
no side effect.

Source: Verykios et al., "State-of-the-art in privacy preserving data mining", SIGMOD Record 33(1), 2004; Oliveira and
Zaïane, "Privacy preserving frequent itemset mining", 2002.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from link.errors import ConfigurationError
from mining.data.transactions import Transactions
from mining.hiding.sensitive import Hidden, Scope, SensitiveRule, Thresholds
from mining.itemsets import Itemsets
from mining.limits import EnumerationLimit
from mining.miner import frequent_itemsets
from mining.rules.association import association_rules
from mining.rules.growth import MAX_RULES

Itemset = frozenset[str]


class Rule(NamedTuple):
    """A rule by its items."""

    antecedent: Itemset
    consequent: Itemset


@dataclass(frozen=True, slots=True)
class Effects:
    """What hiding did to one kind of patterns.

    Attributes:
        sensitive: How many sensitive patterns could be mined before.
        still_found: How many of them still can.
        others: How many other patterns could be mined before.
        lost: How many of these no longer can.
        found: How many patterns can be mined now.
        ghosts: How many of these could not be mined before.
    """

    sensitive: int
    still_found: int
    others: int
    lost: int
    found: int
    ghosts: int

    @property
    def hiding_failure(self) -> float:
        """HF."""
        return _share(self.still_found, self.sensitive)

    @property
    def misses_cost(self) -> float:
        """MC."""
        return _share(self.lost, self.others)

    @property
    def artefactual(self) -> float:
        """AP."""
        return _share(self.ghosts, self.found)

    @classmethod
    def between(
        cls, before: set[Itemset] | set[Rule], after: set[Itemset] | set[Rule], is_sensitive: object
    ) -> Effects:
        """Between what could be mined before and what can be mined after, with a test for sensitive patterns."""
        assert callable(is_sensitive)
        sensitive = {each for each in before if is_sensitive(each)}
        others = before - sensitive
        return cls(
            sensitive=len(sensitive),
            still_found=sum(1 for each in after if is_sensitive(each)),
            others=len(others),
            lost=len(others - after),
            found=len(after),
            ghosts=len(after - before),
        )


class Mined:
    """What somebody finds in transactions at given thresholds, mined once.

    Args:
        data: The transactions.
        thresholds: From where on a pattern is found.

    Raises:
        ConfigurationError: More is found than memory allows.
    """

    def __init__(self, data: Transactions, thresholds: Thresholds) -> None:
        try:
            least = thresholds.least_count(data.n_rows) if data.n_rows else 0
            self.table: Itemsets = frequent_itemsets(data, least) if data.n_rows else _none()
        except EnumerationLimit as error:
            raise ConfigurationError(
                f"more than {error.limit} itemsets are frequent, among which nothing can be hidden; raise min_support"
            ) from None
        self._thresholds = thresholds

    def itemsets(self) -> set[Itemset]:
        """The frequent itemsets."""
        return {frozenset(items) for items, _ in self.table.rows()}

    def rules(self) -> set[Rule]:
        """The rules with enough confidence.

        Raises:
            ConfigurationError: There are too many of them.
        """
        try:
            found = association_rules(self.table.canonical(), self._thresholds.min_confidence).to_arrow()
        except ConfigurationError:  # its advice is for jobs, which may ask for some rules only
            raise ConfigurationError(
                f"more than {MAX_RULES} rules reach these thresholds, too many to measure what hiding does to them; "
                "raise min_confidence or min_support"
            ) from None
        return {
            Rule(frozenset(left), frozenset(right))
            for left, right in zip(found["antecedent"].to_pylist(), found["consequent"].to_pylist(), strict=True)
        }


def effects_on_itemsets(before: Mined, after: Mined, sensitive: Sequence[SensitiveRule]) -> Effects:
    """On itemsets: those with all items of a sensitive rule count as sensitive."""
    wholes = [frozenset((*rule.antecedent, *rule.consequent)) for rule in sensitive]

    def holds(itemset: Itemset) -> bool:
        return any(whole <= itemset for whole in wholes)

    return Effects.between(before.itemsets(), after.itemsets(), holds)


def effects_on_rules(before: Mined, after: Mined, sensitive: Sequence[SensitiveRule], scope: Scope) -> Effects:
    """On rules."""
    return Effects.between(before.rules(), after.rules(), lambda rule: is_sensitive(rule, sensitive, scope))


def is_sensitive(rule: Rule, sensitive: Iterable[SensitiveRule], scope: Scope) -> bool:
    """Whether a rule is one of the sensitive ones; with `supersets` also where it says more on either side."""
    for each in sensitive:
        left, right = frozenset(each.antecedent), frozenset(each.consequent)
        if not right:
            if left <= rule.antecedent | rule.consequent:
                return True
        elif (scope == "rule" and (left, right) == rule) or (
            scope == "supersets" and left <= rule.antecedent and right <= rule.consequent
        ):
            return True
    return False


def named(rule: Rule, items: Sequence[str]) -> Hidden:
    """A rule by item numbers."""
    number = {item: index for index, item in enumerate(items)}
    left, right = (tuple(sorted(number[item] for item in side)) for side in rule)
    return Hidden(left, right)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _none() -> Itemsets:
    return Itemsets((), [], 0)
