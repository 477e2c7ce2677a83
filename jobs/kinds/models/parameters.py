"""From a job specification to the public parameters of the model that it learns."""

from __future__ import annotations

from jobs.kinds.models.tables import DEFAULT_STEPS, DecisionTreeSection, KMeansSection, NaiveBayesSection
from jobs.spec.job import JobSpec
from link.errors import ConfigurationError
from mining.models.attributes import Attribute, Categorical, Intervals, Numeric
from mining.models.decision_tree import TreeParameters
from mining.models.kmeans import KMeansParameters, drawn_centroids
from mining.models.naive_bayes import NaiveBayesParameters

ModelParameters = NaiveBayesParameters | TreeParameters | KMeansParameters


def model_parameters(spec: JobSpec) -> ModelParameters:
    """The public parameters of a job that learns a model.

    Raises:
        ConfigurationError: A number does not fit the others, as the parameters' own classes say.
    """
    match spec.model:
        case NaiveBayesSection() as bayes:
            return NaiveBayesParameters(
                _categorical(spec, bayes.target),
                tuple(_attribute(spec, name) for name in bayes.attributes),
                bayes.smoothing,
                bayes.variance_smoothing,
            )
        case DecisionTreeSection() as tree:
            return TreeParameters(
                _categorical(spec, tree.target),
                tuple(_discrete(spec, name) for name in tree.attributes),
                "gain" if tree.criterion == "id3" else "gain-ratio",
                tree.min_rows,
                tree.max_depth,
                tree.max_nodes,
            )
        case KMeansSection() as clusters:
            coordinates = tuple(_numeric(spec, name) for name in clusters.attributes)
            start = clusters.start or drawn_centroids(coordinates, clusters.k, clusters.seed)
            return KMeansParameters(coordinates, start, clusters.max_iterations, clusters.fraction_bits)


def columns_of(task: ModelParameters) -> tuple[Attribute, ...]:
    """All columns that a model takes, the class first."""
    return task.attributes if isinstance(task, KMeansParameters) else (task.target, *task.attributes)


def _attribute(spec: JobSpec, name: str) -> Attribute:
    """A column as `[columns]` describes it."""
    column = spec.columns[name]
    if column.values is not None:
        return Categorical(name, column.values)
    if column.cuts is not None:
        return Intervals(name, column.cuts)
    return _numeric(spec, name)


def _numeric(spec: JobSpec, name: str) -> Numeric:
    column = spec.columns[name]
    if column.bounds is None:
        raise ConfigurationError(f"'{name}' needs low and high")
    return Numeric(name, *column.bounds, column.steps or DEFAULT_STEPS)


def _categorical(spec: JobSpec, name: str) -> Categorical:
    found = _attribute(spec, name)
    if not isinstance(found, Categorical):
        raise ConfigurationError(f"'{name}' needs values")
    return found


def _discrete(spec: JobSpec, name: str) -> Categorical | Intervals:
    found = _attribute(spec, name)
    if isinstance(found, Numeric):
        raise ConfigurationError(f"'{name}' needs values or cuts")
    return found
