"""What the two parties of the products see: masks, and nothing of what was not asked for."""

from __future__ import annotations

import numpy as np
import pytest
from gmpy2 import mpz

from crypto.primitives.paillier.ciphertexts import Ciphertexts
from crypto.primitives.paillier.slots import STATISTICAL_BITS
from crypto.protocols.paillier import arrangement as paillier_arrangement
from crypto.protocols.paillier.arrangement import Arrangement
from crypto.protocols.paillier.dot import declared
from crypto.protocols.products.ot_matrix import all_pairs
from link.disclosure import Declared
from link.errors import UndeclaredDisclosure
from protos.v1.link_pb2 import Frame, Opening
from tests.crypto.protocols.paillier.calls import BITS, KEY, LABEL, both, replies_of, residue_parts, rows_of
from tests.crypto.protocols.two_party_world import A, B, assert_alike, assert_uniform, shapes_of
from tests.examples import slowly
from tests.paillier_world import select_sums

pytestmark = pytest.mark.turn(6)


def test_the_holder_sees_masks_where_it_has_not_asked() -> None:
    """Of 2 × 36 slots in 12 replies one pair is asked for. All others' low 40 bits are uniform to the key's holder,
    whether the products are zero or as large as they can be: chi-square of 4,300 bytes, error 1e-6 each.
    """
    a, pairs = np.ones((36, 60), np.bool_), np.array([[i, i % 12] for i in range(36)])
    seen = []
    for ones in (False, True):
        frames: list[Frame] = []
        b = np.full((12, 60), ones)
        out = both("opened", a, b, pairs, frames=frames)
        assert (out[A] == (60 if ones else 0)).all()
        layout = Arrangement.of(60, pairs, BITS).layout
        assert layout.masking == "each"
        plaintexts = KEY.decrypt(Ciphertexts(KEY.public, replies_of(frames)))
        slots = layout.unpack(plaintexts)
        octets = np.ascontiguousarray(slots).astype("<u8").view(np.uint8).reshape(*slots.shape, 8)[..., :5].reshape(-1)
        assert_uniform(octets)
        assert_uniform(octets[: len(octets) // 2])
        seen.append(octets)
        opened = [Opening.FromString(f.body) for f in frames if f.type == Opening.DESCRIPTOR.full_name]
        assert [o.number for o in opened] == [36]
        # Above a slot's mask there is nothing; above all slots neither.
        assert int(slots.max()) >> (layout.width - 1) in (0, 1)
        assert max(plaintexts).bit_length() <= layout.rows * layout.block_bits
    assert_alike(*seen)


@pytest.mark.parametrize("first", slowly([0, 1], now=[1]))
def test_every_block_that_is_decrypted_is_under_a_mask(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of products of different rows too: low bytes of each block's slots in 80 replies uniform, error 1e-6."""
    monkeypatch.setattr(paillier_arrangement, "REPLY_WORK", 0)
    rng, frames = np.random.default_rng(6), list[Frame]()
    a, b = rng.random((10, 100)) < 0.5, rng.random((20, 100)) < 0.5
    pairs = all_pairs(10, 20)[first:]
    arrangement = Arrangement.of(100, pairs, BITS)
    layout = arrangement.layout
    assert layout.rows > 3
    both("opened", a, b, pairs, frames=frames)
    plaintexts = KEY.decrypt(Ciphertexts(KEY.public, replies_of(frames)))
    size = layout.slots_bits // 8
    for block in range(layout.rows):
        of_block = [plaintext >> block * layout.block_bits for plaintext in plaintexts]
        if layout.masking == "whole":
            octets = b"".join((value & ((1 << 8 * size) - 1)).to_bytes(size, "little") for value in of_block)
        else:
            mask = (1 << STATISTICAL_BITS) - 1
            octets = b"".join(
                (value >> slot * layout.width & mask).to_bytes(5, "little")
                for value in of_block
                for slot in range(layout.slots)
            )
        assert_uniform(np.frombuffer(octets, np.uint8))


@pytest.mark.parametrize("some", [False, True])
def test_opened_masks_show_no_partial_sum(some: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key's holder has the partial sums of both places under masks, and gets the masks' sum: neither mask is it.

    Were one the same, all 120 of its differences would be partial sums, at most 30. Of uniform numbers of at least 6
    bits two thirds and more are so with a probability below 2^-20, since each is with at most 31/64.
    """
    monkeypatch.setattr(paillier_arrangement, "REPLY_WORK", 0)
    rng, frames = np.random.default_rng(8), list[Frame]()
    columns = 13 if some else 120
    a, b = rng.random((columns, 60)) < 0.9, rng.random((10, 60)) < 0.9
    pairs = all_pairs(columns, 10)[1:] if some else all_pairs(columns, 10)
    arrangement = Arrangement.of(60, pairs, BITS)
    layout = arrangement.layout
    assert layout.rows >= 2
    out = both("opened", a, b, pairs, frames=frames)
    assert (out[A] == (a.astype(int) @ b.T)[pairs[:, 0], pairs[:, 1]]).all()
    plaintexts = KEY.decrypt(Ciphertexts(KEY.public, replies_of(frames)))
    (opening,) = (Opening.FromString(f.body) for f in frames if f.type == Opening.DESCRIPTOR.full_name)
    masks = np.frombuffer(opening.values, "<u8")
    keep = np.uint64((1 << layout.width) - 1)
    for place in range(layout.rows):
        alone = [m if i % layout.rows == place else mpz(0) for i, m in enumerate(plaintexts)]
        partial = (arrangement.of_pairs(layout.unpack(alone)) - masks) & keep
        assert (partial <= 60 // layout.rows).mean() < 2 / 3


def test_a_guess_of_the_evaluators_column_is_not_confirmed() -> None:
    """The key's holder knows its ciphertexts and n's factors. Of a reply that is not made fresh the residue part is
    that of a right guess; of ours it never is, and no two replies on equal inputs have one in common.
    """
    rng = np.random.default_rng(7)
    a, b = rng.random((50, 300)) < 0.5, rng.random((1, 300)) < 0.5
    pairs = all_pairs(50, 1)
    residues = set()
    for seed in range(4):
        frames: list[Frame] = []
        both("opened", a, b, pairs, frames=frames, seed=seed)
        arrangement = Arrangement.of(300, pairs, BITS)
        layout, replies = arrangement.layout, Ciphertexts(KEY.public, replies_of(frames))
        assert layout.rows == len(replies) == 3
        rows = Ciphertexts(KEY.public, rows_of(frames))
        guess = Ciphertexts(KEY.public, [select_sums(rows, b[0].reshape(-1, 3)).values[place] for place in range(3)])
        # The guess is right: under no masks it would hold the replies' products.
        assert layout.unpack(KEY.decrypt(guess))[0].tolist() == (a.astype(int) @ b[0]).tolist()
        for reply, guessed in zip(residue_parts(replies), residue_parts(guess), strict=True):
            assert reply != guessed
            residues.add(reply)
    assert len(residues) == 12


def test_both_views_have_the_same_shape_whatever_the_bits() -> None:
    pairs, shapes = all_pairs(5, 3), []
    for fill in (False, True):
        frames: list[Frame] = []
        both("opened", np.full((5, 77), fill), np.full((3, 77), not fill), pairs, frames=frames)
        shapes.append(shapes_of(frames))
    assert shapes[0] == shapes[1]


def test_equal_rows_have_different_ciphertexts() -> None:
    frames: list[Frame] = []
    both("opened", np.zeros((50, 40), np.bool_), np.zeros((1, 40), np.bool_), all_pairs(50, 1), frames=frames)
    rows = rows_of(frames)
    assert len(set(rows)) == len(rows) > 10
    assert KEY.decrypt(Ciphertexts(KEY.public, rows)) == [0] * len(rows)


@pytest.mark.parametrize(
    "allowed",
    [
        [],
        [declared("another", A, 10, when="at the end")],
        [declared(LABEL, B, 10, when="at the end")],
        [declared(LABEL, A, 3, when="at the end")],
    ],
)
def test_undeclared_products_stay_masked(allowed: list[Declared]) -> None:
    a = b = np.ones((2, 9), np.bool_)
    frames: list[Frame] = []
    with pytest.raises(UndeclaredDisclosure):
        both("opened", a, b, all_pairs(2, 2), frames=frames, allowed=allowed)
    assert not [f for f in frames if f.type == Opening.DESCRIPTOR.full_name]
