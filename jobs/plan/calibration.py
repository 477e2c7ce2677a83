"""How fast this machine is at what a job consists of: a short measurement on made-up data.

It takes about half a second, whatever the machine. The parties of a job are asked at once, so that those which
share a machine measure what each of them will get of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Final, TypeVar

import numpy as np

from crypto.primitives.bit_matrix import ROWS
from crypto.primitives.correlation_robust import hash_blocks
from crypto.primitives.groups.commutative import CommutativeKey
from crypto.primitives.groups.ristretto255 import UNIFORM_BYTES, from_uniform_bytes
from crypto.primitives.randomness import Randomness
from crypto.primitives.shares.masks import SECRET_BYTES, add_masks
from crypto.protocols.alignment.layers import KERNEL_POINTS
from crypto.protocols.transfers.base_ot import KEY_BYTES
from crypto.protocols.transfers.extension_codes import block_count
from crypto.protocols.transfers.extension_seeds import DEFAULT_FIELD_BITS, ReceiverSeeds, SenderSeeds, Told
from crypto.protocols.transfers.ot_extension import BATCH
from link.executor import Executor
from link.transcripts.transcript import Chain, header_of
from mining.data.items.bitmaps import pack, words
from mining.data.transactions import Transactions
from mining.pairs import count_along_columns, count_along_rows, n_pairs
from protos.v1 import plan_pb2
from protos.v1.link_pb2 import Frame

T = TypeVar("T")

_MULTIPLY_S, _MASK_S, _FRAME_S, _COUNT_S, _TRANSFER_S = 0.14, 0.04, 0.06, 0.08, 0.08
_MASKED_BYTES: Final = 1 << 18
_BODY_BYTES: Final = 1 << 16
_ITEMS, _ITEMS_A_ROW = 64, 10
_HEAD = bytes(32)  # of a chain
_MOST_WORDS: Final = 1 << 20  # that are counted at a time: a few milliseconds
MEASURED_ROWS: Final = 10_000  # that are made up


@dataclass(frozen=True)
class Speed:
    """Seconds of one operation, on all cores where the work is spread over them.

    Attributes:
        multiply_s: A group multiplication, all cores at work.
        byte_s: One byte of a vector masked for one peer.
        frame_byte_s: One byte of a frame written, hashed and read.
        frame_s: A frame without content, the same; its way through gRPC and TLS not included.
        candidate_s: One candidate counted in `MEASURED_ROWS` rows.
        row_s: One row encoded anew and packed.
        row_pairs_s: The pairs of one row of ten items counted, row by row.
        transfer_s: One random oblivious transfer of an extension, the sender's half and the receiver's on one core.
    """

    multiply_s: float
    byte_s: float
    frame_byte_s: float
    frame_s: float
    candidate_s: float
    row_s: float
    row_pairs_s: float
    transfer_s: float


async def measure(executor: Executor) -> Speed:
    """Measures this machine, on work that is always the same.

    Args:
        executor: As jobs use it.
    """
    random = Randomness.from_os()
    uniform = np.frombuffer(random.bytes(KERNEL_POINTS * UNIFORM_BYTES), np.uint8).reshape(KERNEL_POINTS, -1)
    points = from_uniform_bytes(uniform)
    key = CommutativeKey.generate(random)
    multiply = await _spread(executor, lambda: key.encrypt(points), _MULTIPLY_S)
    secret = {"peer": random.bytes(SECRET_BYTES)}
    vector = np.zeros(_MASKED_BYTES // 8, np.uint64)
    mask, empty, full, row, row_pairs, candidate, transfer = await _aside(executor, lambda: _alone(vector, secret))
    return Speed(
        multiply_s=multiply / KERNEL_POINTS,
        byte_s=mask / _MASKED_BYTES,
        frame_byte_s=max(full - empty, 0.0) / _BODY_BYTES,
        frame_s=empty,
        candidate_s=candidate,
        row_s=row,
        row_pairs_s=row_pairs,
        transfer_s=transfer,
    )


def _alone(vector: np.ndarray, secret: dict[str, bytes]) -> tuple[float, ...]:
    mask = _repeated(lambda: add_masks(vector, secret, "me", b"calibration"), _MASK_S)
    empty = _repeated(lambda: _carry(b""), _FRAME_S / 2)
    body = bytes(_BODY_BYTES)
    full = _repeated(lambda: _carry(body), _FRAME_S / 2)
    rows = MEASURED_ROWS
    data = _made_up(rows)
    row = _repeated(lambda: pack(data.onto(data.items)), _COUNT_S / 3) / rows
    row_pairs = _repeated(lambda: count_along_rows(data), _COUNT_S / 3) / rows
    columns = pack(data)
    counted = max(2, min(_ITEMS, int((2 * _MOST_WORDS / words(rows)) ** 0.5)))
    each = _repeated(lambda: count_along_columns(columns[:counted]), _COUNT_S / 3) / n_pairs(counted)
    return mask, empty, full, row, row_pairs, each, transfer_s()


def transfer_s() -> float:
    """Both halves of an extension between two parties that this machine plays: random seeds are as good as agreed ones.

    Δ is zero, so that the sender's seeds are all of the receiver's but the first of each block.
    """
    random = Randomness.from_os()
    blocks, leaves = block_count(DEFAULT_FIELD_BITS), 1 << DEFAULT_FIELD_BITS
    seeds = np.frombuffer(random.bytes(blocks * leaves * KEY_BYTES), np.uint8).reshape(blocks, leaves, KEY_BYTES)
    sender, receiver = SenderSeeds(seeds, bytes(ROWS // 8), "receiver"), ReceiverSeeds(seeds)
    choices = np.frombuffer(random.bytes(BATCH // 8), np.uint8)

    def both_halves() -> None:
        batch = receiver.expand(choices)
        hash_blocks(batch.rows, 0, 0, np.zeros((1, 2), np.uint64))
        told = Told(batch.corrections, _HEAD, batch.check(_HEAD))
        hash_blocks(sender.expand(told), 0, 0, sender.offsets(1))

    return _repeated(both_halves, _TRANSFER_S) / BATCH


def _carry(body: bytes) -> None:
    """A frame from its sender to its receiver, but for the network."""
    frame = Frame(session=bytes(32), sender="party", receiver="other", lane="/task/level-1", type="Opening", body=body)
    for each in (frame, Frame.FromString(frame.SerializeToString())):
        Chain().add(header_of(each), body)


def _made_up(rows: int) -> Transactions:
    """Rows of as many items each, spread evenly."""
    first = np.arange(rows, dtype=np.int64)[:, None]
    items = np.sort((first + np.arange(_ITEMS_A_ROW) * (_ITEMS // _ITEMS_A_ROW)) % _ITEMS, axis=1)
    offsets = np.arange(rows + 1, dtype=np.int64) * _ITEMS_A_ROW
    return Transactions(tuple(f"{item:02}" for item in range(_ITEMS)), offsets, items.astype(np.int32).reshape(-1))


def _repeated(work: Callable[[], object], slot_s: float) -> float:
    """Seconds of one of as many runs as fit the slot."""
    begin, runs, passed = time.perf_counter(), 0, 0.0
    while passed < slot_s:
        work()
        runs, passed = runs + 1, time.perf_counter() - begin
    return passed / runs


async def _spread(executor: Executor, work: Callable[[], object], slot_s: float) -> float:
    """Seconds of one run where as many run at once as the executor has workers."""
    begin = time.perf_counter()
    runs: list[int] = list(await executor.map(lambda _: _runs_until(work, begin + slot_s), range(executor.workers)))
    return (time.perf_counter() - begin) / sum(runs)


def _runs_until(work: Callable[[], object], end: float) -> int:
    runs = 0
    while runs == 0 or time.perf_counter() < end:
        work()
        runs += 1
    return runs


async def _aside(executor: Executor, work: Callable[[], T]) -> T:
    (result,) = await executor.map(lambda _: work(), [None])
    return result


def speed_message(speed: Speed) -> plan_pb2.Speed:
    """The speed as a message."""
    return plan_pb2.Speed(**asdict(speed))
