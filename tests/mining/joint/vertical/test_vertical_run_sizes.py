"""The traffic of whole vertical jobs follows from a few sizes: those of real runs give bytes, and bound rounds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from coordinator.jobs.simulation.simulate import simulate_job
from crypto.protocols.alignment.alignment import LONG_LISTS
from crypto.protocols.alignment.costs import AlignmentSizes
from crypto.protocols.products.chains import Itemset
from jobs.kinds.columns.parameters import vertical_mining
from jobs.loading import job_of
from jobs.results.result import Result
from jobs.spec.job import JobSpec
from link.traffic import Traffic
from mining.candidates import join
from mining.data.formats.table_readers import table_from_arrow
from mining.data.items.item_columns import item_columns
from mining.data.tables import Table
from mining.joint.vertical import batches, run_sizes
from mining.joint.vertical.engines.products import Naming
from mining.joint.vertical.run_sizes import Level, Names, RunSizes, batch_sizes, mining_traffic
from mining.joint.vertical.split import Split
from mining.rules.growth import Family, RuleGrowth
from mining.thresholds import minimum_count
from tests.examples import slowly
from tests.mining.joint.vertical.vertical_world import quick_keys
from tests.traffic import assert_planned

pytestmark = pytest.mark.turn(3)

__all__ = ["quick_keys"]


def job(parties: Sequence[str], recipients: Sequence[str] = ("all",), **tables: Any) -> JobSpec:
    task = "rules" if "rules" in tables else "itemsets"
    named = {"name": "j", "task": task, "parties": list(parties), "dataset": "people", "partition": "vertical"}
    return job_of({"job": {**named, "recipients": list(recipients)}, **tables}, "the test", Path())


def tables(parties: Sequence[str], n_rows: int, seed: int) -> dict[str, Table]:
    """The parties' columns as tables."""
    every = cells_of(parties, n_rows, seed)
    return {party: table_from_arrow(cells, ["id"], "the test") for party, cells in every.items()}


def cells_of(parties: Sequence[str], n_rows: int, seed: int) -> dict[str, pa.Table]:
    """Columns that depend on one another, so that long itemsets across parties are frequent; ragged ids."""
    draw = np.random.default_rng(seed)
    common = draw.random(n_rows) < 0.7
    found = {}
    for place, party in enumerate(parties):
        held = np.flatnonzero(draw.random(n_rows) < 0.9)
        cells: dict[str, list[str]] = {"id": [f"p{row}" for row in held]}
        for column in range(1 + (place + seed) % 3):
            agrees = draw.random(n_rows) < 0.85
            values = np.where(agrees, common, ~common)
            cells[f"{party}{'x' * column}"] = [("high", "lo")[value] for value in values[held].astype(int)]
        found[party] = pa.table(cells)
    return found


def sizes_of(spec: JobSpec, data: Mapping[str, Table], result: Result) -> RunSizes:
    """The numbers on which a run hangs, from its data and its result."""
    task, parties = vertical_mining(spec), spec.job.parties
    rows = {party: data[party].n_rows for party in parties}
    assert result.n_rows is not None
    union = AlignmentSizes.of(rows, result.n_rows, task.bound)
    positions = union.positions if task.mode == "union" else result.n_rows
    least = minimum_count(task.min_support, result.n_rows)
    columns = {party: item_columns(data[party], task.itemisation) for party in parties}
    assert result.finding is not None
    found = result.finding.itemsets
    holder = np.array([[item in columns[party].items for party in parties].index(True) for item in found.items])
    levels, sets = list[Level](), [level for level, _ in found.levels]
    while sets and task.allows(len(levels) + 2) and len(levels) < len(sets):
        candidates = join(sets[len(levels)]).sets
        frequent = len(sets[len(levels) + 1]) if len(levels) + 1 < len(sets) else 0
        parts, names, start = list[Sequence[Itemset]](), list[Naming](), 0
        for size in batch_sizes(len(candidates), positions):
            part = candidates[start : start + size]
            split = Split.of(part, holder, parties, everywhere=task.mode == "intersection")
            parts.append(split.itemsets())
            names.append(split.names())
            start += size
        levels.append(Level(len(candidates), frequent, tuple(parts), tuple(names)))
    named = {
        party: [item for item, place in zip(found.items, holder, strict=True) if place == number]
        for number, party in enumerate(parties)
    }
    return RunSizes(
        rows=rows,
        common=result.n_rows,
        positions=positions,
        columns={party: names_of(data[party].column_names) for party in parties},
        numbered={party: int((columns[party].counts() >= least).sum()) for party in parties},
        items={party: names_of(named[party]) for party in parties},
        levels=tuple(levels),
        rules=rules_of(spec, data),
    )


