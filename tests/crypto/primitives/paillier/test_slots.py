from __future__ import annotations

import numpy as np
import pytest
from gmpy2 import mpz
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.primitives.paillier.slots import STATISTICAL_BITS, Masking, SlotLayout, fit
from crypto.primitives.randomness import Randomness
from tests.crypto.protocols.two_party_world import assert_uniform

MASKINGS = st.sampled_from(["each", "whole"])


@st.composite
def layouts(draw: st.DrawFn) -> SlotLayout:
    masking: Masking = draw(MASKINGS)
    largest = draw(st.sampled_from([1, 2, 255, 256, 2**17 - 1, 2**17, 2**23 - 1]) | st.integers(1, 2**23 - 1))
    layout, _ = fit(draw(st.integers(1, 60)), largest, masking, draw(st.sampled_from([300, 2047, 3071])))
    return layout


def numbers(layout: SlotLayout, count: int, seed: int, *, top: bool) -> np.ndarray:
    shape = (count, layout.rows, layout.slots)
    if top:
        return np.full(shape, layout.largest, np.uint64)
    return np.random.default_rng(seed).integers(0, layout.largest + 1, shape).astype(np.uint64)


# -- bounds ------------------------------------------------------------------------------------------------------------
@settings(max_examples=100)
@given(layout=layouts())
def test_the_largest_sums_and_masks_fit(layout: SlotLayout) -> None:
    """All extremes at once overflow neither a slot under a mask of its own, nor a block, nor the plaintext."""
    all_slots = sum(layout.largest << (slot * layout.width) for slot in range(layout.slots))
    if layout.masking == "each":
        assert layout.largest + (1 << (layout.largest.bit_length() + STATISTICAL_BITS)) - 1 < 1 << layout.width
        mask = sum(((1 << (layout.width - 1)) - 1) << (slot * layout.width) for slot in range(layout.slots))
    else:
        assert layout.largest < 1 << layout.width
        mask = (1 << (layout.slots_bits + STATISTICAL_BITS)) - 1
    assert all_slots + mask < 1 << layout.block_bits
    assert layout.rows * layout.block_bits <= layout.plaintext_bits


def test_one_bit_less_is_refused() -> None:
    for masking, bits in (("whole", 2 * (4 * 5 + 41)), ("each", 2 * 4 * (5 + 41))):
        SlotLayout(4, 2, 31, masking, bits)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="do not fit"):
            SlotLayout(4, 2, 31, masking, bits - 1)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="do not fit"):
            SlotLayout(4, 2, 32, masking, bits)  # type: ignore[arg-type]


def test_slots_have_at_most_a_word() -> None:
    assert SlotLayout(1, 1, 2**23 - 1, "each", 2047).width == 64
    with pytest.raises(ValueError, match="65 bits under masks, 64 are the most"):
        SlotLayout(1, 1, 2**23, "each", 2047)


