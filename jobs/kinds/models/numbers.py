"""The numbers of a model by name, so that two models can be compared: what classes, leaves and clusters are like."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.kinds.models.model import Model
from mining.models.decision_tree import DecisionTree
from mining.models.kmeans import Clusters, KMeansParameters
from mining.models.naive_bayes import NaiveBayes


def numbers_of(model: Model) -> Iterator[tuple[str, float]]:
    """The numbers of a model, each with its name; nothing that the model itself does not say.

    Of a tree, the accuracy is that on the rows that it was learnt from, as its leaves count them.
    """
    match model.learnt:
        case NaiveBayes() as bayes:
            yield from _of_bayes(bayes, model.classes, model.n_rows)
        case DecisionTree() as tree:
            yield from _of_tree(tree, model.classes, model.n_rows)
        case Clusters() as clusters:
            assert isinstance(model.task, KMeansParameters)
            yield from _of_clusters(clusters, model.task)


def _of_bayes(bayes: NaiveBayes, classes: tuple[str, ...], n_rows: int) -> Iterator[tuple[str, float]]:
    sizes = bayes.class_counts.tolist()
    for name, size in zip(classes, sizes, strict=True):
        yield f"share of {bayes.task.target.name} = {name}", size / n_rows if n_rows else 0.0
    for attribute, counts in zip(bayes.task.categorical, bayes.value_counts, strict=True):
        for name, size, row in zip(classes, sizes, counts.tolist(), strict=True):
            for value, count in zip(attribute.values, row, strict=True):
                yield f"share of {attribute.name} = {value} in {name}", count / size if size else 0.0
    moments = zip(bayes.task.numeric, bayes.means.tolist(), bayes.variances.tolist(), strict=True)
    for numeric, means, variances in moments:
        for name, mean, variance in zip(classes, means, variances, strict=True):
            yield f"mean of {numeric.name} in {name}", mean
            yield f"deviation of {numeric.name} in {name}", variance**0.5


def _of_tree(tree: DecisionTree, classes: tuple[str, ...], n_rows: int) -> Iterator[tuple[str, float]]:
    nodes = list(tree.nodes())
    leaves = [node for _, node in nodes if node.split is None]
    yield "nodes", len(nodes)
    yield "leaves", len(leaves)
    yield "depth", max(depth for depth, _ in nodes)
    if n_rows:
        yield "accuracy on the rows it was learnt from", sum(leaf.counts[leaf.label] for leaf in leaves) / n_rows
        for number, name in enumerate(classes):
            yield f"share of {tree.task.target.name} = {name}", tree.root.counts[number] / n_rows


def _of_clusters(clusters: Clusters, task: KMeansParameters) -> Iterator[tuple[str, float]]:
    yield "updates", clusters.iterations
    for number, (size, centroid) in enumerate(
        zip(clusters.counts.tolist(), clusters.numbers(task).tolist(), strict=True)
    ):
        yield f"rows of cluster {number}", size
        for attribute, value in zip(task.attributes, centroid, strict=True):
            yield f"{attribute.name} of cluster {number}", value
