"""FP-growth in its textbook form (Han, Pei & Yin 2000, "Mining frequent patterns without candidate generation")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

Itemset = frozenset[str]
Pattern = tuple[frozenset[str], int]


@dataclass(slots=True, eq=False)
class Node:
    """A node of the FP-tree: an item, how many transactions pass through it, and its place in the tree."""

    item: str
    parent: Node | None
    count: int = 0
    children: dict[str, Node] = field(default_factory=dict)


class Tree:
    """An FP-tree with its header table (section 2.1 of the paper).

    Args:
        weighted: Sets of items, each with the number of transactions that hold it.
        min_count: Least count of a frequent item; others are left out.
    """

    def __init__(self, weighted: Iterable[Pattern], min_count: int) -> None:
        rows = list(weighted)
        counts: dict[str, int] = {}
        for items, weight in rows:
            for item in items:
                counts[item] = counts.get(item, 0) + weight
        self.counts = {item: count for item, count in counts.items() if count >= min_count}
        self.header: dict[str, list[Node]] = {item: [] for item in self.counts}
        self._root = Node("", None)
        for items, weight in rows:
            frequent = sorted(items & self.counts.keys(), key=lambda item: (-self.counts[item], item))
            self._insert(frequent, weight)

    def _insert(self, items: list[str], weight: int) -> None:
        node = self._root
        for item in items:
            if item not in node.children:
                node.children[item] = Node(item, node)
                self.header[item].append(node.children[item])
            node = node.children[item]
            node.count += weight

    def prefix_paths(self, item: str) -> list[Pattern]:
        """The conditional pattern base of an item: what stands above each of its nodes, with the node's count."""
        paths: list[Pattern] = []
        for node in self.header[item]:
            above = set()
            ancestor = node.parent
            while ancestor is not None and ancestor.parent is not None:
                above.add(ancestor.item)
                ancestor = ancestor.parent
            paths.append((frozenset(above), node.count))
        return paths


def fp_growth(rows: Iterable[Iterable[str]], min_count: int) -> dict[Itemset, int]:
    """Mine all frequent itemsets.

    Args:
        rows: Transactions; a repeated item counts once.
        min_count: Least count of a frequent itemset, at least 1.

    Returns:
        The frequent itemsets and their counts.
    """
    found: dict[Itemset, int] = {}
    _grow(Tree(((frozenset(row), 1) for row in rows), min_count), frozenset(), min_count, found)
    return found


def _grow(tree: Tree, suffix: Itemset, min_count: int, found: dict[Itemset, int]) -> None:
    for item, count in tree.counts.items():
        itemset = suffix | {item}
        found[itemset] = count
        _grow(Tree(tree.prefix_paths(item), min_count), itemset, min_count, found)
