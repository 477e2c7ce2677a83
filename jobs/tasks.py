"""From a job specification to the code that runs it at a party."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jobs.spec import JobSpec
from link.session import Session
from mining.itemsets import Itemsets
from mining.joint.horizontal import mine
from mining.joint.parameters import HorizontalMining
from mining.transactions import Transactions


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a task comes to at one party.

    Attributes:
        n_rows: Transactions of all parties together.
        itemsets: The frequent itemsets, at a party that learns them with their supports.
        strategy: The strategy that was taken.
    """

    n_rows: int
    itemsets: Itemsets | None
    strategy: str


def horizontal_mining(spec: JobSpec) -> HorizontalMining:
    """The public parameters of joint mining, as the specification gives them."""
    given = spec.itemsets
    return HorizontalMining(
        min_support=given.min_support,
        learners=spec.learners,
        merger=spec.job.parties[0],
        max_length=given.max_length,
        strategy=given.strategy,
        prefer=given.prefer,
        thin=given.thin,
        universe=_universe(spec),
        catalogue=given.catalogue,
        union=given.union,
        lambda_=given.lambda_,
        max_candidates=given.max_candidates,
        bound=spec.union.bound,
    )


def _universe(spec: JobSpec) -> Literal["frequent-items", "all-items", "catalogue"]:
    if spec.itemsets.catalogue is not None:
        return "catalogue"
    return "all-items" if spec.itemsets.universe == "all-items" else "frequent-items"


async def run_task(session: Session, spec: JobSpec, data: Transactions) -> Outcome:
    """Runs one party's part of a job's task. Rules follow from the itemsets where the result is written."""
    found = await mine(session, data, horizontal_mining(spec))
    return Outcome(found.n_rows, found.itemsets, found.strategy)
