"""Wrong keys, rows, replies and calls of the products are refused, and their sender is named."""

from __future__ import annotations

import numpy as np
import pytest

from crypto.primitives.bit_matrix import pack_bits
from crypto.primitives.paillier.ciphertexts import encrypt
from crypto.primitives.paillier.pool import ZeroPool
from crypto.primitives.paillier.zeros import OwnerZeros
from crypto.primitives.randomness import Randomness
from crypto.protocols.paillier.arrangement import Arrangement
from crypto.protocols.paillier.dot import hold_opened
from crypto.protocols.products.ot_matrix import all_pairs
from link.session import Session
from protos.v1.link_pb2 import Frame
from protos.v1.paillier_pb2 import EncryptedRows, MaskedProducts, PaillierKey
from tests.crypto.protocols.paillier.calls import BITS, KEY, LABEL, evaluator, holder, run
from tests.crypto.protocols.two_party_world import A, B
from tests.errors import fails
from tests.paillier_world import empty_pool, small_key

ONES, PAIRS = np.ones((2, 9), np.bool_), all_pairs(2, 2)


def test_masks_of_other_products_are_noticed() -> None:
    async def cheating(session: Session) -> None:
        lane = session.lane("dot")
        await lane.recv(A, PaillierKey)
        await lane.recv(A, EncryptedRows)
        zeros = empty_pool()
        drawn = await zeros.draw(2, Randomness.from_seed(1), session)
        await lane.send_array(A, MaskedProducts, np.frombuffer(encrypt(KEY.public, [5, 5], drawn).to_bytes(), np.uint8))
        await lane.open(LABEL, np.full(4, 1, np.uint64), [A])  # of slots that hold 0

    with fails("E402") as caught:
        run(holder("opened", ONES, PAIRS), cheating)
    assert caught.value.party == B


def test_wrong_calls_are_refused_before_anything_leaves() -> None:
    frames: list[Frame] = []
    for pairs in (np.array([[2, 0]]), np.array([[-1, 0]]), np.empty((0, 2), np.int64)):
        with pytest.raises(ValueError, match=r"outside the 2|at least one"):
            run(holder("opened", ONES, pairs), evaluator("opened", ONES, np.array([[0, 0]])), frames=frames)
    random = Randomness.from_seed(1)
    other = ZeroPool(OwnerZeros.of(small_key(), random))
    with pytest.raises(TypeError, match="a pool under the key itself"):
        run(
            lambda s: hold_opened(s.lane("dot"), B, KEY, other, pack_bits(ONES), 9, PAIRS, label=LABEL),
            evaluator("opened", ONES, PAIRS),
            frames=frames,
        )
    assert [f for f in frames if f.sender == A] == []


def test_more_rows_than_slots_can_count_are_refused() -> None:
    Arrangement.of(2**23 - 1, PAIRS[1:], BITS)
    with pytest.raises(ValueError, match="65 bits under masks"):
        Arrangement.of(2**23, PAIRS[1:], BITS)
