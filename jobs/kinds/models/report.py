"""What the report shows of a model: shares of classes and values, the picture of a tree, or centroids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from jobs.kinds.models.model import Model
from jobs.report import text
from mining.models.attributes import Numeric
from mining.models.decision_tree import Condition, DecisionTree, Node, condition_text
from mining.models.kmeans import Clusters, KMeansParameters
from mining.models.naive_bayes import NaiveBayes

_VALUES: Final = 25  # of an attribute, the most frequent ones
_LEAVES: Final = 60  # of a picture
_ACROSS: Final = 250  # from a node to its children
_DOWN: Final = 44  # from a leaf to the next
_BAR: Final = 90
_CHARACTERS: Final = 30  # of a text in the picture


class Share(NamedTuple):
    """A class among the rows of a node: where its part of the bar begins, how long it is, and how dark."""

    start: float
    length: float
    shade: float


class Drawn(NamedTuple):
    """A node of the picture.

    Attributes:
        x: Its left edge.
        y: Its middle.
        when: Which rows come to it.
        label: The class that it predicts.
        rows: How many it has.
        caption: Rows of each class, in words.
        shares: Of its bar.
        parent: Where the line to it begins; None at the first node.
        more: Nodes below it that are not drawn.
    """

    x: float
    y: float
    when: str
    label: str
    rows: int
    caption: str
    shares: list[Share]
    parent: tuple[float, float] | None
    more: int


def model_section(model: Model) -> dict[str, Any]:
    """What `templates/model.html.j2` shows."""
    match model.learnt:
        case NaiveBayes() as bayes:
            return {"kind": "bayes", **_bayes(bayes, model.n_rows)}
        case DecisionTree() as tree:
            return {"kind": "tree", **_tree(tree)}
        case Clusters() as clusters:
            assert isinstance(model.task, KMeansParameters)
            return {"kind": "clusters", **_clusters(clusters, model.task)}


# -- naive Bayes ------------------------------------------------------------------------------------------------------
def _bayes(bayes: NaiveBayes, n_rows: int) -> dict[str, Any]:
    task, sizes = bayes.task, bayes.class_counts.tolist()
    tables, numbers = iter(bayes.value_counts), iter(zip(bayes.means.tolist(), bayes.variances.tolist(), strict=True))
    discrete, numeric = [], []
    for attribute in task.attributes:
        if isinstance(attribute, Numeric):
            means, variances = next(numbers)
            numeric.append((attribute.name, [(mean, each**0.5) for mean, each in zip(means, variances, strict=True)]))
            continue
        counts = next(tables).T
        often = sorted(range(attribute.size), key=lambda place, of=counts: (-of[place].sum(), place))[:_VALUES]  # type: ignore[misc]
        values = [
            (
                attribute.values[place],
                [
                    (count, count / size if size else 0.0)
                    for count, size in zip(counts[place].tolist(), sizes, strict=True)
                ],
            )
            for place in sorted(often)
        ]
        discrete.append((attribute.name, attribute.size, values))
    most = max(sizes) or 1
    return {
        "target": task.target.name,
        "classes": task.target.values,
        "sizes": [
            (name, size, size / n_rows, size / most) for name, size in zip(task.target.values, sizes, strict=True)
        ],
        "discrete": discrete,
        "numeric": numeric,
    }


# -- trees ------------------------------------------------------------------------------------------------------------
def _tree(tree: DecisionTree) -> dict[str, Any]:
    depth = _deepest(tree)
    nodes = list(_Picture(tree, depth).nodes())
    return {
        "target": tree.task.target.name,
        "classes": [(name, _shade(place, tree)) for place, name in enumerate(tree.task.target.values)],
        "nodes": nodes,
        "width": max(node.x for node in nodes) + _ACROSS,
        "height": max(node.y for node in nodes) + _DOWN,
        "bar": _BAR,
        "number": sum(1 for _ in tree.nodes()),
        "leaves": sum(node.split is None for _, node in tree.nodes()),
        "depth": max(at for at, _ in tree.nodes()),
        "drawn": depth,
    }


def _deepest(tree: DecisionTree) -> int:
    """Down to which depth the picture has no more than so many leaves."""
    inner: dict[int, int] = {}
    for depth, node in tree.nodes():
        inner[depth] = inner.get(depth, 0) + max(0, len(node.children) - 1)
    leaves = 1
    for depth in range(len(inner)):
        leaves += inner[depth]
        if leaves > _LEAVES:
            return max(1, depth)
    return len(inner) - 1


class _Picture:
    """Nodes from left to right, leaves one below the other, a parent in the middle of its children."""

    def __init__(self, tree: DecisionTree, depth: int) -> None:
        self._tree, self._depth = tree, depth
        self._y: dict[int, float] = {}
        free = 0
        for at, node in reversed(list(tree.nodes())):  # children before their parents, the lowest first
            if at > depth:
                continue
            if node.children and at < depth:
                ys = [self._y[id(child)] for child in node.children]
                self._y[id(node)] = (ys[0] + ys[-1]) / 2
            else:
                free += 1
                self._y[id(node)] = -free * _DOWN
        self._lift = free * _DOWN + _DOWN

    def nodes(self) -> Iterator[Drawn]:
        """All that are drawn, a parent before its children."""
        waiting: list[tuple[int, Node, str, Node | None]] = [(0, self._tree.root, "", None)]
        while waiting:
            at, node, when, parent = waiting.pop()
            children = []
            if node.split is not None and at < self._depth:
                attribute = self._tree.task.attributes[node.split.attribute]
                children = [
                    (at + 1, child, condition_text(attribute, Condition(node.split, branch)), node)
                    for branch, child in enumerate(node.children)
                ]
            waiting += reversed(children)
            names = self._tree.task.target.values
            yield Drawn(
                x=at * _ACROSS + 8,
                y=self._y[id(node)] + self._lift,
                when=_short(when),
                label=_short(names[node.label]),
                rows=sum(node.counts),
                caption=", ".join(f"{text.visible(name)} {n:,}" for name, n in zip(names, node.counts, strict=True)),
                shares=list(self._shares(node)),
                parent=None if parent is None else ((at - 1) * _ACROSS + 8 + _BAR, self._y[id(parent)] + self._lift),
                more=0 if children else _below(node),
            )

    def _shares(self, node: Node) -> Iterator[Share]:
        rows, start = sum(node.counts) or 1, 0.0
        for place, count in enumerate(node.counts):
            length = _BAR * count / rows
            yield Share(start, length, _shade(place, self._tree))
            start += length


def _below(node: Node) -> int:
    found, waiting = 0, list(node.children)
    while waiting:
        child = waiting.pop()
        found += 1
        waiting += child.children
    return found


def _shade(place: int, tree: DecisionTree) -> float:
    """How dark a class is: the first darkest."""
    return 1 - 0.85 * place / max(1, tree.task.target.size - 1)


def _short(words: str) -> str:
    shown = text.visible(words) if words else ""
    return shown if len(shown) <= _CHARACTERS else f"{shown[: _CHARACTERS - 1]}…"


# -- k-means ----------------------------------------------------------------------------------------------------------
def _clusters(clusters: Clusters, task: KMeansParameters) -> dict[str, Any]:
    sizes: Sequence[int] = clusters.counts.tolist()
    most, whole = max(sizes) or 1, sum(sizes) or 1
    rows = []
    for number, (size, centroid) in enumerate(zip(sizes, clusters.numbers(task).tolist(), strict=True)):
        places = [
            (value, (value - float(each.low)) / float(each.high - each.low))
            for each, value in zip(task.attributes, centroid, strict=True)
        ]
        rows.append((number, size, size / whole, size / most, places))
    return {
        "attributes": [(each.name, str(each.low), str(each.high)) for each in task.attributes],
        "clusters": rows,
        "iterations": clusters.iterations,
        "converged": clusters.converged,
    }
