"""`model.json`: a learnt model as data, and its canonical bytes, which parties sign.

The canonical bytes are the document as JSON with sorted keys and no blanks. All numbers that were opened are in it as
whole numbers; what follows from them, such as probabilities and means, is made anew when a model is read and must be
the same, digit by digit. So equal models give equal bytes, and a document that contradicts itself is none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, ValidationError

from jobs.documents.part import Part
from jobs.kinds.models.model import Model
from jobs.spec.values import exact_decimal
from link.errors import ConfigurationError
from mining.models.attributes import Attribute, Categorical, Discrete, Intervals, Numeric
from mining.models.decision_tree import Condition, DecisionTree, Node, TreeParameters, condition_text, leaf
from mining.models.kmeans import Clusters, KMeansParameters
from mining.models.naive_bayes import NaiveBayes, NaiveBayesParameters
from mining.models.splits import WHOLE, Split

MODEL_FILE: Final = "model.json"
MODEL_SCHEMA: Final = "comine.model/1"

Count = Annotated[int, Field(ge=0, lt=1 << 62)]
Word = Annotated[int, Field(ge=0, lt=1 << 64)]


def _decimal_text(text: str) -> str:
    exact_decimal(text)
    return text


Number = Annotated[
    str, AfterValidator(_decimal_text), Field(description="A decimal number, exactly as in the job.", max_length=100)
]


class Values(Part):
    """A column of texts."""

    column: str
    values: list[str] = Field(description="All that may occur; codes and counts are in this order.")


class Cut(Part):
    """A column of numbers of which only the interval counts."""

    column: str
    cuts: list[Number] = Field(description="Ascending; an interval is closed below and open above.")


class Bounded(Part):
    """A column of numbers in fixed point."""

    column: str
    low: Number
    high: Number
    steps: int = Field(description="Equal steps from low to high, to the nearest of which numbers are rounded.")


class CountedValues(Values):
    """A column of texts, and how often each is."""

    counts: list[list[Count]] = Field(description="By class, by value: rows of all parties.")
    probabilities: list[list[float | None]] = Field(
        description="By class, by value, smoothed; null for a class without rows and smoothing."
    )


class CountedCut(Cut):
    """A column of intervals, and how often each is."""

    counts: list[list[Count]] = Field(description="By class, by interval: rows of all parties.")
    probabilities: list[list[float | None]] = Field(
        description="By class, by interval, smoothed; null for a class without rows and smoothing."
    )


class Moments(Bounded):
    """A column of numbers, taken to be normal in each class."""

    sums: list[Word] = Field(description="By class, of all rows' steps above low.")
    squares: list[Word] = Field(description="By class, of their squares.")
    means: list[float] = Field(description="By class; 0 for one without rows.")
    variances: list[float] = Field(description="By class, smoothed.")


class NaiveBayesDocument(Part):
    """A naive Bayes model."""

    schema_: Literal["comine.model/1"] = Field(alias="schema")
    task: Literal["naive-bayes"]
    n_rows: Count
    target: Values
    smoothing: Number
    variance_smoothing: Number
    class_counts: list[Count] = Field(description="Rows of each class.")
    priors: list[float] = Field(description="Share of each class.")
    attributes: list[CountedValues | CountedCut | Moments]


class TreeNode(Part):
    """A node of a tree; a parent stands before its children, and these in the order of its branches."""

    parent: Count | None = Field(description="Number of its parent in the list, from 0; null of the first node.")
    when: str | None = Field(description="Which rows of its parent come to it, in words.")
    rows: Count
    counts: list[Count] = Field(description="Rows by class.")
    label: str = Field(description="The class that it predicts.")
    column: str | None = Field(description="By which it is divided; null at a leaf.")
    cut: Number | None = Field(description="At which numbers are divided; null at a leaf and of columns of texts.")


class DecisionTreeDocument(Part):
    """A decision tree."""

    schema_: Literal["comine.model/1"] = Field(alias="schema")
    task: Literal["decision-tree"]
    n_rows: Count
    target: Values
    attributes: list[Values | Cut]
    criterion: Literal["id3", "c45"]
    min_rows: Count
    max_depth: Count | None
    max_nodes: Count
    nodes: list[TreeNode]


class Cluster(Part):
    """A cluster of k-means."""

    rows: Count
    centroid: list[float] = Field(description="By attribute.")
    fixed: list[Count] = Field(description="By attribute in steps above low, divided by 2 to the fraction_bits.")


class KMeansDocument(Part):
    """Clusters of k-means."""

    schema_: Literal["comine.model/1"] = Field(alias="schema")
    task: Literal["k-means"]
    n_rows: Count
    attributes: list[Bounded]
    start: list[list[Number]] = Field(description="The first centroids, by attribute.")
    max_iterations: Count
    fraction_bits: Count
    iterations: Count = Field(description="Updates that were made.")
    converged: bool = Field(description="Whether the last one changed nothing.")
    clusters: list[Cluster]


ModelDocument = Annotated[NaiveBayesDocument | DecisionTreeDocument | KMeansDocument, Field(discriminator="task")]
_ADAPTER: Final[TypeAdapter[NaiveBayesDocument | DecisionTreeDocument | KMeansDocument]] = TypeAdapter(ModelDocument)


def model_document(model: Model) -> dict[str, Any]:
    """The contents of `model.json`."""
    document: BaseModel
    match model.learnt:
        case NaiveBayes() as bayes:
            document = _of_bayes(bayes, model.n_rows)
        case DecisionTree() as tree:
            document = _of_tree(tree, model.n_rows)
        case Clusters() as clusters:
            assert isinstance(model.task, KMeansParameters)
            document = _of_clusters(clusters, model.task, model.n_rows)
    return document.model_dump(mode="json", by_alias=True)


def pack_model(model: Model) -> bytes:
    """The canonical bytes of a model."""
    plain = model_document(model)
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def unpack_model(packed: bytes) -> Model:
    """The model in canonical bytes, which may come from anybody.

    Raises:
        ValueError: The bytes are not exactly what `pack_model` gives for some model.
    """
    model = read_model(packed)
    if pack_model(model) != packed:
        raise ValueError("the model is not in canonical form, or contradicts itself")
    return model


def read_model(contents: bytes | str) -> Model:
    """The model of a `model.json`; what follows from other numbers in it is made anew.

    Raises:
        ValueError: It is no such document, or no rows can have its counts.
    """
    try:
        document = _ADAPTER.validate_json(contents)
    except ValidationError:
        raise ValueError("this is no model of this version of comine") from None
    try:
        match document:
            case NaiveBayesDocument():
                return _to_bayes(document)
            case DecisionTreeDocument():
                return _to_tree(document)
            case KMeansDocument():
                return _to_clusters(document)
    except (ConfigurationError, ArithmeticError) as error:
        raise ValueError(f"the model has impossible parameters: {error}") from None


# -- columns ----------------------------------------------------------------------------------------------------------
def _of_attribute(attribute: Attribute) -> dict[str, Any]:
    match attribute:
        case Categorical():
            return {"column": attribute.name, "values": list(attribute.values)}
        case Intervals():
            return {"column": attribute.name, "cuts": list(map(str, attribute.cuts))}
        case Numeric():
            bounds = {"low": str(attribute.low), "high": str(attribute.high)}
            return {"column": attribute.name, **bounds, "steps": attribute.steps}


def _categorical(values: Values) -> Categorical:
    return Categorical(values.column, tuple(values.values))


def _discrete(column: Values | Cut) -> Discrete:
    if isinstance(column, Values):
        return _categorical(column)
    return Intervals(column.column, tuple(map(Decimal, column.cuts)))


def _numeric(column: Bounded) -> Numeric:
    return Numeric(column.column, Decimal(column.low), Decimal(column.high), column.steps)


# -- naive Bayes ------------------------------------------------------------------------------------------------------
def _of_bayes(bayes: NaiveBayes, n_rows: int) -> NaiveBayesDocument:
    task, classes = bayes.task, bayes.class_counts.tolist()
    tables, numbers = iter(bayes.value_counts), iter(zip(bayes.moments, bayes.means, bayes.variances, strict=True))
    attributes = list[CountedValues | CountedCut | Moments]()
    for attribute in task.attributes:
        about = _of_attribute(attribute)
        if isinstance(attribute, Numeric):
            (sums, squares), means, variances = next(numbers)
            learnt = {"sums": sums, "squares": squares, "means": means, "variances": variances}
            attributes.append(Moments(**about, **{name: each.tolist() for name, each in learnt.items()}))
            continue
        counts = next(tables).tolist()
        shares = [list(_shares(row, Fraction(task.smoothing))) for row in counts]
        kind = CountedValues if isinstance(attribute, Categorical) else CountedCut
        attributes.append(kind(**about, counts=counts, probabilities=shares))
    return NaiveBayesDocument(
        schema=MODEL_SCHEMA,
        task="naive-bayes",
        n_rows=n_rows,
        target=Values(**_of_attribute(task.target)),
        smoothing=str(task.smoothing),
        variance_smoothing=str(task.variance_smoothing),
        class_counts=classes,
        priors=[float(Fraction(count, max(1, n_rows))) for count in classes],
        attributes=attributes,
    )


def _shares(counts: Sequence[int], smoothing: Fraction) -> Iterator[float | None]:
    """Exact, and rounded once: equal on every machine."""
    whole = sum(counts) + smoothing * len(counts)
    for count in counts:
        yield float((count + smoothing) / whole) if whole else None


def _to_bayes(document: NaiveBayesDocument) -> Model:
    target = _categorical(document.target)
    attributes = list[Attribute]()
    counts, moments = list(document.class_counts), list[int]()
    for each in document.attributes:
        if isinstance(each, Moments):
            attributes.append(_numeric(each))
            _check_length(target.size, each.sums, each.squares)
            moments += [*each.sums, *each.squares]
        else:
            discrete = _discrete(each)
            attributes.append(discrete)
            _check_length(target.size, each.counts)
            _check_length(discrete.size, *each.counts)
            counts += [count for row in each.counts for count in row]
    _check_length(target.size, document.class_counts)
    if sum(document.class_counts) != document.n_rows:
        raise ValueError("the rows of all classes are not all rows")
    smoothing = Decimal(document.smoothing), Decimal(document.variance_smoothing)
    task = NaiveBayesParameters(target, tuple(attributes), *smoothing)
    learnt = NaiveBayes.of(task, np.array(counts, np.int64), np.array(moments, np.uint64))
    return Model(task, document.n_rows, learnt)


def _check_length(length: int, *lists: Sequence[object]) -> None:
    if any(len(each) != length for each in lists):
        raise ValueError("a list of the model has not as many entries as it must")


# -- trees ------------------------------------------------------------------------------------------------------------
def _of_tree(tree: DecisionTree, n_rows: int) -> DecisionTreeDocument:
    task = tree.task
    nodes = list[TreeNode]()
    waiting: list[tuple[Node, int | None, str | None]] = [(tree.root, None, None)]
    while waiting:
        node, parent, when = waiting.pop()
        attribute = None if node.split is None else task.attributes[node.split.attribute]
        cut = str(attribute.cuts[node.split.cut]) if node.split and isinstance(attribute, Intervals) else None
        if node.split is not None and attribute is not None:
            below = [
                (child, len(nodes), condition_text(attribute, Condition(node.split, branch)))
                for branch, child in enumerate(node.children)
            ]
            waiting += reversed(below)
        nodes.append(
            TreeNode(
                parent=parent,
                when=when,
                rows=sum(node.counts),
                counts=list(node.counts),
                label=task.target.values[node.label],
                column=None if attribute is None else attribute.name,
                cut=cut,
            )
        )
    return DecisionTreeDocument(
        schema=MODEL_SCHEMA,
        task="decision-tree",
        n_rows=n_rows,
        target=Values(**_of_attribute(task.target)),
        attributes=[
            (Values if isinstance(each, Categorical) else Cut)(**_of_attribute(each)) for each in task.attributes
        ],
        criterion="id3" if task.criterion == "gain" else "c45",
        min_rows=task.min_rows,
        max_depth=task.max_depth,
        max_nodes=task.max_nodes,
        nodes=nodes,
    )


def _to_tree(document: DecisionTreeDocument) -> Model:
    attributes = tuple(map(_discrete, document.attributes))
    task = TreeParameters(
        _categorical(document.target),
        attributes,
        "gain" if document.criterion == "id3" else "gain-ratio",
        document.min_rows,
        document.max_depth,
        document.max_nodes,
    )
    nodes, children = list[Node](), list[list[Node]]()
    for described in document.nodes:
        parent = described.parent
        if (parent is None) is not (not nodes) or (parent is not None and parent >= len(nodes)):
            raise ValueError("a node of the tree does not follow its parent")
        _check_length(task.target.size, described.counts)
        node = leaf(described.counts, 0 if parent is None else nodes[parent].label)
        node.split = _split(described, attributes)
        nodes.append(node)
        children.append([])
        if parent is not None:
            children[parent].append(node)
    if not nodes or sum(nodes[0].counts) != document.n_rows:
        raise ValueError("the first node of the tree has not all rows")
    for node, below in zip(nodes, children, strict=True):
        node.children = tuple(below)
        if node.split is None:
            _check_length(0, below)
            continue
        _check_length(attributes[node.split.attribute].size if node.split.cut == WHOLE else 2, below)
        if tuple(map(sum, zip(*(child.counts for child in below), strict=True))) != node.counts:
            raise ValueError("the rows of a node's branches are not its own")
    return Model(task, document.n_rows, DecisionTree(task, nodes[0]))


def _split(described: TreeNode, attributes: Sequence[Discrete]) -> Split | None:
    if described.column is None:
        return None
    names = [attribute.name for attribute in attributes]
    number = names.index(described.column)
    attribute = attributes[number]
    if isinstance(attribute, Categorical):
        return Split(number, WHOLE)
    return Split(number, list(map(str, attribute.cuts)).index(described.cut or ""))


# -- k-means ----------------------------------------------------------------------------------------------------------
def _of_clusters(clusters: Clusters, task: KMeansParameters, n_rows: int) -> KMeansDocument:
    found = zip(clusters.counts.tolist(), clusters.numbers(task).tolist(), clusters.centroids.tolist(), strict=True)
    return KMeansDocument(
        schema=MODEL_SCHEMA,
        task="k-means",
        n_rows=n_rows,
        attributes=[Bounded(**_of_attribute(each)) for each in task.attributes],
        start=[list(map(str, row)) for row in task.initial],
        max_iterations=task.max_iterations,
        fraction_bits=task.fraction_bits,
        iterations=clusters.iterations,
        converged=clusters.converged,
        clusters=[Cluster(rows=rows, centroid=centroid, fixed=fixed) for rows, centroid, fixed in found],
    )


def _to_clusters(document: KMeansDocument) -> Model:
    task = KMeansParameters(
        tuple(map(_numeric, document.attributes)),
        tuple(tuple(map(Decimal, row)) for row in document.start),
        document.max_iterations,
        document.fraction_bits,
    )
    _check_length(task.k, document.clusters)
    _check_length(len(task.attributes), *(each.fixed for each in document.clusters))
    counts = [each.rows for each in document.clusters]
    for each in document.clusters:
        limits = [attribute.steps << task.fraction_bits for attribute in task.attributes]
        if any(number > limit for number, limit in zip(each.fixed, limits, strict=True)):
            raise ValueError("a centroid is outside the bounds of its attributes")
    if sum(counts) != document.n_rows or document.iterations > task.max_iterations:
        raise ValueError("the rows of all clusters are not all rows, or there are too many iterations")
    fixed = np.array([each.fixed for each in document.clusters], np.int64)
    learnt = Clusters(fixed, np.array(counts, np.int64), document.iterations, document.converged)
    return Model(task, document.n_rows, learnt)
