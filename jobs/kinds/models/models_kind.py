"""What jobs that learn a model have in common, over rows as over columns."""

from __future__ import annotations

from typing import ClassVar, Final, assert_never

from jobs.kinds.kind import EXACT, Disclosure, Facet, Kind
from jobs.kinds.models.finding import FoundModel
from jobs.kinds.models.parameters import model_parameters
from jobs.kinds.models.tables import MODEL_TABLES, KMeansSection, check_columns
from jobs.kinds.words import watched
from jobs.privacy_account import Charge
from jobs.spec.job import JobSpec
from link.disclosure import Declared, Learned
from link.errors import ConfigurationError
from mining.joint.models import decision_tree, kmeans, naive_bayes, shared_kmeans
from mining.models.decision_tree import TreeParameters
from mining.models.kmeans import KMeansParameters
from mining.models.naive_bayes import NaiveBayesParameters

_NAMES: Final = {"naive-bayes": "Naive Bayes", "decision-tree": "Decision tree", "k-means": "Clusters"}
_RESULTS: Final = {
    "naive-bayes": "the naive Bayes model with all counts that it is made of",
    "decision-tree": "the decision tree with the rows of each class at each node",
    "k-means": "the centroids and the number of rows of each cluster",
}
_SEEN: Final = {
    "naive-bayes": "",
    "decision-tree": "which reveal how many nodes each level of the tree has",
    "k-means": "which reveal the number of iterations",
}


class ModelsKind(Kind):
    """A kind that learns a model.

    Attributes:
        over: What the model is learnt from, in words.
    """

    over: ClassVar[str]
    data = "table"
    in_blocks = True
    finding = FoundModel

    def charge(self, spec: JobSpec) -> Charge:
        return EXACT

    def facets(self, spec: JobSpec) -> frozenset[Facet]:
        return frozenset({"model"})

    def lead(self, spec: JobSpec) -> tuple[str, str]:
        return f"{_NAMES[spec.job.task]} over {self.over}", "learnt together; no row left its owner"

    def asks(self, spec: JobSpec) -> list[tuple[str, str]]:
        of_columns = ("columns", f"{len(spec.model.attributes)}")
        if isinstance(spec.model, KMeansSection):
            return [("clusters", str(spec.model.k)), of_columns]
        return [("predicts", spec.model.target), of_columns]


def check_table(spec: JobSpec) -> None:
    """Refuses a job without the table of its task.

    Raises:
        ConfigurationError: It is missing.
    """
    name = MODEL_TABLES[spec.job.task]
    if getattr(spec, name) is None:
        raise ConfigurationError(f'task = "{spec.job.task}" needs a [{name}] table; the table is missing')


def check_model(spec: JobSpec) -> None:
    """Refuses what no model can be learnt by.

    Raises:
        ConfigurationError: With the reason.
    """
    name = MODEL_TABLES[spec.job.task]
    try:
        check_columns(name, spec.model, spec.columns)
        model_parameters(spec)
    except (ConfigurationError, ValueError) as error:
        raise ConfigurationError(f"[{name}] {error}") from None


def disclosed(
    spec: JobSpec, declared: tuple[Declared, ...], learned: tuple[Learned, ...], collusion: str, worst: str
) -> Disclosure:
    """What a job discloses whose parts are these."""
    result = f"{_RESULTS[spec.job.task]}, and the number of rows that it is learnt from"
    progress = watched(spec, "the number of rows", _SEEN[spec.job.task])
    return Disclosure(result, progress, declared, learned, collusion, worst)


def model_openings(spec: JobSpec, *, vertical: bool, everywhere: bool = True) -> tuple[Declared, ...]:
    """Every label under which a model's own numbers may be opened, with its recipients and the most values."""
    task, parties = model_parameters(spec), spec.job.parties
    match task:
        case NaiveBayesParameters():
            return naive_bayes.openings(task, parties, spec.learners, vertical=vertical, everywhere=everywhere)
        case TreeParameters():
            return decision_tree.openings(task, parties, vertical=vertical, everywhere=everywhere)
        case KMeansParameters() if vertical and not everywhere:
            return shared_kmeans.openings(task, parties)
        case KMeansParameters():
            return kmeans.openings(task, parties, spec.learners, vertical=vertical)
        case _:
            assert_never(task)


def model_learned(spec: JobSpec, *, vertical: bool, everywhere: bool = True) -> tuple[Learned, ...]:
    """Who learns what of a model, in words."""
    task, parties, holders = model_parameters(spec), spec.job.parties, "groups" if spec.groups else "parties"
    match task:
        case NaiveBayesParameters():
            return naive_bayes.learned(task, parties, spec.learners, vertical=vertical, holders=holders)
        case TreeParameters():
            return decision_tree.learned(task, parties, vertical=vertical, holders=holders)
        case KMeansParameters() if vertical and not everywhere:
            return shared_kmeans.learned(parties, holders)
        case KMeansParameters():
            return kmeans.learned(parties, spec.learners, vertical=vertical)
        case _:
            assert_never(task)
