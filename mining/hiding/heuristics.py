"""Heuristic hiding: lower the support of sensitive itemsets, or the confidence of sensitive rules, cell by cell.

Source: Verykios, Elmagarmid, Bertino, Saygin and Dasseni, "Association rule hiding", IEEE TKDE 16(4), 2004: the
deletion of items of the whole rule (their algorithms 2.a), of items of its consequent (1.b), and the addition of its
antecedent to rows that hold a part of it (1.a); Aggarwal, Data Mining, 2015, section 20.4, for whole rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mining.hiding.border import Border
from mining.hiding.sensitive import Hidden, Items, Thresholds
from mining.hiding.workspace import Workspace


def reduce_support(work: Workspace, sensitive: Sequence[Items], min_count: int) -> None:
    """Makes itemsets infrequent: from the shortest rows that hold one, its most frequent item is deleted.

    Of rows of one length the first is taken, of items of one support the last; one deletion a row is enough.

    Args:
        work: The rows.
        sensitive: The itemsets.
        min_count: From where on one is frequent.
    """
    for items in sensitive:
        rows = work.shortest(work.holding(items))
        supports = {item: int(np.count_nonzero(work.column(item))) for item in items}
        for row in rows[: max(0, len(rows) - min_count + 1)].tolist():
            victim = max(items, key=lambda item: (supports[item], item))
            work.delete(row, victim)
            supports[victim] -= 1


def reduce_confidence(work: Workspace, rules: Sequence[Hidden], thresholds: Thresholds, *, add: bool = False) -> None:
    """Makes rules uncertain, or infrequent where that comes first.

    Deleting an item of Y from a row with X and Y lowers what both have in common, not X. Adding the rest of X to rows
    that hold some of it and not all of Y raises X alone; where no such row is left, items of Y are deleted.

    Args:
        work: The rows.
        rules: With a consequent each.
        thresholds: From where on a rule is found.
        add: Whether to add antecedents first.
    """
    min_count = thresholds.least_count(work.n_rows)
    for rule in rules:
        both, antecedent = work.support(rule.whole), work.support(rule.antecedent)
        if add:
            lacking = work.released & ~work.holding(rule.antecedent) & ~work.holding(rule.consequent)
            held = np.sum([work.column(item) for item in rule.antecedent], axis=0)
            partial = np.flatnonzero(lacking & ((held > 0) | (len(rule.antecedent) == 1)))
            most_held_first = partial[np.lexsort((work.lengths[partial], -held[partial]))]
            gone = set(work.deleted)
            for row in most_held_first.tolist():
                if any((row, item) in gone for item in rule.antecedent):
                    continue  # what was deleted for another rule stays away
                if both < min_count or not thresholds.reaches(both, antecedent):
                    break
                for item in rule.antecedent:
                    if not work.column(item)[row]:
                        work.add(row, item)
                antecedent += 1
        supports = {item: int(np.count_nonzero(work.column(item))) for item in rule.consequent}
        for row in work.shortest(work.holding(rule.whole)).tolist():
            if both < min_count or not thresholds.reaches(both, antecedent):
                break
            victim = max(rule.consequent, key=lambda item: (supports[item], item))
            work.delete(row, victim)
            supports[victim] -= 1
            both -= 1


def remove_rows(work: Workspace, sensitive: Sequence[Items], thresholds: Thresholds, border: Border) -> None:
    """Makes itemsets infrequent by taking whole rows out.

    Fewer rows lower min_support · n as well, so the least count is found again after each. The row that holds the most
    of the itemsets that are still frequent goes first; of several, the one whose loss the border minds least.

    Args:
        work: The rows.
        sensitive: The itemsets.
        thresholds: From where on one is frequent.
        border: What is to be kept frequent.
    """
    holding = np.array([work.holding(items) for items in sensitive])
    rows = np.flatnonzero(holding.any(axis=0))
    holding, left, lengths = holding[:, rows], np.ones(len(rows), bool), work.lengths[rows]
    supports, frequent = holding.sum(axis=1), np.zeros(len(sensitive), bool)
    gain, n_rows = np.zeros(len(rows), np.int64), work.n_rows
    costs = border.row_costs(rows)
    while n_rows:
        now = supports >= thresholds.least_count(n_rows)
        if not now.any():
            break
        gain += holding[now & ~frequent].sum(axis=0) - holding[frequent & ~now].sum(axis=0)
        frequent = now
        best = np.flatnonzero(left & (gain == gain[left].max()))
        at = int(best[np.lexsort((lengths[best], costs.of_rows[best]))[0]])
        left[at] = False
        supports -= holding[:, at]
        costs.lose(at)
        work.remove(int(rows[at]))
        n_rows -= 1
