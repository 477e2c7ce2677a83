"""What the steps of a job take of time and memory, from its sizes and the measured speed of its parties' machines."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Final

from crypto.protocols.alignment.costs import (
    AlignmentSizes,
    ListedSizes,
    compared_both_ways,
    compared_in_turns,
    listed_work,
    row_union_bytes,
    row_union_work,
)
from crypto.protocols.authenticated.costs import authenticated_bits
from crypto.protocols.authenticated.costs import kept_bytes as authenticated_bytes
from crypto.protocols.comparison.comparison import BLOCK
from crypto.protocols.comparison.costs import comparison_work
from crypto.protocols.replicated.costs import kept_bytes, masked_bytes
from crypto.protocols.replicated.verified_costs import kept_bytes as verified_bytes
from crypto.protocols.sums.secure_sum import word_for
from crypto.protocols.union.prefix_costs import AskedBits
from jobs.plan.answer import Answer
from jobs.plan.calibration import MEASURED_ROWS
from link.traffic import Traffic
from mining.counting import SETS_AT_ONCE
from mining.data.items.bitmaps import packed_bytes
from mining.joint.horizontal.verified_tally import bits_of
from mining.joint.parameters import HorizontalMining
from mining.joint.shared_rules import RuleSteps
from mining.joint.sizes import (
    Hidden,
    MiningSizes,
    Step,
    Supports,
    Union,
    Vote,
    capped_sums,
    steps,
)
from mining.pairs import MOST_COUNTS, n_pairs
from mining.thresholds import minimum_count
from protos.v1.plan_pb2 import Speed

_CALL: Final = 20  # what a frame costs at either end, in gRPC and TLS, as a multiple of writing and reading it
SETTLE_S: Final = 0.03  # streams that are opened, signatures of greetings and receipts
AGREEMENT: Final = 1500  # group multiplications, about, of the agreement between two computing parties
_VALUE_TRANSFERS: Final = 14  # random transfers, about, that cost as much as a value of a pseudorandom function
_STREAMS: Final = 150_000  # random transfers that the streams of a comparison cost at both ends, before the first one
_TABLES: Final = 3  # random transfers that one of a comparison costs with its tables, and an AND triple
_AUTHENTICATED: Final = 3  # random transfers that a bit costs that two authenticate, with what it serves; measured
_CHECKED: Final = 12  # times as long as the same comparison among semi-honest parties; measured
_CHECKED_BYTE: Final = 450  # bytes under a mask that take as long as a byte of checked ANDs at all three; measured
_TOGETHER: Final = 0.5  # of both ends' work: they work at the same time, but for waiting
NODE_BYTES: Final = 160 << 20  # of a node that runs no job
ROW_BYTES: Final = 100  # of a row of ten items, twice, as it is while the frequent ones are selected
ID_BYTES: Final = 48  # of a row of a table: an id of some twenty bytes, and what reading it leaves taken; measured
CELL_BYTES: Final = 1  # of a cell of a table, in columns of up to 127 values
PLACE_BYTES: Final = 4  # of a row of a table in blocks: its place in the common order
BLOCK_BYTES: Final = 32 << 20  # of blocks that a node reads, one after the other; measured
PROCESS_BYTES: Final = 270 << 20  # of each process over blocks of a table, while it encodes it
ENCODE_CELL_S: Final = 1.5e-7  # of a core, to encode a cell of a table, once; measured
UNKNOWN_ROWS: Final = 10_000  # of a party, where nobody publishes a number of rows
POINT_COPIES: Final = 4  # of each list: received, encrypted, permuted, sent
_COPIES_OF_BITS: Final = 4  # of a question's
_COPIES_OF_SUMS: Final = 3
_BLOCK_BYTES: Final = 50 << 20  # that a block of comparisons keeps, of which two are on their way

Speeds = Mapping[str, Speed]


def seconds(
    task: HorizontalMining,
    answers: Mapping[str, Answer],
    sizes: MiningSizes,
    traffic: Traffic,
    latency_s: float,
    bytes_per_s: float | None = None,
) -> float:
    """Every step takes as long as its slowest party; all wait for each other at each."""
    speeds = {name: answer.speed for name, answer in answers.items()}
    taken = steps(task, sizes)
    total = session_s(traffic, speeds, latency_s, bytes_per_s)
    total += sum(_step_s(step, task, sizes.n_rows, speeds) for step in taken)
    if not task.hides_names and task.is_shared and task.helper is None and any(isinstance(s, Vote) for s in taken):
        total += AGREEMENT * max(speeds[name].multiply_s for name in task.compute)
    if not task.hides_names and not task.is_verified and any(isinstance(step, Union) for step in taken):
        total += (len(answers) - 1) * AGREEMENT / 2 * max(speed.multiply_s for speed in speeds.values())
    return total + max(_counting_s(sizes, answer) for answer in answers.values())


def memory(task: HorizontalMining, answer: Answer, sizes: MiningSizes, n_parties: int) -> int:
    """Packed rows, the vectors of the largest batch, the lists of the largest union, and blocks of comparisons."""
    taken = steps(task, sizes)
    lists = max((_list_bytes(step) for step in taken), default=0)
    batch = max((step.candidates for step in taken if isinstance(step, Vote)), default=0)
    length = 2 if sizes.one_shot is None else 4
    word_bytes = 8 if task.is_shared else word_for(sizes.most_together).itemsize
    vectors = batch * (8 + 4 * length + _COPIES_OF_SUMS * word_bytes)
    columns = packed_bytes(sizes.universe, answer.rows) if answer.block_bytes is None else 0
    blocks = 0
    if task.is_shared and answer.party in task.computing:
        comparisons = [each for step in taken for each in _comparisons(step, task, n_parties, sizes.n_rows)]
        if task.helper is None and task.is_verified:
            threshold = minimum_count(task.min_support, sizes.n_rows)
            blocks = max(
                (authenticated_bytes(number, n_parties, threshold, width) for number, width in comparisons), default=0
            )
        elif task.helper is None:
            blocks = _BLOCK_BYTES * min(2 * BLOCK, max((number for number, _ in comparisons), default=0)) // BLOCK
        elif task.is_verified:
            blocks = max((verified_bytes(number, n_parties, width) for number, width in comparisons), default=0)
        else:
            blocks = max((kept_bytes(*each) for each in comparisons), default=0)
    return NODE_BYTES + rows_bytes(answer, answer.rows) + columns + vectors + lists + blocks


def rows_bytes(answer: Answer, rows: int) -> int:
    """Bytes of so many rows in memory, or of what counts them in its place."""
    return rows * ROW_BYTES if answer.block_bytes is None else answer.block_bytes


def passes_s(answers: Mapping[str, Answer], passes: int) -> float:
    """Seconds of so many passes over rows on clusters, of the slowest that publishes its time; all count at once."""
    return passes * max((answer.level_s or 0.0 for answer in answers.values()), default=0.0)


def _step_s(step: Step, task: HorizontalMining, n_rows: int, speeds: Speeds) -> float:
    match step:
        case Union(asked) if task.is_verified:
            # A candidate of w bits takes 6 w ANDs, a bit of a union one for each other party.
            ands = asked.total * (len(speeds) - 1)
            return _CHECKED * _replicated_comparison_s(-(-ands // 6), 1, task.computing, speeds)
        case Union(asked):
            return max(prefix_union_machine_s(asked, speeds).values())
        case Hidden(hidden):
            names_s = 0.0 if hidden.names is None else max(prefix_union_machine_s(hidden.names, speeds).values())
            return row_union_s(hidden.items, speeds) + names_s
        case _:
            compared_s = sum(
                _compared_s(number, width, task, speeds, n_rows)
                for number, width in _comparisons(step, task, len(speeds), n_rows)
            )
            return compared_s + _masks_s(step, task, n_rows, speeds)


def _compared_s(number: int, width: int, task: HorizontalMining, speeds: Speeds, n_rows: int) -> float:
    """Seconds of a batch, by who computes and whether it is checked."""
    if task.helper is not None:
        checked = _CHECKED if task.is_verified else 1
        return checked * _replicated_comparison_s(number, width, task.computing, speeds)
    if not task.is_verified:
        return comparison_s(number, width, task.compute, speeds)
    threshold = minimum_count(task.min_support, n_rows)
    transfers = _STREAMS + _AUTHENTICATED * authenticated_bits(number, len(speeds), threshold, width)
    return _TOGETHER * transfers * max(speeds[name].transfer_s for name in task.compute)


def comparison_s(number: int, width: int, compute: Sequence[str], speeds: Speeds, *, order: bool = True) -> float:
    """Seconds of a batched comparison: the computing parties work at the same time, at the pace of the slower."""
    work = comparison_work(number, width, order=order)
    transfers = _STREAMS + _TABLES * (work.transfers + work.triples)
    return _TOGETHER * transfers * max(speeds[name].transfer_s for name in compute)


def _replicated_comparison_s(number: int, width: int, computing: Sequence[str], speeds: Speeds) -> float:
    """Seconds of a batched decision of three computing parties, all on one machine or each waiting for the others."""
    return masked_bytes(number, width) * max(speeds[name].byte_s for name in computing)


def checked_s(and_bytes: int, computing: Sequence[str], speeds: Speeds) -> float:
    """Seconds of so many bytes of ANDs that three computing parties take and check, as of their comparisons."""
    return _CHECKED_BYTE * and_bytes * max(speeds[name].byte_s for name in computing)


def _comparisons(step: Step, task: HorizontalMining, n_parties: int, n_rows: int) -> list[tuple[int, int]]:
    """The batches that are compared, each with its width."""
    match step:
        case Vote(candidates=candidates) if task.is_shared:
            return [(candidates, bits_of(n_rows) if task.is_verified else capped_sums(task, n_parties, n_rows).width)]
        case RuleSteps() as rules:
            return [(number, rules.width) for number in rules.batches]
        case _:
            return []


def _masks_s(step: Step, task: HorizontalMining, n_rows: int, speeds: Speeds) -> float:
    """Vectors of sums masked for all peers."""
    match step:
        case Vote(candidates=candidates) if task.is_shared:
            masked = candidates * capped_sums(task, len(speeds), n_rows).word.itemsize
        case Vote(candidates=number, most=most) | Supports(itemsets=number, most=most):
            masked = number * word_for(most).itemsize
        case RuleSteps() as rules:
            masked = rules.sums * rules.word_bytes
        case _:
            return 0.0
    return (len(speeds) - 1) * masked * max(speed.byte_s for speed in speeds.values())


def unions_machine_s(task: HorizontalMining, sizes: MiningSizes, speeds: Speeds) -> dict[str, float]:
    """By party, seconds that what every two parties do takes of its machine: unions, and the alignment of items.

    Where parties may deviate three check unions, as they do all else.
    """
    found = dict.fromkeys(speeds, 0.0)
    if task.is_verified:
        return found
    for step in steps(task, sizes):
        match step:
            case Union(asked):
                taken = [prefix_union_machine_s(asked, speeds)]
            case Hidden(hidden):
                taken = [dict.fromkeys(speeds, row_union_s(hidden.items, speeds))]
                if hidden.names is not None:
                    taken.append(prefix_union_machine_s(hidden.names, speeds))
            case _:
                continue
        for of_union in taken:
            for name, seconds in of_union.items():
                found[name] += seconds
    return found


def prefix_union_machine_s(asked: AskedBits, speeds: Speeds) -> dict[str, float]:
    """By party, seconds that a union by prefixes takes of its machine: half a transfer with each other, bit by bit."""
    return {name: asked.total * (len(speeds) - 1) * speed.transfer_s / 2 for name, speed in speeds.items()}


def row_union_s(sizes: AlignmentSizes, speeds: Speeds) -> float:
    """Seconds of an alignment by union, agreements included: parties take turns, and two at a time compare."""
    pairs = list(combinations(speeds, 2))
    return matches_s(*row_union_work(sizes), pairs, compared_in_turns(sizes), speeds)


def listed_s(sizes: ListedSizes, speeds: Speeds) -> float:
    """Seconds of a union of what is listed: the alignment, and every party looks up what it has not listed."""
    pairs, (bins, width) = list(combinations(speeds, 2)), compared_both_ways(sizes)
    looked_up_s = matches_s(*listed_work(sizes), (), (0, 0), speeds)
    compared_s = 2 * sum(comparison_s(bins, width, pair, speeds, order=False) for pair in pairs)
    return row_union_s(sizes.listed, speeds) + looked_up_s + compared_s


def matches_s(
    multiplications: int,
    values: int,
    transfers: int,
    pairs: Collection[tuple[str, str]],
    of_each: tuple[int, int],
    speeds: Speeds,
) -> float:
    """Seconds of matching lists by pseudorandom functions; every party works all the time.

    Args:
        multiplications: On the group, without those of agreements.
        values: Of pseudorandom functions.
        transfers: Beside those of comparisons.
        pairs: That agree and compare, one after the other.
        of_each: How many words each pair compares, and their bits.
        speeds: By party.
    """
    compared_s = sum(comparison_s(*of_each, pair, speeds, order=False) for pair in pairs)
    taken = (values * _VALUE_TRANSFERS + transfers) * max(speed.transfer_s for speed in speeds.values())
    multiplied = multiplications + AGREEMENT * len(pairs)
    return compared_s + taken + multiplied * max(speed.multiply_s for speed in speeds.values())


def _counting_s(sizes: MiningSizes, answer: Answer) -> float:
    """Pairs along rows or along columns, whichever is quicker; longer itemsets along columns.

    The one-shot strategy counts its own pairs and itemsets before the common ones. A cluster passes over all rows for
    each length, whatever it counts, and once more for as many candidates as its node has counts of at a time.
    """
    if answer.level_s is not None:
        return passes_s({answer.party: answer}, _passes(sizes))
    pairs = n_pairs(sizes.universe) if sizes.one_shot is not None else sum(sizes.candidates[:1])
    longer = 2 * sizes.closure if sizes.one_shot is not None else sum(sizes.candidates[1:])
    if sizes.rules:
        longer += sum(sizes.frequent[1:])  # which are counted once more, in the order of the result
    speed, rows = answer.speed, answer.rows
    candidate_s = speed.candidate_s * max(rows, 1) / MEASURED_ROWS
    along_rows = rows * speed.row_pairs_s if rows else float("inf")
    return rows * speed.row_s + min(pairs * candidate_s, along_rows) + longer * candidate_s


def _passes(sizes: MiningSizes) -> int:
    if sizes.one_shot is None:
        pairs, longer = sum(sizes.candidates[:1]), list(sizes.candidates[1:])
    else:
        pairs, longer = n_pairs(sizes.universe), [*sizes.frequent[2:], sizes.closure]
    if sizes.rules:
        longer.append(sum(sizes.frequent[1:]))
    return -(-pairs // MOST_COUNTS) + sum(-(-number // SETS_AT_ONCE) for number in longer)


def session_s(traffic: Traffic, speeds: Speeds, latency_s: float, bytes_per_s: float | None) -> float:
    """What a session takes beside its parties' work: to begin, to wait for messages, and to move them."""
    moved = max(moving_s(traffic, name, speed, bytes_per_s) for name, speed in speeds.items())
    return SETTLE_S + traffic.rounds * latency_s + moved


def moving_s(traffic: Traffic, party: str, speed: Speed, bytes_per_s: float | None = None) -> float:
    """A party's frames written, hashed and read, and on their way where the job says what the network carries."""
    sent, received = traffic.bytes_sent(party), traffic.bytes_received(party)
    on_the_way = 0.0 if bytes_per_s is None else max(sent, received) / bytes_per_s  # both ways at once
    return (sent + received) * speed.frame_byte_s + traffic.frames(party) * _CALL * speed.frame_s + on_the_way


def _list_bytes(step: Step) -> int:
    """Bytes of the bits of a question, or of the lists of a hidden universe."""
    match step:
        case Union(asked):
            return _COPIES_OF_BITS * max(asked.questions)
        case Hidden(hidden):
            return max(row_union_bytes(hidden.items), 0 if hidden.names is None else _list_bytes(Union(hidden.names)))
        case _:
            return 0
