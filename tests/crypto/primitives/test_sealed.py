"""Sealed messages: RFC 9180's vectors, an independent reading of the RFC, and what must not open."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from crypto.primitives.sealed import KEY_BYTES, OVERHEAD, new_private_key, open_rows, public_key_of, seal_rows
from tests.vectors import hpke_reference as reference

FOLDER = Path(__file__).parents[2] / "vectors"
VECTORS = json.loads((FOLDER / "hpke_rfc9180.json").read_text())["vectors"]
NEGATIVE = json.loads((FOLDER / "negative" / "shuffle.json").read_text())
KEY = new_private_key(Randomness.from_seed(1))


def rows(*messages: bytes) -> Any:
    return np.frombuffer(b"".join(messages), np.uint8).reshape(len(messages), -1)


@pytest.mark.parametrize("vector", VECTORS)
def test_the_reference_meets_the_vectors_of_the_rfc(vector: dict[str, Any]) -> None:
    case = {name: bytes.fromhex(value) for name, value in vector.items() if name != "aead_id"}
    suite: dict[str, Any] = {"aad": case["aad"], "aead": vector["aead_id"]}
    sealed = reference.seal(case["pt"], case["pkRm"], case["info"], case["skEm"], **suite)
    assert sealed == case["enc"] + case["ct"]
    assert reference.unseal(sealed, case["skRm"], case["info"], **suite) == case["pt"]
    assert public_key_of(case["skRm"]) == case["pkRm"]
    assert public_key_of(case["skEm"]) == case["enc"]


@settings(max_examples=25, deadline=None)
@given(message=st.binary(max_size=200), info=st.binary(max_size=100), ephemeral=st.binary(min_size=32, max_size=32))
def test_what_one_side_seals_the_reference_opens_and_the_reverse(message: bytes, info: bytes, ephemeral: bytes) -> None:
    suite: dict[str, Any] = {"aad": b"", "aead": reference.AES_128_GCM}
    public = public_key_of(KEY)
    plain = np.frombuffer(message, np.uint8).reshape(1, -1)
    (sealed,) = seal_rows(plain, public, info)
    assert len(sealed) == len(message) + OVERHEAD
    assert reference.unseal(sealed.tobytes(), KEY, info, **suite) == message
    opened, good = open_rows(rows(reference.seal(message, public, info, ephemeral, **suite)), KEY, info)
    assert good.tolist() == [True]
    assert opened.tobytes() == message


def test_negative_vectors_do_not_open() -> None:
    key, info, sealed = (bytes.fromhex(NEGATIVE[name]) for name in ("private_key", "info", "sealed"))
    opened, good = open_rows(rows(sealed), key, info)
    assert good.all()
    assert opened.tobytes() == bytes.fromhex(NEGATIVE["message"])
    for each in NEGATIVE["reports"]:
        assert not open_rows(rows(bytes.fromhex(each["sealed"])), key, info)[1].any(), each["name"]


def test_nothing_opens_that_was_changed_or_meant_for_others() -> None:
    messages = rows(b"yes", b"no ", b"yes")
    sealed = seal_rows(messages, public_key_of(KEY), b"this")
    assert len({row.tobytes() for row in sealed}) == 3  # equal messages are not recognised
    opened, good = open_rows(sealed, KEY, b"this")
    assert good.all()
    assert np.array_equal(opened, messages)
    for bit in range(8 * sealed.shape[1]):
        changed = sealed[:1].copy()
        changed[0, bit // 8] ^= 1 << bit % 8
        opened, good = open_rows(changed, KEY, b"this")
        assert not good.any()
        assert not opened.any()
    assert not open_rows(sealed, KEY, b"that")[1].any()
    assert not open_rows(sealed, new_private_key(Randomness.from_seed(2)), b"this")[1].any()
    cut = np.ascontiguousarray(sealed[:, :-1])
    assert not open_rows(cut, KEY, b"this")[1].any()


def test_good_ones_open_among_bad_ones() -> None:
    messages = rows(*(bytes([i]) * 4 for i in range(20)))
    sealed = seal_rows(messages, public_key_of(KEY), b"").copy()
    sealed[::3] = 0
    opened, good = open_rows(sealed, KEY, b"")
    assert np.array_equal(good, np.arange(20) % 3 != 0)
    assert np.array_equal(opened[good], messages[good])
    assert not opened[~good].any()


def test_no_messages_and_wrong_keys() -> None:
    empty = np.empty((0, 5), np.uint8)
    sealed = seal_rows(empty, public_key_of(KEY), b"")
    assert sealed.shape == (0, 5 + OVERHEAD)
    assert open_rows(sealed, KEY, b"")[0].shape == (0, 5)
    with pytest.raises(ValueError, match="48 bytes at least"):
        open_rows(empty, KEY, b"")
    for key in (b"", bytes(KEY_BYTES)):  # the second one is of small order
        with pytest.raises(ValueError, match=r"."):
            seal_rows(np.zeros((1, 5), np.uint8), key, b"")
    with pytest.raises(ValueError, match=r"."):
        public_key_of(b"")
