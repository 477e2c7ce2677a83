from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from crypto.primitives.hashing import encode_fields
from crypto.primitives.randomness import Randomness
from crypto.primitives.shares.masks import add_masks
from tests.crypto.mask_vectors import mask_vector

CONTEXT = encode_fields(b"session", b"lane", b"sum", b"1")


def all_secrets(names: list[str]) -> dict[str, dict[str, bytes]]:
    random = Randomness.from_seed(3)
    secrets: dict[str, dict[str, bytes]] = {name: {} for name in names}
    for a, b in combinations(names, 2):
        secrets[a][b] = secrets[b][a] = random.bytes(32)
    return secrets


@pytest.mark.parametrize("n", range(2, 8))
@pytest.mark.parametrize("size", [1, 1000])
def test_masks_add_up_to_zero(n: int, size: int) -> None:
    secrets = all_secrets([f"party-{i}" for i in range(n)])
    masks = [mask_vector(secrets[name], name, CONTEXT, size) for name in secrets]
    assert not np.sum(masks, axis=0, dtype=np.uint64).any()
    assert all(mask.any() for mask in masks)


@pytest.mark.parametrize("word", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("size", [1, 5, (1 << 18) + 3])
def test_masks_of_short_words_add_up_to_zero_and_are_uniform(word: type[np.unsignedinteger[Any]], size: int) -> None:
    secrets = all_secrets(["a", "b", "c"])
    masks = [mask_vector(secrets[name], name, CONTEXT, size, word) for name in secrets]
    assert all(mask.dtype == word for mask in masks)
    assert not np.sum(masks, axis=0, dtype=word).any()
    if size > 5:
        seen = np.bincount(masks[0].view(np.uint8), minlength=256)
        expected = seen.sum() / 256
        assert ((seen - expected) ** 2 / expected).sum() < 400  # 255 degrees of freedom: fails with probability 1e-8


def test_vectors_beyond_a_chunk() -> None:
    secrets = all_secrets(["a", "b", "c"])
    size = (1 << 16) + 17
    masks = {name: mask_vector(secrets[name], name, CONTEXT, size) for name in secrets}
    assert not np.sum(list(masks.values()), axis=0, dtype=np.uint64).any()
    assert (masks["a"][:100] == mask_vector(secrets["a"], "a", CONTEXT, 100)).all()
    assert len(np.unique(masks["a"])) == size


def test_masking_in_place_adds_the_mask() -> None:
    secrets = all_secrets(["a", "b", "c"])
    values = np.arange(50, dtype=np.uint64)
    add_masks(values, secrets["b"], "b", CONTEXT)
    assert (values == np.arange(50, dtype=np.uint64) + mask_vector(secrets["b"], "b", CONTEXT, 50)).all()


def test_masked_values_add_up_to_the_sum() -> None:
    secrets = all_secrets(["a", "b", "c"])
    inputs = {name: Randomness.from_seed(name.encode()).uint64(20) for name in secrets}
    total = np.zeros(20, dtype=np.uint64)
    for name, values in inputs.items():
        masked = values.copy()
        add_masks(masked, secrets[name], name, CONTEXT)
        total += masked
    assert (total == np.sum(list(inputs.values()), axis=0, dtype=np.uint64)).all()


def test_contexts_secrets_and_pairs_give_unrelated_masks() -> None:
    secret = bytes(range(32))
    masks = [
        mask_vector({"b": secret}, "a", CONTEXT, 8),
        mask_vector({"b": secret}, "a", CONTEXT + b"\0", 8),
        mask_vector({"b": secret}, "a", encode_fields(b"session", b"lane", b"sum", b"2"), 8),
        mask_vector({"c": secret}, "a", CONTEXT, 8),
        mask_vector({"b": bytes(32)}, "a", CONTEXT, 8),
    ]
    words = np.concatenate(masks + [np.negative(mask) for mask in masks])
    assert len(np.unique(words)) == 80


def test_without_one_secret_a_mask_stays_hidden() -> None:
    # b and c pool what they know of a: with d honest, a's mask minus their parts is still the keystream of a and d.
    secrets = all_secrets(["a", "b", "c", "d"])
    known = {peer: secrets["a"][peer] for peer in ("b", "c")}
    rest = mask_vector(secrets["a"], "a", CONTEXT, 8) - mask_vector(known, "a", CONTEXT, 8)
    assert (rest == mask_vector({"d": secrets["a"]["d"]}, "a", CONTEXT, 8)).all()
    assert rest.any()


def test_bad_arguments_are_refused() -> None:
    good = {"b": bytes(32)}
    for secrets, me in (({}, "a"), ({"a": bytes(32)}, "a"), ({"b": bytes(31)}, "a")):
        with pytest.raises(ValueError, match="secret"):
            mask_vector(secrets, me, CONTEXT, 4)
    for values in (np.zeros(4, dtype=np.int64), np.zeros((2, 2), dtype=np.uint64)):
        with pytest.raises(ValueError, match="unsigned"):
            add_masks(values, good, "a", CONTEXT)
    assert mask_vector(good, "a", CONTEXT, 0).size == 0
