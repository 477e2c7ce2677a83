"""The plan of a vertical job: its alignment exactly, and of its mining what each engine takes for pairs of items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

from crypto.params import STANDARD_128
from crypto.protocols.alignment_costs import (
    AlignmentSizes,
    alignment_work,
    cardinality_traffic,
    intersection_traffic,
    row_union_traffic,
)
from crypto.protocols.joint_prf_costs import PrfSizes, prf_work
from crypto.protocols.sum_costs import agreement_traffic
from crypto.protocols.union_costs import UnionSizes
from jobs.parameters import row_alignment, vertical_mining
from jobs.plan.alternatives import difference
from jobs.plan.plan import Alternative, Batch, PartyPlan, Plan, published_rows, rows_public
from jobs.plan.prices import NODE_BYTES, POINT_COPIES, SETTLE_S, moving_s, union_s
from jobs.spec import JobSpec
from jobs.statement import statement
from link.traffic import Traffic, greeting, receipts
from mining.joint.align import LABELS
from mining.joint.vertical.parameters import VerticalMining, chosen_engine
from mining.joint.vertical.sizes import ENGINES, EngineSpeed, addends_seconds, addends_traffic, pairs_of_items
from protos.v1.plan_pb2 import PartyEstimate

_MOST_PAIRS: Final = 200_000  # that are told apart; the time of a plan is bounded
_LEVEL_2: Final = "/task/level-2/0"


@dataclass(frozen=True)
class _Sizes:
    """What is expected of a job.

    Attributes:
        rows: By party; where it hides them, the mean of the others, or what the job allows.
        items: By party, how many of its items are frequent there; None where nobody tells, or there are none to mine.
        pairs: Candidates of two items across parties.
    """

    rows: Mapping[str, int]
    items: Mapping[str, int] | None
    pairs: int

    @classmethod
    def of(cls, spec: JobSpec, answers: Mapping[str, PartyEstimate]) -> _Sizes:
        told = {name: answer.n_rows for name, answer in answers.items() if answer.HasField("n_rows")}
        other = _mean(list(told.values())) if told else spec.alignment.bound or 0
        rows = {name: told.get(name, other) for name in answers}
        sized = {name: a.sizes.items.elements for name, a in answers.items() if a.HasField("sizes")}
        if not (spec.mines and sized):
            return cls(rows, None, 0)
        items = {name: sized.get(name, _mean(list(sized.values()))) for name in answers}
        return cls(rows, items, sum(a * b for a, b in combinations(items.values(), 2)))

    @property
    def common(self) -> int:
        """Rows that all parties have, at most."""
        return min(self.rows.values())


@dataclass(frozen=True)
class _Figures:
    """What a job moves and how long it takes; `mined` tells whether an engine is part of it."""

    traffic: Traffic
    seconds: float
    mined: bool


def estimate_vertical(spec: JobSpec, answers: Mapping[str, PartyEstimate], latency_s: float, *others: str) -> Plan:
    """What a vertical job will cost and disclose; arguments as in `estimate`."""
    answers = {name: answers[name] for name in spec.job.parties}
    sizes, declared = _Sizes.of(spec, answers), statement(spec)
    figures = _figures(spec, answers, sizes, latency_s)
    known = any(answer.HasField("n_rows") for answer in answers.values())
    return Plan(
        job=spec.job.name,
        spec_digest=spec.digest.hex(),
        n_rows=sizes.common if known else None,
        strategy=_strategy(spec),
        rounds=figures.traffic.rounds,
        seconds=figures.seconds,
        parties={
            name: PartyPlan(
                rows_public=rows_public(answer),
                n_rows=published_rows(answer),
                bytes_sent=figures.traffic.bytes_sent(name),
                bytes_received=figures.traffic.bytes_received(name),
                seconds=figures.seconds,
                memory_bytes=_memory(sizes, name),
            )
            for name, answer in answers.items()
        },
        batches=[Batch(step="level-2", candidates=sizes.pairs, opened=_opened(spec, sizes))] if sizes.pairs else [],
        disclosure=declared.as_data(),
        prose=declared.prose(),
        assumptions=[*others, *_assumptions(spec, answers, sizes, figures, latency_s)],
        alternatives=[
            _alternative(spec, name, changed, lines, answers, latency_s) for name, changed, lines in _variants(spec)
        ],
    )


def _figures(spec: JobSpec, answers: Mapping[str, PartyEstimate], sizes: _Sizes, latency_s: float) -> _Figures:
    parties = tuple(answers)
    certificates = {name: answer.certificate_bytes for name, answer in answers.items()}
    traffic = Traffic(parties)
    greeting(traffic, STANDARD_128.suite, certificates)
    agreement_traffic(traffic, "/task/keys")
    seconds = SETTLE_S + _align(traffic, spec, answers, sizes)
    mined = sizes.items is not None and 0 < sizes.pairs <= _MOST_PAIRS
    if mined and sizes.items is not None:
        task, positions = vertical_mining(spec), _positions(spec, sizes)
        itemsets = pairs_of_items(parties, sizes.items, task.mode)
        addends_traffic(traffic, _LEVEL_2, task, rows=positions, itemsets=itemsets)
        speed = EngineSpeed.by_transfer(max(answer.speed.transfer_s for answer in answers.values()))
        seconds += addends_seconds(task, parties, positions, itemsets, speed) / len(parties)
    receipts(traffic, STANDARD_128.suite, certificates)
    seconds += traffic.rounds * latency_s + max(moving_s(traffic, name, a.speed) for name, a in answers.items())
    return _Figures(traffic, seconds, mined)


def _align(traffic: Traffic, spec: JobSpec, answers: Mapping[str, PartyEstimate], sizes: _Sizes) -> float:
    """Enters the alignment; its seconds, where every party works all the time."""
    task, lane, speeds = row_alignment(spec), "/task/rows", {name: answer.speed for name, answer in answers.items()}
    label = LABELS[task.mode]
    if task.mode == "union":
        row_union_traffic(traffic, lane, sizes.rows, merger=task.merger, bound=task.bound, label=label)
        work = prf_work(PrfSizes.of(sizes.rows, task.bound), sizes.rows)
        pseudonyms_s = max(
            each.multiplications * speeds[name].multiply_s + (each.hashed + each.drawn) * speeds[name].embed_s
            for name, each in work.items()
        )
        return pseudonyms_s + union_s(_row_union(spec, sizes), speeds, task.merger)
    lists = AlignmentSizes.of(sizes.rows, sizes.common, task.bound)
    enter = intersection_traffic if task.mode == "intersection" else cardinality_traffic
    enter(traffic, lane, lists, merger=task.merger, label=label)
    return max(number * speeds[name].multiply_s for name, number in alignment_work(lists, task.merger).items())


def _row_union(spec: JobSpec, sizes: _Sizes) -> UnionSizes:
    return UnionSizes.expected(sizes.rows, 0, 1, spec.alignment.bound, {}, fill="union")


def _positions(spec: JobSpec, sizes: _Sizes) -> int:
    """Rows over which items are multiplied, at most."""
    return _row_union(spec, sizes).elements if spec.alignment.mode == "union" else sizes.common


def _memory(sizes: _Sizes, party: str) -> int:
    points = sum(sizes.rows.values()) * STANDARD_128.point_bytes
    bitmaps = sizes.rows[party] * (0 if sizes.items is None else sizes.items[party]) // 8
    return NODE_BYTES + POINT_COPIES * points + bitmaps


def _opened(spec: JobSpec, sizes: _Sizes) -> int:
    return sizes.pairs if spec.itemsets.disclose == "candidates" else 0


def _strategy(spec: JobSpec) -> str:
    return f"level-wise, {chosen_engine(vertical_mining(spec))}" if spec.mines else spec.alignment.mode


# -- other ways --------------------------------------------------------------------------------------------------------
def _variants(spec: JobSpec) -> list[tuple[str, JobSpec, list[str]]]:
    """Another alignment, and other engines: their names, jobs and lines of the job file."""
    found = []
    modes = ("intersection", "union") if spec.mines else ("intersection", "cardinality", "union")
    for mode in modes:
        if mode != spec.alignment.mode:
            changed = spec.model_copy(update={"align": spec.alignment.model_copy(update={"mode": mode})})
            found.append((f"{mode} of rows", changed, [f'[align] mode = "{mode}"']))
    if not spec.mines:
        return found
    for engine in ENGINES:
        if engine != chosen_engine(vertical_mining(spec)):
            update: dict[str, Any] = {"itemsets_": spec.itemsets.model_copy(update={"engine": engine})}
            lines = [f'[itemsets] engine = "{engine}"']
            if engine != "replicated" and spec.trust.helper != "none":
                update["trust"] = spec.trust.model_copy(update={"helper": "none"})
                lines.append('[trust] helper = "none"')
            found.append((f"engine {engine}", spec.model_copy(update=update), lines))
    return found


def _alternative(
    spec: JobSpec,
    name: str,
    changed: JobSpec,
    lines: list[str],
    answers: Mapping[str, PartyEstimate],
    latency_s: float,
) -> Alternative:
    sizes = _Sizes.of(changed, answers)
    figures = _figures(changed, answers, sizes, latency_s)
    known = any(answer.HasField("n_rows") for answer in answers.values()) and (figures.mined or not changed.mines)
    adds, drops, in_short = difference(statement(spec), statement(changed), spec.job.parties)
    return Alternative(
        name=name,
        change=lines,
        strategy=_strategy(changed),
        rounds=figures.traffic.rounds if known else None,
        seconds=figures.seconds if known else None,
        bytes_sent=sum(map(figures.traffic.bytes_sent, figures.traffic.parties)) if known else None,
        adds=adds,
        drops=drops,
        in_short=in_short,
    )


# -- on what it rests --------------------------------------------------------------------------------------------------
def _assumptions(
    spec: JobSpec, answers: Mapping[str, PartyEstimate], sizes: _Sizes, figures: _Figures, latency_s: float
) -> list[str]:
    hidden = [name for name, answer in answers.items() if not answer.HasField("n_rows")]
    lines = []
    if len(hidden) == len(answers):
        taken = "what its bound allows" if spec.alignment.bound else "the least that it can be"
        lines.append(f"No party publishes its number of rows: the alignment is reckoned with {taken}.")
    elif hidden:
        lines.append(
            f"{_and(hidden)} {'hides' if len(hidden) == 1 else 'hide'} the number of rows: it is taken to be "
            "the mean of the others."
        )
    if any(answer.rows_public == "rounded" for answer in answers.values()):
        lines.append("Sizes that are rounded have two significant digits, numbers of rows three.")
    if spec.alignment.mode != "union" and (spec.mines or len(answers) > 2):
        lines.append(f"All {sizes.common:,} rows of the party with the fewest are taken to be common; fewer cost less.")
    if spec.mines:
        lines += _of_mining(spec, vertical_mining(spec), sizes, figures)
    lines.append(
        f"A message takes {1000 * latency_s:.1f} ms between parties; the width of the network is taken to be no "
        "hindrance."
    )
    return lines


def _of_mining(spec: JobSpec, task: VerticalMining, sizes: _Sizes, figures: _Figures) -> list[str]:
    if not figures.mined:
        why = "No party tells how many of its items are frequent"
        if sizes.items is not None:
            why = (
                "No two parties have a frequent item each" if not sizes.pairs else f"{sizes.pairs:,} pairs are too many"
            )
        return [f"{why}: the figures are those of the alignment, and mining is not among them."]
    lines = [
        f"Of mining the products of pairs of items are reckoned, by the engine {chosen_engine(task)}. Names, longer "
        "itemsets, decisions and agreements between parties are not: the job costs more.",
        "Items are taken to be frequent among the common rows where they are among a party's own.",
    ]
    if sizes.pairs > spec.itemsets.max_candidates:
        lines.append(
            f"More than {spec.itemsets.max_candidates:,} candidates of 2 items are expected: there the job would end "
            "with an error; raise min_support, set max_length, or raise max_candidates."
        )
    return lines


def _mean(numbers: Sequence[int]) -> int:
    return round(sum(numbers) / len(numbers))


def _and(names: Sequence[str]) -> str:
    *some, last = names
    return f"{', '.join(some)} and {last}" if some else last
