"""From a job specification to the code that runs it at a party."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from crypto.protocols.outside_dealer import Dealings
from jobs.data import Data, table_of, transactions_of
from jobs.kinds.blended.parameters import blended_mining, is_blended
from jobs.kinds.models.learning import how, learn_model
from jobs.kinds.models.model import Model
from jobs.kinds.noisy.parameters import distributed_mining, is_noisy
from jobs.kinds.reported.parameters import hybrid_mining, is_reported
from jobs.parameters import horizontal_mining, row_alignment, vertical_mining
from jobs.spec import JobSpec
from link.errors import ConfigurationError
from link.session import Session
from mining.estimated_rules import EstimatedRules
from mining.estimates import EstimatedItemsets
from mining.itemsets import Itemsets
from mining.joint import horizontal
from mining.joint.align import align, positions_of
from mining.joint.progress import KEEPS_NOTHING, LevelKeeper
from mining.joint.spent import Spent
from mining.joint.vertical import mine as vertical
from mining.rules import Rules
from mining.tables import Table
from mining.transactions import Transactions

if TYPE_CHECKING:
    from jobs.kinds.release.release import Anonymized


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a task comes to at one party.

    Attributes:
        n_rows: Transactions of all parties together; in a vertical job the rows that all parties have. None where
            nobody learns how many these are.
        itemsets: The frequent itemsets, at a party that learns them; with their supports if these were opened.
        strategy: The strategy that was taken; of an alignment its mode, of a model what its numbers are made of.
        rules: The rules that hold, where no support is known from which they would follow.
        positions: How many public positions the rows of all parties were given, where `n_rows` is not told.
        alignment: This party's own rows by their ids, and their positions; for its own use alone.
        model: What has been learnt, at a party that learns it.
        estimated: The itemsets with estimated counts, at a party that learns them, in place of `itemsets`.
        estimated_rules: The rules over these that were asked for.
        spent: What that has cost each record.
        anonymized: The release of a job that anonymises, at a party that learns it.
    """

    n_rows: int | None
    itemsets: Itemsets | None
    strategy: str
    rules: Rules | None = None
    positions: int | None = None
    alignment: pa.Table | None = None
    model: Model | None = None
    estimated: EstimatedItemsets | None = None
    estimated_rules: EstimatedRules | None = None
    spent: Spent | None = None
    anonymized: Anonymized | None = None


async def run_task(
    session: Session,
    spec: JobSpec,
    data: Data,
    least_count: int = 1,
    *,
    dealings: Dealings | None = None,
    keeper: LevelKeeper = KEEPS_NOTHING,
) -> Outcome:
    """Runs one party's part of a job's task. Rules follow from supports where the result is written.

    Raises:
        ConfigurationError: The data are not of the kind that the job needs.
        ComineError: The task failed, as its own module says.
    """
    if spec.anonymizes:
        from jobs.kinds.release.anonymising import anonymise_rows  # with what other jobs do without

        n_rows, anonymized = await anonymise_rows(session, spec, table_of(spec, data, session.me))
        return Outcome(n_rows, None, spec.anonymization.algorithm, anonymized=anonymized)
    if spec.trains:
        n_rows, model = await learn_model(session, spec, table_of(spec, data, session.me))
        return Outcome(n_rows, None, how(spec), model=model)
    if not spec.mines:
        return await _align(session, spec, table_of(spec, data, session.me))
    if spec.is_vertical:
        table, task = table_of(spec, data, session.me), await session.compute(vertical_mining, spec)
        found = await vertical.mine(session, table, task, least_count, dealings, keeper)
        return Outcome(found.n_rows, _asked_for(spec, found.itemsets), found.strategy, found.rules)
    transactions = transactions_of(spec, data, session.me)
    if spec.itemsets.exclude:
        transactions = await session.compute(transactions.without, spec.itemsets.exclude)
    if is_reported(spec):
        return await _estimate(session, spec, transactions, least_count)
    if is_noisy(spec):
        return await _add_noise(session, spec, transactions, least_count)
    if is_blended(spec):
        return await _blend(session, spec, transactions, least_count)
    if spec.privacy.model != "exact":  # a model that is forgotten above must not run without its noise
        raise ConfigurationError(f'[privacy] model = "{spec.privacy.model}" is not available in this version')
    mining = await session.compute(horizontal_mining, spec)
    found = await horizontal.mine(session, transactions, mining, least_count)
    return Outcome(found.n_rows, _asked_for(spec, found.itemsets), found.strategy, found.rules)


def _asked_for(spec: JobSpec, found: Itemsets | None) -> Itemsets | None:
    """Of the frequent itemsets those that the job wants."""
    most = spec.itemsets.top_k
    return found if found is None or most is None else found.most_frequent(most)


async def _estimate(session: Session, spec: JobSpec, transactions: Transactions, least_count: int) -> Outcome:
    from mining.joint.hybrid.mine import mine  # with the mechanisms, which other jobs do without

    task = await session.compute(hybrid_mining, spec)
    found = await mine(session, transactions, task, least_count)
    if found.estimated is None:
        return Outcome(found.n_rows, None, task.search, spent=found.spent)
    return Outcome(
        found.n_rows,
        None,
        task.search,
        estimated=found.estimated.itemsets,
        estimated_rules=found.estimated.rules,
        spent=found.spent,
    )


async def _add_noise(session: Session, spec: JobSpec, transactions: Transactions, least_count: int) -> Outcome:
    from mining.joint.distributed.budget import spent  # with the accounting, which other jobs do without
    from mining.joint.distributed.mine import mine

    task = await session.compute(distributed_mining, spec)
    found = await mine(session, transactions, task, least_count)
    cost = await session.compute(spent, task, len(session.parties))
    return Outcome(found.n_rows, None, "level-wise", estimated=found.itemsets, estimated_rules=found.rules, spent=cost)


async def _blend(session: Session, spec: JobSpec, transactions: Transactions, least_count: int) -> Outcome:
    from mining.joint.blended.mine import mine  # with the mechanisms, which other jobs do without

    found = await mine(session, transactions, await session.compute(blended_mining, spec), least_count)
    estimated = None if found.estimated is None else found.estimated.itemsets
    return Outcome(found.n_rows, None, "blended", estimated=estimated, spent=found.spent)


async def _align(session: Session, spec: JobSpec, table: Table) -> Outcome:
    task = row_alignment(spec)
    found = await align(session, table, task)
    if found.rows is None:
        return Outcome(found.n_common, None, task.mode)
    own = await session.compute(positions_of, table, found.rows)
    positions = len(found.rows) if found.n_common is None else None
    return Outcome(found.n_common, None, task.mode, positions=positions, alignment=own)
