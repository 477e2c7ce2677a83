"""What all kinds of jobs that find itemsets and rules have in common."""

from __future__ import annotations

from typing import Final

from jobs.kinds.estimates_finding import FoundEstimates
from jobs.kinds.kind import ALL, Facet, Kind, Unions
from jobs.spec.job import UNIVERSES, JobSpec
from link.errors import ConfigurationError
from link.files.quantities import percent
from mining.rules.measure_names import DEFAULT_MEASURES

ITEMSETS: Final = frozenset({"min_support", "top_k", "max_length", "exclude"})
"""Keys of [itemsets] that mean something in all of them."""
CATALOGUE: Final = frozenset({"universe", "catalogue"})
"""Where parties hold rows."""
ROWS: Final = {"rules": ALL, "plan": frozenset({"bandwidth"})}
"""Tables that mean something in all of them that are over rows."""


class ItemsetsKind(Kind):
    """A kind that finds itemsets and rules."""

    def facets(self, spec: JobSpec) -> frozenset[Facet]:
        return frozenset({"itemsets"})

    def told(self, spec: JobSpec, size: str, n_rows: int | None, found: str | None) -> str:
        over = f"{'about ' if self.noisy_rows else ''}{n_rows:,} transactions of {len(spec.job.parties)} parties"
        if found is None:
            return f"mined {over}; the result is at {', '.join(spec.job.recipients)}"
        return f"{found} of {over}"

    def lead(self, spec: JobSpec) -> tuple[str, str]:
        what = "Association rules" if spec.rules is not None else "Frequent itemsets"
        over = "columns" if spec.is_vertical else "all rows"
        return f"{what} over {over}", "mined together; no row left its owner"

    def asks(self, spec: JobSpec) -> list[tuple[str, str]]:
        asked, support = [], spec.itemsets.min_support_
        if support is not None:
            threshold = f"{support:,} transactions" if isinstance(support, int) else percent(support)
            asked.append(("minimum support", threshold))
        if spec.itemsets.top_k is not None:
            asked.append(("top", f"{spec.itemsets.top_k:,}"))
        if spec.rules is not None:
            asked.append(("minimum confidence", percent(spec.rules.min_confidence)))
        return asked

    def facts(self, spec: JobSpec, strategy: str) -> list[tuple[str, str]]:
        return [("strategy", strategy)]

    def rows_called(self, spec: JobSpec) -> str:
        return "transactions"

    def resumes(self, spec: JobSpec) -> bool:
        return True


class EstimatesKind(ItemsetsKind):
    """A kind that estimates itemsets and rules over rows, behind noise."""

    data = "transactions"
    finding = FoundEstimates
    estimates = True

    def shares(self, spec: JobSpec) -> bool:
        return False

    def unions(self, spec: JobSpec) -> Unions:
        return Unions(taken=False, bound=spec.union.bound)

    def refusals(self, spec: JobSpec) -> frozenset[str]:
        return frozenset({"names" if spec.itemsets.catalogue is None else "strangers"})


def check_itemsets(spec: JobSpec) -> None:
    """Refuses a job without the tables that its task needs.

    Raises:
        ConfigurationError: One is missing, or there is one too many.
    """
    task = spec.job.task
    if spec.itemsets_ is None:
        raise ConfigurationError(f'task = "{task}" needs an [itemsets] table with min_support; the table is missing')
    given = spec.itemsets
    if given.universe not in UNIVERSES and given.catalogue is None:
        raise ConfigurationError(f"the job names the catalogue '{given.universe}', which does not come with it")
    if task == "rules" and spec.rules is None:
        raise ConfigurationError('task = "rules" needs a [rules] table with min_confidence')
    if task != "rules" and spec.rules is not None:
        raise ConfigurationError('a [rules] table needs task = "rules"')


def check_exact(spec: JobSpec) -> None:
    """Refuses what cannot be found without noise; errors as in `check_itemsets`."""
    check_itemsets(spec)
    given = spec.itemsets
    if given.min_support_ is None:
        raise ConfigurationError("[itemsets] min_support is missing; without noise there is no top_k alone")
    if given.disclose != "frequent":
        return
    if given.top_k is not None:
        raise ConfigurationError(
            '[itemsets] disclose = "frequent" opens no supports, and top_k needs them; use "supports"'
        )
    if spec.rules is not None and spec.rules.measures != DEFAULT_MEASURES:
        raise ConfigurationError(
            'disclose = "frequent" opens no number, so leave out [rules] measures, or use "supports"'
        )


def check_colluding(spec: JobSpec) -> None:
    """Refuses more colluders than there are other parties; errors as in `check_itemsets`."""
    colluding, parties = spec.privacy.colluding, len(spec.job.parties)
    if colluding > parties - 1:
        raise ConfigurationError(f"[privacy] colluding = {colluding} leaves no honest party of {parties}")
