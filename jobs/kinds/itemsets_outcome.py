"""What parties bring into jobs that find itemsets, and what comes of these."""

from __future__ import annotations

from jobs.data import Data
from jobs.kinds.data import rows_of
from jobs.kinds.estimates_finding import FoundEstimates
from jobs.kinds.itemsets_finding import FoundItemsets
from jobs.results.outcome import Outcome
from jobs.spec.job import JobSpec
from link.session import Session
from mining.data.rows import Rows
from mining.itemsets import Itemsets
from mining.joint.estimated import EstimatedOutcome
from mining.rules.association import Rules


async def rows_taken(session: Session, spec: JobSpec, data: Data) -> Rows:
    """This party's rows, wherever they lie, without the items that the job excludes.

    Raises:
        ConfigurationError: The data are of another kind.
    """
    rows: Rows = rows_of(spec, data, session.me)
    return await session.compute(rows.without, spec.itemsets.exclude) if spec.itemsets.exclude else rows


def found_itemsets(spec: JobSpec, itemsets: Itemsets | None, rules: Rules | None) -> FoundItemsets | None:
    """Of the frequent itemsets those that the job wants; None at a party that learns none."""
    if itemsets is None:
        return None
    most = spec.itemsets.top_k
    return FoundItemsets(itemsets if most is None else itemsets.most_frequent(most), rules)


def estimates(found: EstimatedOutcome, strategy: str) -> Outcome:
    """What a job that estimates comes to."""
    finding = None if found.estimated is None else FoundEstimates(found.estimated)
    return Outcome(found.n_rows, strategy, finding, spent=found.spent)
