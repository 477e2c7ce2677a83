"""Calls of the products on encrypted columns, for its tests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Literal

import numpy as np
from gmpy2 import mpz
from hypothesis import strategies as st
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import pack_bits
from crypto.primitives.paillier.ciphertexts import Ciphertexts, values_of
from crypto.primitives.shares.additive import reconstruct
from crypto.protocols.comparison.comparison import width_for
from crypto.protocols.paillier.dot import declared, evaluate_opened, hold_opened
from crypto.protocols.paillier.kept import KeptColumns, KeptRows, evaluate_kept, hold_kept
from link.disclosure import Declared
from link.session import Session
from protos.v1.link_pb2 import Frame
from protos.v1.paillier_pb2 import EncryptedRows, MaskedProducts
from tests.crypto.protocols.two_party_world import A, B
from tests.paillier_world import empty_pool, full_key, residue_part
from tests.world import below, run_parties

BITS = 2048
LABEL = "products"
KEY = full_key()

Bits = NDArray[np.bool_]
Part = Callable[[Session], Awaitable[Any]]
Result = Literal["opened", "doubled"]


def holder(result: Result, columns: Bits, pairs: Any, **options: Any) -> Part:
    rows, packed, pool = columns.shape[1], pack_bits(columns), empty_pool()
    if result == "opened":
        return lambda s: hold_opened(s.lane("dot"), B, KEY, pool, packed, rows, pairs, label=LABEL, **options)
    return lambda s: hold_kept(s.lane("dot"), B, KEY, pool, KeptColumns(rows, BITS), packed, pairs, None, **options)


def evaluator(result: Result, columns: Bits, pairs: Any, **options: Any) -> Part:
    rows, packed = columns.shape[1], pack_bits(columns)
    if result == "opened":
        return lambda s: evaluate_opened(s.lane("dot"), A, packed, rows, pairs, label=LABEL, key_bits=BITS, **options)
    kept = KeptRows(KeptColumns(rows, BITS))
    return lambda s: evaluate_kept(s.lane("dot"), A, kept, packed, pairs, None, **options)


def run(
    one: Part,
    other: Part,
    *,
    frames: list[Frame] | None = None,
    allowed: Iterable[Declared] | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    labels = [declared(LABEL, A, 10_000, when="at the end")] if allowed is None else allowed
    return run_parties(
        (A, B), {A: one, B: other}, observe=below("/dot", frames), declared=labels, seed=seed, deadline_s=60
    )


def both(result: Result, a: Bits, b: Bits, pairs: Any, **options: Any) -> dict[str, Any]:
    return run(holder(result, a, pairs), evaluator(result, b, pairs), **options)


def products(result: Result, out: dict[str, Any], rows: int) -> NDArray[np.uint64]:
    """From what the two have; of doubled shares also whether β is a bit."""
    if result == "opened":
        assert out[B] is None
        return out[A]  # type: ignore[no-any-return]
    doubled = reconstruct([out[A].share, out[B].share]) & np.uint64((1 << width_for(2 * rows + 1)) - 1)
    return doubled >> np.uint64(1)


def columns(rng: np.random.Generator, number: int, rows: int, kinds: Iterable[str]) -> Bits:
    made = {
        "empty": lambda: np.zeros(rows, np.bool_),
        "constant": lambda: np.ones(rows, np.bool_),
        "sparse": lambda: rng.random(rows) < 0.1,
        "dense": lambda: rng.random(rows) < 0.7,
    }
    names = list(kinds)
    return np.stack([made[names[i % len(names)]]() for i in range(number)])


KINDS = st.lists(st.sampled_from(["empty", "constant", "sparse", "dense"]), min_size=1, max_size=4)


def replies_of(frames: Iterable[Frame]) -> list[mpz]:
    kind = MaskedProducts.DESCRIPTOR.full_name
    data = b"".join(MaskedProducts.FromString(f.body).data for f in frames if f.type == kind)
    return values_of(KEY.public, data)


def rows_of(frames: Iterable[Frame]) -> list[mpz]:
    kind = EncryptedRows.DESCRIPTOR.full_name
    return values_of(KEY.public, b"".join(EncryptedRows.FromString(f.body).data for f in frames if f.type == kind))


def residue_parts(ciphertexts: Ciphertexts) -> list[Any]:
    plaintexts = KEY.decrypt(ciphertexts)
    return [residue_part(KEY, int(c), m) for c, m in zip(ciphertexts.values, plaintexts, strict=True)]
