"""Seeds of an oblivious-transfer extension: what two parties agree on once and then expand into millions of transfers.

The extension's sender holds a secret Δ in blocks of k bits; the receiver holds, for each block, 2^k seeds, of which the
sender knows all but the one at position Δ_b. Both expand their seeds' streams: the receiver sums all of a block's
streams into u_b and, weighted by their positions, into v_b; the sender gets the same sums over positions relative to
Δ_b. Then w = v ⊕ Δ·u block by block, and the receiver corrects u to its choices c: the sender ends with a row q of 128
bits for every transfer, the receiver with t = q ⊕ c·Δ.

A choice is a bit, or a symbol of s = 3 bits, encoded by a code word with a bit for each block (`extension_codes`): c·Δ
is then Δ wherever the code word has ones. The row of any other choice x lies (x ⊕ c)·Δ away from t, and the code leaves
128 secret bits in that: one row makes a transfer of one of 2^s.

The sender checks the seeds (`seed_trees`), and every batch of corrections before it gives its rows (`extension_check`).

Rounds: `prepare_sending`/`prepare_receiving` 2 (1 with k = 1), once per pair of parties, direction and session.

Adversary: malicious, in the random oracle and ideal cipher model. A receiver that deviates is caught unless it guesses
    bits of Δ, and then knows those it has guessed. A sender says nothing after the base transfers.
Costs: 7·k·⌈32/k⌉ base transfers, k·⌈128/k⌉ where all choices are bits; ⌈128/k⌉ bits a transfer of one of 2, 7·⌈32/k⌉
    one of 8, and 2^k times as much keystream at the receiver. k = 1 is the classic extension, k = 2 halves the traffic
    at equal work, larger k trade work for traffic.

Source: Roy, "SoftSpokenOT: Quieter OT Extension from Small-Field Silent VOLE in the Minicrypt Model", CRYPTO 2022,
sections 3 and 4 for bits (k = 1 is Ishai, Kilian, Nissim and Petrank, CRYPTO 2003, as optimised by Asharov, Lindell,
Schneider and Zohner, CCS 2013) and 5 for symbols (p = 2 and a linear code); puncturable seeds as in Boyle et
al., "Efficient Two-Round OT Extension and Silent Non-Interactive Secure Computation", CCS 2019, Figure 13.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, NamedTuple, Never

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import ROWS, Rows128, pack_bits, transpose, unpack_bits
from crypto.primitives.hashing import encode_labels
from crypto.protocols.transfers.base_ot import KEY_BYTES, receive_keys, send_keys
from crypto.protocols.transfers.extension_check import BatchCheck, extra
from crypto.protocols.transfers.extension_codes import CODES, SYMBOL_BITS, Code, block_count, multiples
from crypto.protocols.transfers.extension_streams import BLOCK_BYTES, Ciphers, Streams
from crypto.protocols.transfers.extension_sums import WeightedSums, Words, sums_of_rows
from crypto.protocols.transfers.seed_trees import HASH_BYTES, Seeds, agrees, checked_by, grown, punctured, sums_shape
from link.errors import InternalError, ProtocolViolation
from link.session import Session
from protos.v1.oblivious_transfer_pb2 import TreeCheck, TreeSums

FIELD_BITS: Final = (1, 2, 3, 4, 8)  # values of k; larger ones would take too much keystream
DEFAULT_FIELD_BITS: Final = 3
SHORT_BYTES: Final = 1 << 11  # of a stream: all streams' parts stay in the second-level cache together
AGREED_BYTES: Final = 32
_LABEL_BITS: Final = 48
_START_BYTES: Final = (128 + _LABEL_BITS) // 8  # a counter block and a label's part of the domain

# An extension takes and frees some megabytes a batch. The C library of Linux gives each back to the system, and half of
# the time would go into page faults, until an array this large has once been freed; it touches no memory.
np.empty(31 << 20, np.uint8)

Packed = NDArray[np.uint8]


class Expanded(NamedTuple):
    """A batch at the receiver.

    Attributes:
        corrections: For the sender, shape (bytes,), `corrections_bytes(k, n, s)` of them.
        rows: The receiver's rows t, shape (n, 2).
        check: Gives, after the corrections have been sent, what follows them, `check_bytes(k, s)` bytes; takes what
            the challenge is drawn from, the `head_sent` of the lane.
    """

    corrections: Packed
    rows: Rows128
    check: Callable[[bytes], Packed]


class Told(NamedTuple):
    """What the receiver has told the sender of a batch.

    Attributes:
        corrections: As of `Expanded`.
        bound: What the receiver has drawn the challenge from: the `head_read` of the lane after them.
        check: What has followed.
    """

    corrections: Packed
    bound: bytes
    check: Packed


class ReceiverSeeds:
    """The receiver's half: all streams. To be used by one task at a time, in the same order as the sender's.

    Attributes:
        used: Transfers made so far; the next one's tweak.
        domain: Separates the tweaks of these streams from those of others under the same Δ.
    """

    __slots__ = ("_agreed", "_domains", "_masks_key", "_seeds", "_start", "_streams", "domain", "field_bits", "used")

    def __init__(
        self, seeds: Seeds, agreed: bytes = bytes(AGREED_BYTES), label: bytes = b"", streams: Streams | None = None
    ) -> None:
        """`agreed` names the agreement on these seeds, from `_agreed`; it and the label fix where the streams begin."""
        self._seeds, self._agreed, self._start = seeds, agreed, _start(agreed, label)
        # The sender lacks a seed of each block.
        self._masks_key = hashlib.sha256(b"comine extension masks 1" + seeds.tobytes()).digest()
        self._streams = streams or Streams(Ciphers(lambda block: _keys(seeds[block])), self._start[:BLOCK_BYTES])
        self.domain = _domain(self._start)
        self._domains = {self.domain}
        self.field_bits = _field_bits(seeds)
        self.used = 0

    def fork(self, label: bytes) -> ReceiverSeeds:
        """Independent streams of the same seeds for a task of its own; the sender forks under the same label.

        Args:
            label: Never used before with these seeds, not empty.

        Raises:
            InternalError: The label was used before.
        """
        streams = self._streams.fork(_start(self._agreed, label)[:BLOCK_BYTES])
        forked = ReceiverSeeds(self._seeds, self._agreed, label, streams)
        forked._domains = _claimed(self._domains, forked.domain)
        return forked

    def expand(self, choices: Packed) -> Expanded:
        """The next transfers.

        Args:
            choices: Packed choices of n transfers, a multiple of 128: bits of shape (n / 8,); or the planes of symbols,
                lowest bits first, shape (s, n / 8).
        """
        planes = self._with_extra(np.atleast_2d(choices))
        code, words = CODES[len(planes)], planes.shape[1]
        number, blocks = 64 * words - extra(self.field_bits), code.blocks(self.field_bits)
        corrections = np.empty((blocks // len(code.masks), len(code.masks), words), np.uint64)
        expanded = self._short if 8 * words <= SHORT_BYTES else self._long
        rows = expanded(code, code.encode(planes), corrections)
        check = partial(_checked, self._batch(), self.field_bits, code, planes, rows)
        self.used += number
        return Expanded(corrections.reshape(-1).view(np.uint8), _transposed(rows)[:number], check)

    def _short(self, code: Code, encoded: Words, corrected: Words) -> Words:
        parts, totals = _short_sums(self._streams, code, self.field_bits, encoded.shape[1])
        np.bitwise_xor(totals, encoded, out=corrected)
        return code.folded(parts)

    def _long(self, code: Code, encoded: Words, corrected: Words) -> Words:
        words = encoded.shape[1]
        adder = WeightedSums(self.field_bits, words)
        rows = np.empty((len(corrected), len(code.folds), self.field_bits, words), np.uint64)
        with self._streams.going_on(code.blocks(self.field_bits), 8 * words) as blocks:
            streams = iter(blocks)
            for group, group_rows in zip(corrected, rows, strict=True):
                for block, (target, plane) in enumerate(zip(group, encoded, strict=True)):
                    parts, total = adder.add_up(next(streams))
                    np.bitwise_xor(total, plane, out=target)
                    code.fold(block, parts, group_rows)
        return rows

    def _with_extra(self, choices: Packed) -> NDArray[np.uint64]:
        """The choices with random ones behind them, which the sender cannot foresee."""
        size = extra(self.field_bits) // 8
        drawn = hashlib.shake_256(self._masks_key + self._batch()).digest(len(choices) * size)
        return np.hstack([choices, np.frombuffer(drawn, np.uint8).reshape(-1, size)]).view(np.uint64)

    def _batch(self) -> bytes:
        return _batch(self._agreed, self._start, self.used)

    def __reduce_ex__(self, protocol: object) -> Never:
        raise TypeError("seeds of an extension are never copied or pickled: a copy would repeat their streams")

    def __repr__(self) -> str:
        return f"<ReceiverSeeds, {self.used} transfers made>"


class SenderSeeds:
    """The sender's half: Δ, and all streams but one a block. To be used by one task at a time.

    Attributes:
        delta: Shape (2,), the secret correlation: t = q ⊕ (choice · Δ).
        used: Transfers made so far; the next one's tweak.
        domain: Separates the tweaks of these streams from those of others under the same Δ.
    """

    __slots__ = (
        "_agreed",
        "_domains",
        "_masks",
        "_peer",
        "_secret",
        "_seeds",
        "_start",
        "_streams",
        "delta",
        "domain",
        "field_bits",
        "used",
    )

    def __init__(
        self,
        seeds: Seeds,
        delta: bytes,
        peer: str,
        agreed: bytes = bytes(AGREED_BYTES),
        label: bytes = b"",
        streams: Streams | None = None,
    ) -> None:
        """`seeds` as from `punctured`: what is at the hole is never used; `peer` is the receiver; the rest as above."""
        self._seeds, self._peer, self._agreed, self._start = seeds, peer, agreed, _start(agreed, label)
        self.domain = _domain(self._start)
        self._domains = {self.domain}
        self.field_bits = _field_bits(seeds)
        number = len(seeds) * self.field_bits
        self._secret = unpack_bits(np.frombuffer(delta, np.uint8), number).reshape(len(seeds), -1)
        self.delta: NDArray[np.uint64] = self.offsets(1)[1]
        self._masks = np.where(self._secret == 1, np.uint64(2**64 - 1), np.uint64(0))
        self._streams = streams or Streams(Ciphers(partial(_known, seeds, self._secret)), self._start[:BLOCK_BYTES])
        self.used = 0

    def fork(self, label: bytes) -> SenderSeeds:
        """Independent streams of the same seeds under the same Δ for a task of its own, as `ReceiverSeeds.fork`."""
        delta = pack_bits(self._secret.reshape(-1)).tobytes()
        streams = self._streams.fork(_start(self._agreed, label)[:BLOCK_BYTES])
        forked = SenderSeeds(self._seeds, delta, self._peer, self._agreed, label, streams)
        forked._domains = _claimed(self._domains, forked.domain)
        return forked

    def offsets(self, symbol_bits: int) -> Rows128:
        """x·Δ for each symbol x: what the row of choice x differs by from q. Shape (2^s, 2)."""
        return pack_bits(multiples(self._secret, symbol_bits)).view("<u8").astype(np.uint64)

    def expand(self, told: Told, symbol_bits: int = 1) -> Rows128:
        """The next transfers.

        Args:
            told: By the receiver.
            symbol_bits: s of the receiver's choices.

        Returns:
            The sender's rows q, shape (n, 2).

        Raises:
            ProtocolViolation: The corrections are not those of one choice a transfer; nothing of them may be used.
        """
        code = CODES[symbol_bits]
        count = code.blocks(self.field_bits)
        corrections = told.corrections.reshape(count, -1)
        batch, size = _batch(self._agreed, self._start, self.used), corrections.shape[1]
        check = BatchCheck(batch, told.bound, size, self.field_bits, code)
        rows = (self._short if size <= SHORT_BYTES else self._long)(code, corrections.view(np.uint64))
        number = 8 * size - extra(self.field_bits)
        self.used += number
        if not check.agrees(told.check.tobytes(), check.hashes_of(rows), self._masks[:count]):
            raise ProtocolViolation(
                f"the choices of {self._peer} in oblivious transfers contradict each other; its node must be checked",
                party=self._peer,
            )
        return _transposed(rows)[:number]

    def _short(self, code: Code, corrections: Words) -> Words:
        parts, _ = _short_sums(self._streams, code, self.field_bits, corrections.shape[1])
        blocks = parts.reshape(-1, *parts.shape[2:])
        blocks ^= corrections[:, None] & self._masks[: len(blocks), :, None]  # no branch on Δ
        return code.folded(parts)

    def _long(self, code: Code, corrections: Words) -> Words:
        words = corrections.shape[1]
        adder = WeightedSums(self.field_bits, words)
        rows = np.empty((code.groups(self.field_bits), len(code.folds), self.field_bits, words), np.uint64)
        masked = np.empty((self.field_bits, words), np.uint64)
        with self._streams.going_on(len(corrections), 8 * words) as blocks:
            by_block = zip(blocks, corrections, self._masks, strict=False)
            for group_rows in rows:
                for block, (streams, correction, masks) in enumerate(itertools.islice(by_block, len(code.masks))):
                    parts, _ = adder.add_up(streams)
                    parts ^= np.bitwise_and(correction, masks[:, None], out=masked)  # no branch on Δ
                    code.fold(block, parts, group_rows)
        return rows

    def __reduce_ex__(self, protocol: object) -> Never:
        raise TypeError("seeds of an extension are never copied or pickled: a copy would repeat their streams")

    def __repr__(self) -> str:
        return f"<SenderSeeds, {self.used} transfers made>"


async def prepare_receiving(
    session: Session, peer: str, *, field_bits: int = DEFAULT_FIELD_BITS, symbol_bits: int = SYMBOL_BITS
) -> ReceiverSeeds:
    """The receiver's part: streams of all seeds of all blocks.

    Args:
        session: The lane to use, fresh for this call.
        peer: The extension's sender.
        field_bits: k, public.
        symbol_bits: s of the longest choices, public; 1 takes fewer base transfers and serves for bits alone.
    """
    _check_field_bits(field_bits)
    blocks = block_count(field_bits, symbol_bits)
    zero, one = await send_keys(session.lane("base"), peer, blocks * field_bits)  # -> 1  <- 1
    by_block = (blocks, field_bits, KEY_BYTES)
    name = _agreed(session, session.me, peer)
    leaves, sums = grown(name, np.stack([zero.reshape(by_block), one.reshape(by_block)], axis=2))
    if field_bits == 1:
        return ReceiverSeeds(leaves, name)
    check = TreeCheck()
    check.sums, check.digest = checked_by(name, leaves)
    await session.send_array(peer, TreeSums, sums)  # -> 2
    await session.send(peer, check)  # -> 2
    return ReceiverSeeds(leaves, _agreed(session, session.me, peer, sums.tobytes(), check.sums, check.digest))


async def prepare_sending(
    session: Session,
    peer: str,
    *,
    field_bits: int = DEFAULT_FIELD_BITS,
    symbol_bits: int = SYMBOL_BITS,
    lowest: int | None = None,
) -> SenderSeeds:
    """The sender's part: Δ, and of every block the streams of all seeds but the one at Δ_b.

    Args:
        session: The lane to use, fresh for this call.
        peer: The extension's receiver.
        field_bits: k, public.
        symbol_bits: s of the longest choices, public; 1 takes fewer base transfers and serves for bits alone.
        lowest: Δ's lowest bit, where it is fixed, and public.

    Raises:
        MalformedMessage: The receiver's messages are not as they must be.
        ProtocolViolation: The receiver's seeds are not those of one tree a block.
    """
    _check_field_bits(field_bits)
    blocks = block_count(field_bits, symbol_bits)
    number = blocks * field_bits
    delta = session.randomness("delta").bytes(-(-number // 8))
    if lowest is not None:
        delta = bytes([delta[0] & 0xFE | lowest]) + delta[1:]
    bits = unpack_bits(np.frombuffer(delta, np.uint8), number).reshape(-1, field_bits)
    # The hole's path from the root goes along its bits from the highest down; the sender takes the other side's sums.
    path = bits[:, ::-1]
    keys = await receive_keys(session.lane("base"), peer, (1 - path).reshape(-1))  # -> 1  <- 1
    keys = keys.reshape(*path.shape, KEY_BYTES)
    shape, name = sums_shape(blocks, field_bits), _agreed(session, peer, session.me)
    if field_bits == 1:
        leaves, _ = punctured(name, keys, path, np.empty(shape, np.uint8))
        return SenderSeeds(leaves, delta, peer, name)
    sums = await session.recv_array(peer, TreeSums, np.uint8, shape)  # <- 2
    check = await session.recv(peer, TreeCheck, partial(_check_tree_check, blocks))  # <- 2
    leaves, holes = punctured(name, keys, path, sums)
    if not agrees(name, leaves, holes, check.sums, check.digest):
        raise ProtocolViolation(
            f"the seeds of {peer} for oblivious transfers contradict each other; its node must be checked", party=peer
        )
    return SenderSeeds(
        leaves, delta, peer, _agreed(session, peer, session.me, sums.tobytes(), check.sums, check.digest)
    )


def _transposed(rows: NDArray[np.uint64]) -> Rows128:
    """Of 128 rows: where k does not divide 128, what is more serves nothing."""
    return transpose(rows.reshape(-1, rows.shape[-1])[:ROWS].view(np.uint8))


def _field_bits(seeds: Seeds) -> int:
    return int(seeds.shape[1]).bit_length() - 1


def _values(bits: NDArray[np.uint8]) -> list[int]:
    """Rows of bits, lowest first, as integers."""
    weights = 1 << np.arange(bits.shape[1], dtype=np.int64)
    values: list[int] = (bits @ weights).tolist()
    return values


def _known(seeds: Seeds, secret: NDArray[np.uint8], number: int) -> list[bytes | None]:
    """The sender's keys of a block by weight, all but the one that is not known."""
    block, hole = seeds[number], _values(secret[number : number + 1])[0]
    return [None, *_keys(block[weight ^ hole] for weight in range(1, len(block)))]