def rules_of(spec: JobSpec, data: Mapping[str, Table]) -> tuple[int, ...]:
    """How many rules are examined, batch by batch, by the supports that another job opens."""
    if spec.rules is None:
        return ()
    written = {"min_support": str(spec.itemsets.min_support)}
    open_job = job(spec.job.parties, align={"mode": spec.alignment.mode}, itemsets=written)
    found = asyncio.run(simulate_job(open_job, data, seed=2)).finding.itemsets
    assert found is not None
    family, sizes = Family(found), list[int]()
    growth = RuleGrowth(family, single=spec.rules.consequent == "single")
    while (batch := growth.next_batch()) is not None:
        sizes.append(len(batch))
        share = Fraction(spec.rules.min_confidence)
        pairs = zip(family.counts[batch.whole].tolist(), family.counts[batch.antecedent].tolist(), strict=True)
        growth.keep(np.array([Fraction(whole, part) >= share for whole, part in pairs], bool))
    return tuple(sizes)


def names_of(names: Sequence[str]) -> Names:
    return Names(len(names), max((len(name.encode()) for name in names), default=0))


def compare(spec: JobSpec, data: Mapping[str, Table], seed: int = 1) -> RunSizes:
    result = asyncio.run(simulate_job(spec, data, seed=seed))
    parties, sizes = spec.job.parties, sizes_of(spec, data, result)
    traffic = Traffic(parties)
    mining_traffic(traffic, vertical_mining(spec), sizes)
    traffic.session({name: len(result.receipts[name].certificate) for name in parties})
    assert_planned(traffic, result.parties, rounds=range(-999, 1))
    return sizes


@pytest.mark.usefixtures("quick_keys")
@pytest.mark.parametrize(
    ("engine", "n_parties", "mode", "disclose", "recipients"),
    slowly(
        [
            ("ot", 2, "intersection", "candidates", ["all"]),
            ("ot", 3, "union", "supports", ["coordinator", "south"]),
            ("replicated", 4, "intersection", "rules", ["all"]),
            ("paillier", 2, "intersection", "supports", ["all"]),
            ("replicated", 2, "intersection", "rules", ["north"]),
            ("ot", 5, "intersection", "frequent", ["all"]),
            ("paillier", 3, "union", "frequent", ["coordinator", "south"]),
        ],
        now=[0, 1, 3, 4],
    ),
)
def test_a_job_sends_what_is_planned(
    engine: str, n_parties: int, mode: str, disclose: str, recipients: list[str]
) -> None:
    parties = ("north", "south", "east", "w", "x")[:n_parties]
    contents: dict[str, Any] = {"align": {"mode": mode}}
    contents["itemsets"] = {"min_support": "0.4", "engine": engine, "disclose": disclose.replace("rules", "frequent")}
    if disclose == "rules":
        contents["rules"] = {"min_confidence": "0.7"}
    if n_parties > 2:
        contents["trust"] = {"compute": ["east", "north"]}
    sizes = compare(
        job(parties, recipients, **contents), tables(parties, 60 if mode == "intersection" else 15, n_parties)
    )
    assert len(sizes.levels) >= 2


def test_candidates_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (batches, run_sizes):
        monkeypatch.setattr(module, "BATCH_BYTES", 16)
    parties = ("north", "south")
    sizes = compare(job(parties, itemsets={"min_support": "0.3"}), tables(parties, 20, 3))
    assert any(len(level.batches) > 1 for level in sizes.levels)


def test_long_lists_of_two_parties() -> None:
    parties = ("north", "south")
    spec = job(parties, itemsets={"min_support": "0.4"}, align={"bound": LONG_LISTS})
    compare(spec, tables(parties, 60, 2))


def test_nothing_to_mine() -> None:
    nothing = compare(job(("a", "b", "c"), itemsets={"min_support": "1.0"}), tables(("a", "b", "c"), 25, 1))
    assert nothing.frequent == (0,)
