"""Models: naive Bayes, decision trees and k-means, over rows or columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from jobs.data import Data
from jobs.kinds.alignment.parameters import check_alignment
from jobs.kinds.alignment.unions import of_alignment
from jobs.kinds.key import Key
from jobs.kinds.kind import ALL, EXACT, Disclosure, Facet, Kind, Resources, Unions
from jobs.kinds.models.finding import FoundModel
from jobs.kinds.models.learning import check_tables, collusion, how, learn_model, learned, openings, worst
from jobs.kinds.models.parameters import model_parameters
from jobs.kinds.models.plan import estimate_model
from jobs.kinds.models.tables import MODEL_TABLES, KMeansSection, check_columns
from jobs.kinds.models.template import template
from jobs.kinds.words import watched
from jobs.plan.answer import Answer
from jobs.plan.plan import Plan
from jobs.privacy_account import Charge
from jobs.results.outcome import Outcome
from jobs.spec.job import JobSpec
from link.errors import ConfigurationError
from link.session import Session

_RESULTS: Final[Mapping[str, str]] = {
    "naive-bayes": "the naive Bayes model with all counts that it is made of",
    "decision-tree": "the decision tree with the rows of each class at each node",
    "k-means": "the centroids and the number of rows of each cluster",
}
_SEEN: Final[Mapping[str, str]] = {
    "naive-bayes": "",
    "decision-tree": "which reveal how many nodes each level of the tree has",
    "k-means": "which reveal the number of iterations",
}


class Models(Kind):
    """Models: naive Bayes, decision trees and k-means, over rows or columns."""

    data = "table"
    in_blocks = True
    finding = FoundModel

    def template(self, key: Key, parties: tuple[str, ...]) -> str:
        return template(key)

    def tables(self, spec: JobSpec) -> Mapping[str, frozenset[str]]:
        own = {MODEL_TABLES[spec.job.task]: ALL, "columns": ALL}
        if not spec.is_vertical:
            return own | {"plan": frozenset({"bandwidth"})}
        own |= {"align": ALL, "plan": ALL}
        return own | {"trust": frozenset({"compute"})} if spec.k_means is not None else own

    def check(self, spec: JobSpec) -> None:
        name = MODEL_TABLES[spec.job.task]
        if getattr(spec, name) is None:
            raise ConfigurationError(f'task = "{spec.job.task}" needs a [{name}] table; the table is missing')
        if spec.is_vertical:
            check_alignment(spec)
        if spec.alignment.mode == "union" and spec.k_means is not None:
            raise ConfigurationError(
                'task = "k-means" shows all parties the cluster of every common row, so [align] mode = "union" would '
                'hide nothing; use "intersection"'
            )
        try:
            check_columns(name, spec.model, spec.columns)
            model_parameters(spec)
        except (ConfigurationError, ValueError) as error:
            raise ConfigurationError(f"[{name}] {error}") from None

    async def run(self, session: Session, spec: JobSpec, data: Data, resources: Resources) -> Outcome:
        n_rows, model = await learn_model(session, spec, data, resources.list_limits)
        return Outcome(n_rows, how(spec), None if model is None else FoundModel(model))

    def disclosure(self, spec: JobSpec) -> Disclosure:
        return Disclosure(
            f"{_RESULTS[spec.job.task]}, and the number of rows that it is learnt from",
            watched(spec, "the number of rows", _SEEN[spec.job.task]),
            openings(spec),
            learned(spec),
            collusion(spec),
            worst(spec),
        )

    def estimate(
        self, spec: JobSpec, answers: Mapping[str, Answer], latency_s: float, *others: str, compare: bool
    ) -> Plan:
        return estimate_model(spec, answers, latency_s, *others)

    def charge(self, spec: JobSpec) -> Charge:
        return EXACT

    def facets(self, spec: JobSpec) -> frozenset[Facet]:
        return frozenset({"model"})

    def shares(self, spec: JobSpec) -> bool:
        return spec.k_means is not None and spec.is_vertical

    def unions(self, spec: JobSpec) -> Unions:
        if spec.is_vertical:
            return of_alignment(spec)
        return Unions(taken=False, merges=0, bound=spec.union.bound)

    def refusals(self, spec: JobSpec) -> frozenset[str]:
        return frozenset({"domains", "ids"}) if spec.is_vertical else frozenset({"domains"})

    def default_ids(self, spec: JobSpec) -> tuple[str, ...]:
        return ("id",) if spec.is_vertical else ()

    def check_columns(self, spec: JobSpec, columns: Mapping[str, Collection[str]]) -> None:
        check_tables(spec, columns)

    def engine(self, spec: JobSpec) -> str | None:
        return "ot" if spec.is_vertical and spec.k_means is None else None

    def lead(self, spec: JobSpec) -> tuple[str, str]:
        what = {"naive-bayes": "Naive Bayes", "decision-tree": "Decision tree", "k-means": "Clusters"}[spec.job.task]
        over = "the columns" if spec.is_vertical else "all rows"
        return f"{what} over {over}", "learnt together; no row left its owner"

    def asks(self, spec: JobSpec) -> list[tuple[str, str]]:
        of_columns = ("columns", f"{len(spec.model.attributes)}")
        if isinstance(spec.model, KMeansSection):
            return [("clusters", str(spec.model.k)), of_columns]
        return [("predicts", spec.model.target), of_columns]

    def facts(self, spec: JobSpec, strategy: str) -> list[tuple[str, str]]:
        return [("alignment", spec.alignment.mode)] if spec.is_vertical else []


KIND: Final = Models()
