"""Supports across column groups, by an engine for parties: a group's column is the sum of its members' columns.

A row has a one in at most one of these columns, since the members' rows are different. So the product of the groups'
columns is a sum of products, one for each way to take a member of every group:

    (x_1 + x_2)·(y_1 + y_2) = x_1·y_1 + x_1·y_2 + x_2·y_1 + x_2·y_2

The engine leaves each of these shared among the parties, and every party adds up what it has of them. No part of a
support is opened, so nobody learns how many rows two members of different groups have in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from crypto.primitives.columns import Columns
from crypto.protocols.products.chains import Itemset
from link.session import Session
from link.traffic import Traffic
from mining.joint.vertical.engines.engine import TYPICAL_DENSITY, Engine, EngineCosts, EngineSpeed, Setup
from mining.joint.vertical.engines.products import Addends, Naming, Products
from mining.joint.vertical.grouped.groups import Groups
from mining.joint.vertical.parameters import VerticalMining


def by_members(itemsets: Sequence[Itemset], groups: Groups) -> tuple[list[Itemset], list[int]]:
    """The products of members that add up to the supports of itemsets.

    Args:
        itemsets: By group the number of a conjunction, of two or more groups each.
        groups: Of the job.

    Returns:
        By party the number of its conjunction, all of one itemset one after the other; and where each itemset's begin.
    """
    found: list[Itemset] = []
    starts = []
    for itemset in itemsets:
        starts.append(len(found))
        taken = [group for group in groups if group.name in itemset]
        for members in product(*(group.members for group in taken)):
            found.append({party: itemset[group.name] for party, group in zip(members, taken, strict=True)})
    return found, starts


def named_by_members(names: Naming | None, groups: Groups) -> Naming | None:
    """The names of the members' conjunctions, which are those of their group."""
    return None if names is None else {party: names[group.name] for group in groups for party in group.members}


def start_engine(engine: Engine, setup: Setup) -> Products:
    """An engine that runs for the holders of columns: groups, where the job has any, or parties."""
    running = engine.start(setup)
    return GroupedProducts(running, setup.task.groups) if setup.task.groups else running


def holders_costs(engine: Engine, task: VerticalMining, parties: Sequence[str]) -> EngineCosts:
    """What an engine that runs for the holders of columns costs; its itemsets lie at these."""
    costs = engine.costs(task, parties)
    return GroupedCosts(costs, task.groups) if task.groups else costs


class GroupedProducts:
    """A running engine whose itemsets lie at groups; it takes over the other one."""

    def __init__(self, of_parties: Products, groups: Groups) -> None:
        """For the groups of a job.

        Args:
            of_parties: The engine that multiplies columns of parties.
            groups: Of the job.
        """
        self.of_parties, self.groups = of_parties, groups

    async def prepare(self, rows: int) -> None:
        """As the other one."""
        await self.of_parties.prepare(rows)

    async def addends(
        self, session: Session, columns: Columns, rows: int, itemsets: Sequence[Itemset], names: Naming | None = None
    ) -> Addends:
        """As of `Products`, but for groups: each member calls this with its own columns of the group's conjunctions."""
        if not itemsets:
            return np.zeros(0, np.uint64)
        expanded, starts = await session.compute(by_members, itemsets, self.groups)
        named = named_by_members(names, self.groups)
        parts = await self.of_parties.addends(session, columns, rows, expanded, named)
        sums: Addends = np.add.reduceat(parts, starts)
        return sums

    def close(self) -> None:
        """As the other one."""
        self.of_parties.close()


class GroupedCosts(EngineCosts):
    """What the calls of `GroupedProducts` cost."""

    def __init__(self, of_parties: EngineCosts, groups: Groups) -> None:
        """As of `GroupedProducts`."""
        self._of_parties, self._groups = of_parties, groups

    def traffic(self, traffic: Traffic, *, rows: int, itemsets: Sequence[Itemset], names: Naming | None = None) -> None:
        expanded, _ = by_members(itemsets, self._groups)
        self._of_parties.traffic(traffic, rows=rows, itemsets=expanded, names=named_by_members(names, self._groups))

    def seconds(
        self,
        rows: int,
        itemsets: Sequence[Itemset],
        speed: EngineSpeed,
        density: float = TYPICAL_DENSITY,
        names: Naming | None = None,
    ) -> float:
        expanded, _ = by_members(itemsets, self._groups)
        return self._of_parties.seconds(rows, expanded, speed, density, named_by_members(names, self._groups))
