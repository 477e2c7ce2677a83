"""Decision trees grown level by level from counts alone: ID3, and C4.5 without pruning.

A node needs of its rows how many there are of each class and value: a histogram for each attribute. Histograms add up
over any partition of the rows, so the growth does not see rows; a holder of rows counts them by `Growth.histograms`.

Steps, for all nodes of a level at once:
    offer   a node that may be split offers the attributes that can still divide it
    count   histograms of these are taken over the rows that reach the node
    grow    the best split is chosen (`splits`); the histogram shows how many rows of each class reach each branch

A node stays a leaf where its rows are of one class, are fewer than twice `min_rows`, lie at the greatest depth, or
where no split gains anything. A leaf's class is the most frequent one, the first of several; that of its parent where
it has no rows.

Source: Quinlan, "Induction of Decision Trees", Machine Learning 1(1), 1986 (ID3); Quinlan, C4.5: Programs for Machine
Learning, 1993, chapter 2 (cuts of numbers, gain ratio, least rows of a branch).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from link.errors import ConfigurationError, shareable
from mining.models.attributes import Categorical, Codes, Discrete, LabelledRows, check_names
from mining.models.splits import WHOLE, Criterion, Histogram, Offered, Split, best_split


@dataclass(frozen=True, slots=True)
class TreeParameters:
    """What a tree is to be.

    Attributes:
        target: The class.
        attributes: By which rows may be divided, one or more.
        criterion: `gain` chooses as ID3 does, `gain-ratio` as C4.5.
        min_rows: At least two branches of a split have so many rows or more; a node with fewer than twice as many is
            not looked at.
        max_depth: The most splits on the way to a leaf.
        max_nodes: The most nodes that are looked at.

    Raises:
        ConfigurationError: A column is named twice or none is, or a number is too small.
    """

    target: Categorical
    attributes: tuple[Discrete, ...]
    criterion: Criterion = "gain-ratio"
    min_rows: int = 2
    max_depth: int | None = None
    max_nodes: int = 10_000

    def __post_init__(self) -> None:
        check_names(self.target, *self.attributes)
        if not self.attributes:
            raise ConfigurationError("a tree takes one attribute or more")
        if self.min_rows < 1 or self.max_nodes < 1 or (self.max_depth is not None and self.max_depth < 0):
            raise ConfigurationError("min_rows and max_nodes must be 1 or more, max_depth 0 or more")

    @property
    def max_counts(self) -> int:
        """The most counts that a tree takes."""
        return self.max_nodes * self.target.size * sum(each.size for each in self.attributes)


@dataclass(eq=False, slots=True)
class Node:
    """A node, in its final form once the growth is over.

    Attributes:
        counts: Rows by class.
        label: The class that it predicts.
        split: How it is divided; None at a leaf.
        children: By branch: each code's, or that up to the cut and the one above.
    """

    counts: tuple[int, ...]
    label: int
    split: Split | None = None
    children: tuple[Node, ...] = ()


class Condition(NamedTuple):
    """What rows on one branch have in common: the code itself, or its side of a cut, 0 up to the cut and 1 above."""

    split: Split
    branch: int


class Offer(NamedTuple):
    """A histogram that is wanted.

    Attributes:
        place: Of the node among the open ones.
        attribute: Its number.
        first: The first code of interest.
        size: How many codes are.
    """

    place: int
    attribute: int
    first: int
    size: int


class OpenNode(NamedTuple):
    """A node that may yet be split, and how rows come to it."""

    node: Node
    path: tuple[Condition, ...]


@dataclass(frozen=True, eq=False, slots=True)
class DecisionTree:
    """A tree.

    Attributes:
        task: What it is of.
        root: Its first node.
    """

    task: TreeParameters
    root: Node

    def nodes(self) -> Iterator[tuple[int, Node]]:
        """All nodes with their depth, a parent before its children."""
        left = [(0, self.root)]
        while left:
            depth, node = left.pop()
            yield depth, node
            left += [(depth + 1, child) for child in reversed(node.children)]

    def predict(self, cells: Sequence[Codes]) -> Codes:
        """The class of each row.

        Args:
            cells: By attribute the rows' codes.
        """
        found = np.zeros(len(cells[0]), np.int64)
        left = [(self.root, np.arange(len(found)))]
        while left:
            node, rows = left.pop()
            if node.split is None:
                found[rows] = node.label
                continue
            branches = branches_of(node.split, cells[node.split.attribute][rows])
            left += [(child, rows[branches == branch]) for branch, child in enumerate(node.children)]
        return found

    def lines(self) -> list[str]:
        """The tree as text: a line for each branch, deeper ones further in."""
        return [f"{self._label_and_counts(self.root)}", *self._below(self.root, "")]

    def _below(self, node: Node, indent: str) -> list[str]:
        if node.split is None:
            return []
        attribute = self.task.attributes[node.split.attribute]
        found = []
        for branch, child in enumerate(node.children):
            found.append(
                f"{indent}{condition_text(attribute, Condition(node.split, branch))}: {self._label_and_counts(child)}"
            )
            found += self._below(child, indent + "  ")
        return found

    def _label_and_counts(self, node: Node) -> str:
        return f"{self.task.target.values[node.label]} {list(node.counts)}"


@dataclass(frozen=True, eq=False, slots=True)
class Level:
    """How the open nodes of a level were divided.

    Attributes:
        attribute: By node the number of the attribute that divides it; −1 where none does, and behind the last.
        cut: By node that of its split.
        start: By node where its branches are in `places`.
        places: By branch its place among the open nodes of the next level; −1 for a leaf.
    """

    attribute: NDArray[np.int64]
    cut: NDArray[np.int64]
    start: NDArray[np.int64]
    places: NDArray[np.int64]

    @classmethod
    def of(cls, routes: Sequence[tuple[Split, NDArray[np.int64]] | None]) -> Level:
        """From each node's split, with its branches' places."""
        splits = [Split(-1, WHOLE) if route is None else route[0] for route in routes]
        branches = [np.zeros(0, np.int64) if route is None else route[1] for route in routes]
        start = np.cumsum([0, *(len(places) for places in branches)])[:-1]
        attribute = np.array([*(split.attribute for split in splits), -1], np.int64)
        cut = np.array([split.cut for split in splits], np.int64)
        return cls(attribute, cut, start, np.concatenate([np.zeros(0, np.int64), *branches]))

    def below(self, place: NDArray[np.int64], cells: Sequence[Codes]) -> NDArray[np.int64]:
        """Where rows are among the open nodes of the next level; −1 at a leaf.

        Args:
            place: Where they are among those of this one.
            cells: By attribute the rows' codes.
        """
        found, asked = np.full_like(place, -1), self.attribute[place]
        for number in np.unique(self.attribute[self.attribute >= 0]).tolist():
            here = np.flatnonzero(asked == number)
            node, codes = place[here], cells[number][here]
            branch = np.where(self.cut[node] == WHOLE, codes, codes > self.cut[node])
            found[here] = self.places[self.start[node] + branch]
        return found


@dataclass(frozen=True, eq=False, slots=True)
class Histograms:
    """A kernel: the wanted histograms over some rows, flat, which add up over any rows.

    Attributes:
        n_classes: How many classes there are.
        levels: How the tree has grown so far.
        n_open: How many nodes are open.
        offers: What is wanted.
    """

    n_classes: int
    levels: tuple[Level, ...]
    n_open: int
    offers: tuple[Offer, ...]

    def __call__(self, rows: LabelledRows) -> NDArray[np.int64]:
        """The histograms; rows go down the tree from its root."""
        place = np.zeros(rows.n_rows, np.int64)
        for level in self.levels:
            place = level.below(place, rows.cells)
        order = np.argsort(place, kind="stable")
        edges = np.searchsorted(place[order], np.arange(self.n_open + 1))
        found = [np.zeros(0, np.int64)]
        for offer in self.offers:
            here = order[edges[offer.place] : edges[offer.place + 1]]
            pairs = (rows.cells[offer.attribute][here] - offer.first) * self.n_classes + rows.classes[here]
            found.append(np.bincount(pairs, minlength=offer.size * self.n_classes))
        return np.concatenate(found)


class Growth:
    """A tree while it grows: the same at all who have the same histograms.

    Attributes:
        task: What the tree is to be.
        root: Its first node.
        open: The nodes of this level that may be split.
        offers: The histograms that are wanted next, none when the tree is whole.
        levels: How each level was divided, the first one first.
    """

    def __init__(self, task: TreeParameters, counts: Sequence[int]) -> None:
        """Begins with one node.

        Args:
            task: What the tree is to be.
            counts: Of all rows, by class.
        """
        self.task = task
        self.root = leaf(counts, parent_label=0)
        self.open = [OpenNode(self.root, ())] if self._may_be_split(self.root, 0) else []
        self.offers = self._offers()
        self.levels: list[Level] = []
        self._looked_at = len(self.open)

    @property
    def tree(self) -> DecisionTree:
        """What has grown."""
        return DecisionTree(self.task, self.root)

    def histograms(self) -> Histograms:
        """What counts the wanted histograms over a holder's rows."""
        return Histograms(self.task.target.size, tuple(self.levels), len(self.open), tuple(self.offers))

    def grow(self, counts: NDArray[np.int64]) -> None:
        """Divides the open nodes.

        Args:
            counts: The wanted histograms over all rows, one after the other, flat.

        Raises:
            ConfigurationError: There are more than `max_nodes` nodes to be looked at.
            ValueError: No rows have such histograms.
        """
        offered: list[list[Offered]] = [[] for _ in self.open]
        stop = 0
        for offer in self.offers:
            start, stop = stop, stop + offer.size * self.task.target.size
            histogram = counts[start:stop].reshape(offer.size, self.task.target.size)
            if (histogram < 0).any() or tuple(histogram.sum(axis=0).tolist()) != self.open[offer.place].node.counts:
                raise ValueError("the counts of an attribute's values do not add up to those of the classes")
            is_cut = not isinstance(self.task.attributes[offer.attribute], Categorical)
            offered[offer.place].append(Offered(offer.attribute, offer.first, is_cut, histogram))
        level, self.open = self.open, []
        routes: list[tuple[Split, NDArray[np.int64]] | None] = []
        for (node, path), known in zip(level, offered, strict=True):
            split = best_split(known, self.task.criterion, self.task.min_rows)
            routes.append(None if split is None else (split, self._divide(node, path, split, known)))
        self.levels.append(Level.of(routes))
        self._looked_at += len(self.open)
        if self._looked_at > self.task.max_nodes:
            raise shareable(
                ConfigurationError(
                    f"the tree has more than {self.task.max_nodes} nodes to look at; raise min_rows, set max_depth, or "
                    "raise max_nodes"
                )
            )
        self.offers = self._offers()

    def _divide(self, node: Node, path: tuple[Condition, ...], split: Split, known: list[Offered]) -> NDArray[np.int64]:
        """Gives a node its children; returns their places among the open nodes, −1 for a leaf."""
        (chosen,) = (each for each in known if each.attribute == split.attribute)
        branches: Histogram = chosen.histogram
        if split.cut != WHOLE:
            left = branches[: split.cut - chosen.first + 1].sum(axis=0)
            branches = np.stack([left, branches.sum(axis=0) - left])
        node.split = split
        node.children = tuple(leaf(row, node.label) for row in branches.tolist())
        places = np.full(len(node.children), -1, np.int64)
        for branch, child in enumerate(node.children):
            if self._may_be_split(child, len(path) + 1):
                places[branch] = len(self.open)
                self.open.append(OpenNode(child, (*path, Condition(split, branch))))
        return places

    def _may_be_split(self, node: Node, depth: int) -> bool:
        too_deep = self.task.max_depth is not None and depth >= self.task.max_depth
        return not too_deep and sum(map(bool, node.counts)) > 1 and sum(node.counts) >= 2 * self.task.min_rows

    def _offers(self) -> list[Offer]:
        found = []
        for place, (_, path) in enumerate(self.open):
            for number, attribute in enumerate(self.task.attributes):
                first, last = 0, attribute.size - 1
                for (split_by, cut), branch in path:
                    if split_by == number:
                        if cut == WHOLE:
                            first = last = branch
                        elif branch:
                            first = max(first, cut + 1)
                        else:
                            last = min(last, cut)
                if last > first:
                    found.append(Offer(place, number, first, last - first + 1))
        return found


def class_counts(rows: LabelledRows, target: Categorical) -> NDArray[np.int64]:
    """How many rows there are of each class."""
    return np.bincount(rows.classes, minlength=target.size).astype(np.int64)


def branches_of(split: Split, codes: Codes) -> Codes:
    """The branch that each row goes into."""
    return codes if split.cut == WHOLE else (codes > split.cut).astype(np.int64)


def condition_text(attribute: Discrete, condition: Condition) -> str:
    """A condition as it is written: column = value, column < cut, or column >= cut."""
    (_, cut), branch = condition
    if isinstance(attribute, Categorical):
        return f"{attribute.name} = {attribute.values[branch]}"
    return f"{attribute.name} {'>=' if branch else '<'} {attribute.cuts[cut]}"


def leaf(counts: Sequence[int], parent_label: int) -> Node:
    """A node that is not divided, or not yet.

    Args:
        counts: Its rows by class.
        parent_label: What it predicts where it has none.
    """
    most = max(range(len(counts)), key=counts.__getitem__)  # the first of several
    return Node(tuple(int(count) for count in counts), most if any(counts) else parent_label)