@pytest.mark.parametrize(("slots", "rows", "largest"), [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_layouts_hold_something(slots: int, rows: int, largest: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        SlotLayout(slots, rows, largest, "whole", 2047)


@settings(max_examples=60)
@given(
    columns=st.integers(1, 400), largest=st.integers(1, 2**23 - 1), masking=MASKINGS, bits=st.sampled_from([2047, 3071])
)
def test_fitting_uses_the_room(columns: int, largest: int, masking: Masking, bits: int) -> None:
    layout, groups = fit(columns, largest, masking, bits)
    assert (groups - 1) * layout.slots < columns <= groups * layout.slots
    with pytest.raises(ValueError, match="do not fit"):  # no further row
        SlotLayout(layout.slots, layout.rows + 1, largest, masking, bits)
    if groups > 1:  # nor fewer groups
        with pytest.raises(ValueError, match="do not fit"):
            SlotLayout(-(-columns // (groups - 1)), 1, largest, masking, bits)


@pytest.mark.parametrize(
    ("columns", "masking", "bits", "expected"),
    [
        (50, "whole", 2047, (50, 2, 1)),  # 17-bit counts of 100,000 rows
        (50, "whole", 3071, (50, 3, 1)),
        (50, "each", 2047, (25, 1, 2)),  # 58 bits a slot: 35 slots
        (52, "each", 3071, (52, 1, 1)),
        (53, "each", 3071, (27, 1, 2)),
        (1, "whole", 2047, (1, 35, 1)),
    ],
)
def test_layouts_of_a_hundred_thousand_rows(
    columns: int, masking: Masking, bits: int, expected: tuple[int, int, int]
) -> None:
    layout, groups = fit(columns, 100_000, masking, bits)
    assert (layout.slots, layout.rows, groups) == expected


def test_a_column_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        fit(1, 1000, "whole", 40)


# -- packing -----------------------------------------------------------------------------------------------------------
@settings(max_examples=60)
@given(layout=layouts(), count=st.integers(0, 4), seed=st.integers(0, 2**32), top=st.booleans())
def test_packing_puts_numbers_in_their_places(layout: SlotLayout, count: int, seed: int, top: bool) -> None:
    values = numbers(layout, count, seed, top=top)
    plaintexts = layout.pack(values)
    expected = [
        sum(
            int(values[i, row, slot]) << (row * layout.block_bits + slot * layout.width)
            for row in range(layout.rows)
            for slot in range(layout.slots)
        )
        for i in range(count)
    ]
    assert plaintexts == expected
    assert (layout.unpack(plaintexts * layout.rows) == wanted(layout, values)).all()


def wanted(layout: SlotLayout, values: np.ndarray) -> np.ndarray:
    """What `unpack` makes of all plaintexts, given ρ times in a row: of every ρ of them block r of the r-th."""
    given = np.concatenate([values] * layout.rows)
    picked = given[np.arange(len(given)), np.arange(len(given)) % layout.rows]
    words = picked.reshape(-1, layout.rows, layout.slots)
    if layout.masking == "each":
        return words.sum(axis=1, dtype=np.uint64)  # type: ignore[no-any-return]
    numbers = [sum(int(word) << (slot * layout.width) for slot, word in enumerate(row)) for row in picked]
    sums = [sum(numbers[start : start + layout.rows]) for start in range(0, len(numbers), layout.rows)]
    keep = (1 << layout.width) - 1
    slots = [[total >> (slot * layout.width) & keep for slot in range(layout.slots)] for total in sums]
    return np.array(slots, np.uint64).reshape(-1, layout.slots)


def test_only_numbers_in_range_are_packed() -> None:
    layout = SlotLayout(2, 1, 7, "whole", 200)
    for wrong in ([[[8, 0]]], [[[-1, 0]]]):
        with pytest.raises(ValueError, match="from 0 to 7"):
            layout.pack(np.array(wrong))
    with pytest.raises(ValueError, match="2 slots are packed"):
        layout.pack(np.zeros((1, 1, 3), np.uint8))


@settings(max_examples=50)
@given(layout=layouts(), rows=st.integers(1, 30), seed=st.integers(0, 2**32), ones=st.booleans())
def test_partial_sums_hold_the_sum_over_all_rows(layout: SlotLayout, rows: int, seed: int, ones: bool) -> None:
    """Σ_t y_r·C_t for every place r, under masks, as the evaluator makes them: shares, and for "whole" sum + β."""
    rng = np.random.default_rng(seed)
    rows = min(rows, layout.largest)
    plaintexts = -(-rows // layout.rows)
    x = np.zeros((plaintexts * layout.rows, layout.slots), np.int64)
    y = np.zeros(plaintexts * layout.rows, np.int64)
    x[:rows] = 1 if ones else rng.integers(0, 2, (rows, layout.slots))
    y[:rows] = 1 if ones else rng.integers(0, 2, rows)
    packed = layout.pack(x.reshape(plaintexts, layout.rows, layout.slots))
    factors = y.reshape(plaintexts, layout.rows)
    partial = [
        sum((mpz(int(factors[t, r])) * packed[t] for t in range(plaintexts)), mpz(0)) for r in range(layout.rows)
    ]
    want = (y @ x).astype(np.uint64)
    assert (layout.unpack(partial)[0] == want).all()

    masks, slots = layout.masks(1, Randomness.from_seed(seed))
    masked = [total + mask for total, mask in zip(partial, masks, strict=True)]
    assert max(masked) < mpz(1) << layout.plaintext_bits
    difference = layout.unpack(masked)[0] - slots[0]
    if layout.masking == "each":
        assert (difference == want).all()  # modulo 2^64
    else:
        modulus = np.uint64((1 << layout.width) - 1)
        assert (((difference - want) & modulus) <= 1).all()
        assert difference[0] & modulus == want[0]


def test_masks_are_uniform_and_cover_every_block() -> None:
    """Chi-square of the bytes of every block's masks, errors 1e-6 each."""
    for masking in ("each", "whole"):
        layout = SlotLayout(8, 2, 255, masking, 2047)  # type: ignore[arg-type]
        masks, slots = layout.masks(400, Randomness.from_seed(masking.encode()))
        assert (layout.unpack(masks) == slots).all()
        for block in range(layout.rows):
            of_block = [int(mask >> block * layout.block_bits) & ((1 << layout.block_bits) - 1) for mask in masks]
            if masking == "whole":
                octets = b"".join(mask.to_bytes(14, "little")[:13] for mask in of_block)  # 8 · 8 + 40 bits
                assert max(of_block) < 1 << 104
            else:
                size, keep = layout.width, (1 << 48) - 1
                each = [mask >> slot * size & ((1 << size) - 1) for mask in of_block for slot in range(8)]
                assert max(each) <= keep
                octets = b"".join(value.to_bytes(6, "little") for value in each)
            assert_uniform(np.frombuffer(octets, np.uint8))


def test_masks_are_fresh() -> None:
    layout = SlotLayout(3, 2, 100, "whole", 2047)
    random = Randomness.from_seed(1)
    drawn = [mask for _ in range(3) for mask in layout.masks(2, random)[0]]
    assert len(set(drawn)) == 12