def _keys(seeds: Iterable[NDArray[np.uint8]]) -> list[bytes]:
    return [seed.tobytes() for seed in seeds]


def _short_sums(streams: Streams, code: Code, field_bits: int, words: int) -> tuple[Words, Words]:
    """The sums of the next words of all blocks' streams.

    Returns:
        Weighted, shape (groups, blocks of a group, k, words); and plain, (groups, blocks of a group, words).
    """
    rows = streams.next_rows(code.blocks(field_bits), 1 << field_bits, 8 * words)
    parts, totals = sums_of_rows(rows.view(np.uint64))
    by_group = code.groups(field_bits), len(code.masks)
    return parts.reshape(*by_group, field_bits, words), totals.reshape(*by_group, words)


def _agreed(session: Session, receiver: str, sender: str, *told: bytes) -> bytes:
    """Names an agreement: whoever changes a seed after the others, or in another session, gets other streams of all.

    Without what is told of its trees it is the name of these.
    """
    labels = encode_labels("extension", session.id, session.path, receiver, sender, *told)
    return hashlib.sha256(labels).digest()


def _start(agreed: bytes, label: bytes) -> bytes:
    """A first counter block and a domain. Counters of 2^20 labels lie 2^30 blocks apart but with chance 2^-57."""
    return hashlib.sha256(b"comine extension streams 2" + agreed + label).digest()[:_START_BYTES]


