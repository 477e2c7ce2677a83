"""Hiding sensitive rules: one call for all methods, which ends with a check by mining the result anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

from link.errors import ConfigurationError, InternalError
from mining.data.transactions import Transactions
from mining.hiding.border import Border
from mining.hiding.effects import Effects, Mined, effects_on_itemsets, effects_on_rules, is_sensitive, named
from mining.hiding.exact import Cells, Solved, Task, hide_exactly
from mining.hiding.heuristics import reduce_confidence, reduce_support, remove_rows
from mining.hiding.sensitive import Items, Scope, SensitiveRule, Thresholds, numbered, wholes, without
from mining.hiding.workspace import Workspace
from mining.itemsets import Itemsets
from mining.thresholds import minimum_count

Method = Literal["support", "confidence", "confidence-by-adding", "rows", "bba", "maxmin", "exact"]
METHODS: tuple[str, ...] = get_args(Method)


def checked_method(method: str) -> Method:
    """The method of that name.

    Raises:
        ConfigurationError: There is none.
    """
    if method not in METHODS:
        raise ConfigurationError(f'there is no method "{method}"; there are {", ".join(METHODS)}')
    return cast(Method, method)


@dataclass(frozen=True, slots=True)
class Sanitised:
    """Transactions in which sensitive rules are hidden.

    Attributes:
        transactions: The rows that may be released.
        method: By which they were made.
        deleted: How many cells were deleted.
        added: How many were added.
        removed: How many rows were taken out, among them those that had lost all their items.
        cells: How many cells there were.
        itemsets: Side effects on frequent itemsets.
        rules: Side effects on rules.
        solved: How the exact search ended.
    """

    transactions: Transactions
    method: Method
    deleted: int
    added: int
    removed: int
    cells: int
    itemsets: Effects
    rules: Effects
    solved: Solved | None = None

    @property
    def dissimilarity(self) -> float:
        """Diss: the share of cells that differ; those of rows that were taken out do."""
        return (self.deleted + self.added) / self.cells if self.cells else 0.0


def hide(
    data: Transactions,
    sensitive: Sequence[SensitiveRule],
    thresholds: Thresholds,
    *,
    method: Method = "bba",
    scope: Scope = "supersets",
    time_limit: float = 60.0,
) -> Sanitised:
    """Changes transactions so that no sensitive rule can be mined from them at the given thresholds.

    Args:
        data: The rows.
        sensitive: Rules, and itemsets, that nobody shall find.
        thresholds: From where on something is found. With lower ones it may be found.
        method: `support`, `bba`, `maxmin` and `exact` make the itemsets behind the rules infrequent by deleting cells;
            `rows` by taking whole rows out; `confidence` and `confidence-by-adding` make rules uncertain.
        scope: Whether a sensitive rule X → Y is meant alone, or also every rule with X on its left and Y on its
            right side (`supersets`).
        time_limit: Exact: seconds for the search that begins where the heuristics end.

    Raises:
        ConfigurationError: A parameter is wrong, or hiding an itemset by confidence is asked for.
        InputDataError: A rule names an item that is in no row.

    Example:
        >>> data = comine.Transactions.from_rows([["bread", "milk"]] * 3 + [["bread"]])
        >>> limits = comine.Thresholds(Decimal("0.5"), Decimal("0.5"))
        >>> hidden = comine.hide(data, [comine.SensitiveRule(("bread",), ("milk",))], limits, method="confidence")
        >>> hidden.transactions.n_rows, hidden.deleted
        (4, 2)
    """
    work, before, after, solved = sanitise(data, sensitive, thresholds, method, scope, time_limit)
    result = work.result()
    removed = data.n_rows - result.n_rows
    deleted = data.n_occurrences + len(work.added) - result.n_occurrences
    return Sanitised(
        result,
        method,
        deleted,
        len(work.added),
        removed,
        data.n_occurrences,
        effects_on_itemsets(before, after, sensitive),
        effects_on_rules(before, after, sensitive, scope),
        solved,
    )


def sanitise(
    data: Transactions,
    sensitive: Sequence[SensitiveRule],
    thresholds: Thresholds,
    method: Method,
    scope: Scope,
    time_limit: float = 60.0,
) -> tuple[Workspace, Mined, Mined, Solved | None]:
    """As `hide`, without the count of side effects: where itemsets are hidden, rules need not be looked at.

    Returns:
        The changed rows, what can be mined before and after, and how the exact search ended.
    """
    if method.startswith("confidence") and any(not rule.consequent for rule in sensitive):
        raise ConfigurationError('an itemset has no confidence; hide it by another method, such as "bba"')
    minimum_count(thresholds.min_support, data.n_rows)
    before, work = Mined(data, thresholds), Workspace(data)
    if method.startswith("confidence"):
        solved, after = None, _by_confidence(work, sensitive, thresholds, scope, add=method == "confidence-by-adding")
    else:
        solved = _by_support(work, data, sensitive, thresholds, before.table, method, time_limit)
        _settle(work, wholes(numbered(sensitive, data)), thresholds)
        after = Mined(work.result(), thresholds)
        if effects_on_itemsets(before, after, sensitive).still_found:
            raise InternalError("a sensitive rule can still be mined after it was hidden; nothing is released")
    return work, before, after, solved


def _by_support(
    work: Workspace,
    data: Transactions,
    sensitive: Sequence[SensitiveRule],
    thresholds: Thresholds,
    before: Itemsets,
    method: Method,
    time_limit: float,
) -> Solved | None:
    min_count = thresholds.least_count(data.n_rows)
    targets = wholes(numbered(sensitive, data))
    at = {item: index for index, item in enumerate(before.items)}
    names = [tuple(data.items[item] for item in items) for items in targets]
    inside = [tuple(at[name] for name in each) for each in names if all(name in at for name in each)]
    kept = without(before, inside)
    if method == "support":
        reduce_support(work, targets, min_count)
    elif method == "rows":
        remove_rows(work, targets, thresholds, Border(work, kept, min_count))
    elif method == "exact":
        known = _warm_start(data, targets, kept, min_count)
        return hide_exactly(work, Task(data, targets, _numbers(kept, data), min_count, known), time_limit)
    else:
        Border(work, kept, min_count).reduce_support(targets, "bba" if method == "bba" else "maxmin")
    return None


def _settle(work: Workspace, targets: list[Items], thresholds: Thresholds) -> None:
    """Rows that were emptied go, and the least count with them: what reaches it now is made rarer still."""
    while True:
        work.drop_emptied()
        min_count = thresholds.least_count(work.n_rows) if work.n_rows else 1
        if all(work.support(items) < min_count for items in targets):
            return
        reduce_support(work, targets, min_count)


def _warm_start(data: Transactions, targets: list[Items], kept: Itemsets, min_count: int) -> Cells:
    """The best of the heuristics' solutions: fewest lost itemsets, then fewest deletions."""
    best: tuple[int, int] | None = None
    cells: Cells = []
    for rule in ("bba", "maxmin", None):
        work = Workspace(data)
        if rule is None:
            reduce_support(work, targets, min_count)
        else:
            Border(work, kept, min_count).reduce_support(targets, "bba" if rule == "bba" else "maxmin")
        lost = sum(work.support(items) < min_count for items in _numbers(kept, data))
        if best is None or (lost, len(work.deleted)) < best:
            best, cells = (lost, len(work.deleted)), work.deleted
    return cells


def _numbers(itemsets: Itemsets, data: Transactions) -> list[Items]:
    """Itemsets by the item numbers of some transactions."""
    number = {item: index for index, item in enumerate(data.items)}
    return [tuple(sorted(number[item] for item in items)) for items, _ in itemsets.rows()]


def _by_confidence(
    work: Workspace, sensitive: Sequence[SensitiveRule], thresholds: Thresholds, scope: Scope, *, add: bool
) -> Mined:
    """Rules lose confidence one after the other; hiding one may leave another, so what is found is looked at again."""
    reduce_confidence(work, numbered(sensitive, work.data), thresholds, add=add)
    while True:
        work.drop_emptied()
        after = Mined(work.result(), thresholds)
        found = sorted(
            (named(rule, work.data.items) for rule in after.rules() if is_sensitive(rule, sensitive, scope)),
            key=lambda rule: (rule.antecedent, rule.consequent),
        )
        if not found:
            return after
        reduce_confidence(work, found, thresholds)
