"""A plan from the specification of a job and what its parties answer: pure arithmetic, the same for everybody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Final

from crypto.params import STANDARD_128
from crypto.protocols.secure_sum import word_for
from crypto.protocols.union_costs import UnionSizes, union_work
from jobs.parameters import horizontal_mining
from jobs.plan.expected import Expected, allowed, expected
from jobs.plan.plan import Batch, PartyPlan, Plan, RowsPublic
from jobs.spec import JobSpec
from jobs.statement import statement
from link.traffic import Traffic, greeting, receipts
from mining.bitmaps import packed_bytes
from mining.joint.parameters import HorizontalMining
from mining.joint.sizes import MiningSizes, Union, Vote, mining_traffic, steps
from mining.pairs import n_pairs
from protos.v1.plan_pb2 import PartyEstimate, Speed

_CALL: Final = 20  # what a frame costs at either end, in gRPC and TLS, as a multiple of writing and reading it
_SETTLE_S: Final = 0.03  # streams that are opened, signatures of greetings and receipts
_NODE_BYTES: Final = 160 << 20  # of a node that runs no job
_ROW_BYTES: Final = 100  # of a row of ten items, twice, as it is while the frequent ones are selected
_POINT_COPIES: Final = 4  # of each list: received, encrypted, permuted, sent
_COPIES_OF_SUMS: Final = 3


def estimate(spec: JobSpec, answers: Mapping[str, PartyEstimate], latency_s: float, *assumptions: str) -> Plan:
    """What the job will cost and disclose.

    Args:
        spec: The job.
        answers: What each of its parties tells.
        latency_s: Seconds that a message is expected to take from party to party.
        assumptions: What else the figures rest on, in sentences.
    """
    task, parties = horizontal_mining(spec), spec.job.parties
    answers = {name: answers[name] for name in parties}
    found = expected(task, answers)
    sizes = found.sizes if found is not None else MiningSizes(1, 0, None)
    traffic = _traffic(task, parties, answers, sizes)
    seconds = _seconds(task, answers, sizes, traffic, latency_s)
    unknown = [name for name, answer in answers.items() if not answer.HasField("sizes")]
    most = [_traffic(task, parties, answers, limit) for limit in allowed(task, parties)] if unknown else []
    declared = statement(spec)
    return Plan(
        job=spec.job.name,
        spec_digest=spec.digest.hex(),
        n_rows=found.n_rows if found is not None else None,
        strategy=found.strategy if found is not None else spec.itemsets.strategy,
        rounds=traffic.rounds,
        seconds=seconds,
        parties={
            name: PartyPlan(
                rows_public=_rows_public(answers[name]),
                n_rows=_published_rows(answers[name]),
                bytes_sent=traffic.bytes_sent(name),
                bytes_received=traffic.bytes_received(name),
                bytes_sent_at_most=max((limit.bytes_sent(name) for limit in most), default=None),
                bytes_received_at_most=max((limit.bytes_received(name) for limit in most), default=None),
                seconds=seconds,
                memory_bytes=_memory(answers[name], sizes),
            )
            for name in parties
        },
        batches=[Batch(step=step.lane, candidates=step.candidates) for step in steps(sizes) if isinstance(step, Vote)]
        if found is not None
        else [],
        disclosure=declared.as_data(),
        prose=declared.prose(),
        assumptions=[*assumptions, *_assumptions(spec, found, answers, latency_s)],
    )


def _traffic(
    task: HorizontalMining, parties: Sequence[str], answers: Mapping[str, PartyEstimate], sizes: MiningSizes
) -> Traffic:
    certificates = {name: answers[name].certificate_bytes for name in parties}
    traffic = Traffic(parties)
    greeting(traffic, STANDARD_128.suite, certificates)
    mining_traffic(traffic, "/task", task, sizes)
    receipts(traffic, STANDARD_128.suite, certificates)
    return traffic


def _seconds(
    task: HorizontalMining,
    answers: Mapping[str, PartyEstimate],
    sizes: MiningSizes,
    traffic: Traffic,
    latency_s: float,
) -> float:
    """Every step takes as long as its slowest party; all wait for each other at each."""
    speeds = {name: answer.speed for name, answer in answers.items()}
    peers, word_bytes = len(answers) - 1, word_for(sizes.n_rows).itemsize
    total = _SETTLE_S + traffic.rounds * latency_s
    for step in steps(sizes):
        if isinstance(step, Union):
            total += _union_s(step.sizes, speeds, task.merger)
        elif isinstance(step, Vote):
            total += max(step.candidates * word_bytes * peers * speed.byte_s for speed in speeds.values())
    total += max(_counting_s(sizes, answer) for answer in answers.values())
    return total + max(_moving_s(traffic, name, speed) for name, speed in speeds.items())


def _union_s(sizes: UnionSizes, speeds: Mapping[str, Speed], merger: str) -> float:
    """Halfway between parties on one machine, where all work is spread evenly, and parties that wait in turn.

    In turn, all but the merger encrypt at once, then the merger blinds; of the strips two at a time are under way.
    Parties that share a machine have measured what each gets while all work, so that waiting would count twice.
    """
    work = union_work(sizes, tuple(speeds), merger)
    encryption_s = {n: w.embedded * speeds[n].embed_s + w.encryptions * speeds[n].multiply_s for n, w in work.items()}
    strips_s = {n: w.strips * speeds[n].multiply_s for n, w in work.items()}
    together = (sum(encryption_s.values()) + sum(strips_s.values())) / len(work)
    first = max(seconds for name, seconds in encryption_s.items() if name != merger)
    blinding = encryption_s[merger] * (1 - sizes.lists.length(merger) * sizes.lists.blocks / work[merger].encryptions)
    in_turn = first + blinding + ceil(len(work) / 2) * max(strips_s.values())
    return (together + in_turn) / 2


def _counting_s(sizes: MiningSizes, answer: PartyEstimate) -> float:
    """Pairs along rows or along columns, whichever is quicker; longer itemsets along columns.

    The one-shot strategy counts its own pairs and itemsets before the common ones.
    """
    pairs = n_pairs(sizes.universe) if sizes.one_shot is not None else sum(sizes.candidates[:1])
    longer = 2 * sizes.closure if sizes.one_shot is not None else sum(sizes.candidates[1:])
    speed, rows = answer.speed, answer.n_rows
    along_rows = rows * speed.row_pairs_s if rows else float("inf")
    return rows * speed.row_s + min(pairs * speed.candidate_s, along_rows) + longer * speed.candidate_s


def _moving_s(traffic: Traffic, party: str, speed: Speed) -> float:
    moved = traffic.bytes_sent(party) + traffic.bytes_received(party)
    return moved * speed.frame_byte_s + traffic.frames(party) * _CALL * speed.frame_s


def _memory(answer: PartyEstimate, sizes: MiningSizes) -> int:
    """Packed rows, the vectors of the largest batch, and the lists of the largest union."""
    unions = [step.sizes.lists for step in steps(sizes) if isinstance(step, Union)]
    lists = max((each.total * each.blocks * STANDARD_128.point_bytes for each in unions), default=0)
    batch = max((step.candidates for step in steps(sizes) if isinstance(step, Vote)), default=0)
    length = 2 if sizes.one_shot is None else 4
    vectors = batch * (8 + 4 * length + _COPIES_OF_SUMS * word_for(sizes.n_rows).itemsize)
    columns = packed_bytes(sizes.universe, answer.n_rows)
    return _NODE_BYTES + answer.n_rows * _ROW_BYTES + columns + vectors + _POINT_COPIES * lists


def _rows_public(answer: PartyEstimate) -> RowsPublic:
    match answer.rows_public:
        case "exact" | "rounded" as told:
            return told
        case _:
            return "hidden"


def _published_rows(answer: PartyEstimate) -> int | None:
    return answer.n_rows if answer.HasField("n_rows") and answer.rows_public != "hidden" else None


def _assumptions(
    spec: JobSpec, found: Expected | None, answers: Mapping[str, PartyEstimate], latency_s: float
) -> list[str]:
    told = [name for name, answer in answers.items() if answer.HasField("sizes")]
    hidden = [name for name in answers if name not in told]
    lines = []
    if found is None:
        lines.append(
            f"None of {_and(list(answers))} publishes its sizes: the figures are what the job costs at least, and "
            "what the job's own limits allow at most."
        )
    elif hidden:
        lines.append(
            f"{_and(hidden)} {'hides its' if len(hidden) == 1 else 'hide their'} sizes: the figures take "
            f"{'it' if len(hidden) == 1 else 'them'} to be like the others; the job's own limits allow more."
        )
    rounded = [name for name in told if answers[name].rows_public == "rounded"]
    if rounded:
        lines.append(f"The sizes of {_and(rounded)} are rounded: counts to two significant digits, rows to three.")
    if found is not None:
        lines.append(
            "How many candidates there are is what each party's own rows let expect, the middle of them by number of "
            "rows; where the parties' rows differ much in kind, it may be far off."
        )
        short = [name for name in told if not answers[name].sizes.complete]
        if short and found.sizes.one_shot is None:
            lines.append(
                f"{_and(short)} did not look at long candidates, of which there are very many: the job costs more."
            )
        if found.beyond is not None:
            lines.append(
                f"More than {spec.itemsets.max_candidates:,} candidates of {found.beyond} items are expected: there "
                "the job would end with an error; raise min_support, set max_length, or raise max_candidates."
            )
    lines.append(
        f"A message takes {1000 * latency_s:.1f} ms between parties, as between them and the coordinator; the width "
        "of the network is taken to be no hindrance."
    )
    lines.append("The parties' machines are as busy as when they were asked, and their data are read already.")
    return lines


def _and(names: Sequence[str]) -> str:
    *some, last = names
    return f"{', '.join(some)} and {last}" if some else last
