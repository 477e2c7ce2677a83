from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives.hashing import derive_key, encode_fields, encode_labels, hkdf_sha256

labels = st.one_of(st.text(), st.integers(), st.binary())


def split_fields(encoding: bytes) -> list[bytes]:
    parts = []
    while encoding:
        size = int.from_bytes(encoding[:8], "big")
        parts.append(encoding[8 : 8 + size])
        encoding = encoding[8 + size :]
    return parts


@given(st.lists(st.binary()))
def test_fields_can_be_read_back(parts: list[bytes]) -> None:
    assert split_fields(encode_fields(*parts)) == parts


@given(st.lists(labels), st.lists(labels))
def test_labels_are_encoded_injectively(left: list[str | int | bytes], right: list[str | int | bytes]) -> None:
    same = [(type(a), a) for a in left] == [(type(a), a) for a in right]
    assert (encode_labels(*left) == encode_labels(*right)) == same


def test_the_type_of_a_label_counts() -> None:
    assert len({encode_labels(1), encode_labels("1"), encode_labels(b"1")}) == 3
    with pytest.raises(TypeError):
        encode_labels(True)
    with pytest.raises(TypeError):
        encode_labels(1.5)  # type: ignore[arg-type]


def test_hkdf_gives_the_published_results(vectors) -> None:
    for vector in vectors("hkdf_sha256_rfc5869")["vectors"]:
        secret, salt, info, okm = (bytes.fromhex(vector[name]) for name in ("secret", "salt", "info", "okm"))
        assert hkdf_sha256(secret, salt=salt, info=info, size=len(okm)) == okm


def test_keys_depend_on_secret_and_path() -> None:
    secret = bytes(range(32))
    keys = {
        derive_key(secret),
        derive_key(secret, "a", "b"),
        derive_key(secret, "ab"),
        derive_key(secret, "a", b"b"),
        derive_key(bytes(32), "a", "b"),
    }
    assert len(keys) == 5
    assert derive_key(secret, "a", size=64)[:32] == derive_key(secret, "a")


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        derive_key(bytes(15), "a")
