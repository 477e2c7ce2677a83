from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.primitives.paillier import selection as selecting
from crypto.primitives.paillier.ciphertexts import Ciphertexts, encrypt
from crypto.primitives.paillier.keys import PrivateKey, generate_key
from crypto.primitives.paillier.public_key import PublicKey
from crypto.primitives.paillier.selection import SelectionWanted, check_and_select
from crypto.primitives.paillier.zeros import UniformZeros
from crypto.primitives.randomness import Randomness
from tests.paillier_world import full_key, residue_part, select_sums, small_key

N = int(small_key().public.n)
PLAINTEXTS = st.sampled_from([0, 1, N - 1, N // 2]) | st.integers(0, N - 1)


def encrypted(plaintexts: list[int], seed: int = 0, key: PrivateKey | None = None) -> Ciphertexts:
    public = (key or small_key()).public
    zeros = UniformZeros(public).make(len(plaintexts), Randomness.from_seed(seed))
    return encrypt(public, plaintexts, zeros)


def decrypted(ciphertexts: Ciphertexts) -> list[int]:
    return small_key().decrypt(ciphertexts)


# -- what can be done with ciphertexts ---------------------------------------------------------------------------------
@settings(max_examples=30)
@given(plaintexts=st.lists(PLAINTEXTS, max_size=6), seed=st.integers(0, 2**32))
def test_decryption_undoes_encryption(plaintexts: list[int], seed: int) -> None:
    ciphertexts = encrypted(plaintexts, seed)
    assert decrypted(ciphertexts) == plaintexts
    assert len(ciphertexts) == len(plaintexts)
    sent = Ciphertexts.from_bytes(ciphertexts.key, ciphertexts.to_bytes())
    assert list(sent) == list(ciphertexts)


@settings(max_examples=30)
@given(data=st.data(), x=st.lists(PLAINTEXTS, min_size=1, max_size=5))
def test_sums_and_products(data: st.DataObject, x: list[int]) -> None:
    y = data.draw(st.lists(PLAINTEXTS, min_size=len(x), max_size=len(x)))
    factors = data.draw(st.lists(st.integers(-N, N), min_size=len(x), max_size=len(x)))
    one, other = encrypted(x, 1), encrypted(y, 2)
    assert decrypted(one + other) == [(a + b) % N for a, b in zip(x, y, strict=True)]
    assert decrypted(one.plus(factors)) == [(a + b) % N for a, b in zip(x, factors, strict=True)]
    assert decrypted(one.times(factors)) == [a * k % N for a, k in zip(x, factors, strict=True)]
    assert decrypted(one.sum()) == [sum(x) % N]
    assert decrypted(one[1:]) == x[1:]


@settings(max_examples=40)
@given(
    data=st.data(), rows=st.integers(0, 13), columns=st.integers(1, 12), density=st.sampled_from([0.0, 0.1, 0.6, 1.0])
)
def test_sums_of_selected_plaintexts(data: st.DataObject, rows: int, columns: int, density: float) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    plaintexts = rng.integers(0, 1000, rows)
    selection = rng.random((rows, columns)) < density
    sums = select_sums(encrypted(plaintexts.tolist()), selection)
    assert decrypted(sums) == (plaintexts @ selection).tolist()


@pytest.mark.parametrize(("density", "tables"), [(0.1, False), (0.2, False), (0.5, True), (0.9, True)])
def test_tables_are_used_where_much_is_selected(density: float, tables: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    by_tables = selecting.by_tables
    monkeypatch.setattr(selecting, "by_tables", lambda *args: used.append(1) or by_tables(*args))
    selection = np.random.default_rng(1).random((64, 50)) < density
    sums = select_sums(encrypted([1] * 64), selection)
    assert bool(used) == tables
    assert decrypted(sums) == selection.sum(axis=0).tolist()


@pytest.mark.parametrize(("columns", "saves"), [(1, False), (30, True)])
def test_rows_that_are_selected_alike_are_multiplied_into_one(columns: int, saves: bool) -> None:
    draw = np.random.default_rng(2)
    selection = (draw.random((5, columns)) < 0.5)[draw.integers(0, 5, 64)]
    plaintexts = draw.integers(0, 100, 64)
    rows = encrypted(plaintexts.tolist())
    values, distinct = selecting.alike_as_one(rows.values, selection, rows.key.n_squared)
    assert len(values) == len(distinct) == (5 if saves else 64)
    assert decrypted(select_sums(rows, selection)) == (plaintexts @ selection).tolist()


@pytest.mark.parametrize("wrong", [-1, N])
def test_plaintexts_lie_below_n(wrong: int) -> None:
    with pytest.raises(ValueError, match="between 0 and n"):
        encrypted([wrong])


def test_numbers_of_a_batch_agree() -> None:
    ciphertexts = encrypted([1, 2])
    for wrong in (
        lambda: ciphertexts + encrypted([1]),
        lambda: ciphertexts.plus([1]),
        lambda: ciphertexts.times([1, 2, 3]),
        lambda: encrypt(small_key().public, [1, 2], ciphertexts.values[:1]),
    ):
        with pytest.raises(ValueError, match=r"does not combine|are not encrypted"):
            wrong()


# -- fresh ciphertexts -------------------------------------------------------------------------------------------------
def test_rerandomised_ciphertexts_are_fresh() -> None:
    """Neither the ciphertext nor its residue is what it was: who knows the operands cannot confirm a guess."""
    key, operands = small_key(), encrypted([5, 7, 9])
    total = operands.sum()
    guess = operands.sum()  # what somebody gets who knows the operands and guesses rightly
    assert total.values == guess.values
    zeros = [UniformZeros(key.public).make(1, Randomness.from_seed(seed)) for seed in range(3)]
    fresh = [total + Ciphertexts(key.public, zero) for zero in zeros]
    assert [decrypted(f) for f in fresh] == [[21]] * 3
    residues = {residue_part(key, c, 21) for f in fresh for c in f}
    assert len(residues | {residue_part(key, guess.values[0], 21)}) == 4


# -- misuse ------------------------------------------------------------------------------------------------------------
def test_ciphertexts_under_different_keys_do_not_combine() -> None:
    other = generate_key(2048, Randomness.from_seed(9))
    with pytest.raises(TypeError, match="different keys"):
        encrypted([1], key=full_key()) + encrypted([1], key=other)


def test_ciphertexts_are_no_numbers() -> None:
    ciphertexts = encrypted([1])
    with pytest.raises(TypeError, match="not compared"):
        _ = ciphertexts == ciphertexts
    with pytest.raises(TypeError, match="plaintext goes through plus"):
        _ = ciphertexts + 1  # type: ignore[operator]
    with pytest.raises(TypeError, match="by a slice"):
        _ = ciphertexts[0]  # type: ignore[index]
    with pytest.raises(TypeError):
        _ = np.ones(1) + ciphertexts
    with pytest.raises(TypeError):
        hash(ciphertexts)


# -- what a peer may send ----------------------------------------------------------------------------------------------
def bad(key: PrivateKey) -> dict[str, int]:
    n = int(key.public.n)
    return {
        "zero": 0,
        "n": n,
        "a multiple of p": int(key.p) * 12345,
        "a multiple of q": int(key.q),
        "n²": n * n,
        "too large": n * n + 1,
    }


@pytest.mark.parametrize("name", list(bad(small_key())))
@pytest.mark.parametrize("place", [0, 3])
def test_what_is_no_ciphertext_is_refused(name: str, place: int) -> None:
    values = encrypted([1, 2, 3]).values
    values.insert(place, bad(small_key())[name])
    with pytest.raises(ValueError, match="a ciphertext"):
        Ciphertexts(small_key().public, values)
    public = small_key().public
    if name == "too large" and (int(values[place])).bit_length() > 8 * public.ciphertext_bytes:
        return
    data = b"".join(int(v).to_bytes(public.ciphertext_bytes, "big") for v in values)
    with pytest.raises(ValueError, match="a ciphertext"):
        Ciphertexts.from_bytes(public, data)
    with pytest.raises(ValueError, match="a ciphertext"):
        check_and_select(SelectionWanted(int(public.n), data, 1, np.zeros((4, 1), np.bool_)))


def test_negative_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="a ciphertext"):
        Ciphertexts(small_key().public, [-5])


def test_bytes_hold_whole_ciphertexts() -> None:
    data = encrypted([1, 2]).to_bytes()
    for wrong in (data[1:], data + b"\0"):
        with pytest.raises(ValueError, match="do not fill"):
            Ciphertexts.from_bytes(small_key().public, wrong)
    with pytest.raises(ValueError, match="3 ciphertexts were expected, not 2"):
        check_and_select(SelectionWanted(N, data, 1, np.zeros((3, 1), np.bool_)))


def test_a_piece_of_work_selects_from_every_group() -> None:
    groups = [encrypted([1, 2, 3], 1), encrypted([10, 20, 30], 2)]
    selection = np.array([[1, 0], [1, 1], [0, 1]], np.bool_)
    data = b"".join(group.to_bytes() for group in groups)
    products = Ciphertexts.from_bytes(PublicKey(N, toy=True), check_and_select(SelectionWanted(N, data, 2, selection)))
    assert decrypted(products) == [3, 5, 30, 50]