def _batch(agreed: bytes, start: bytes, used: int) -> bytes:
    """Names a batch among all."""
    return b"comine extension check 1" + agreed + start + used.to_bytes(8, "little")


def _checked(batch: bytes, field_bits: int, code: Code, planes: Words, rows: Words, bound: bytes) -> Packed:
    """What a receiver sends after the corrections of a batch."""
    check = BatchCheck(batch, bound, 8 * planes.shape[1], field_bits, code)
    return np.frombuffer(check.told(planes, check.hashes_of(rows)), np.uint8)


def _check_tree_check(blocks: int, message: TreeCheck) -> None:
    if len(message.sums) != blocks * HASH_BYTES or len(message.digest) != HASH_BYTES:
        raise ValueError("the sums of a check have another size")


def _domain(start: bytes) -> int:
    return int.from_bytes(start[16:], "little")


def _claimed(domains: set[int], domain: int) -> set[int]:
    """Notes a domain among those under one Δ, so that none serves twice; of 2^10 labels two meet by chance of 2^-29."""
    if domain in domains:
        raise InternalError("streams of an extension were asked for twice under one label")
    domains.add(domain)
    return domains


def _check_field_bits(field_bits: int) -> None:
    if field_bits not in FIELD_BITS:
        raise ValueError(f"field_bits is one of {FIELD_BITS}, not {field_bits}")
