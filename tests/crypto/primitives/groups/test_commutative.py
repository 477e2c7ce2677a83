from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from numpy.typing import NDArray

from crypto.primitives.groups.commutative import CommutativeKey
from crypto.primitives.groups.ristretto255 import hash_to_group
from crypto.primitives.randomness import Randomness


@pytest.fixture
def points() -> NDArray[np.uint8]:
    return hash_to_group([b"item %d" % i for i in range(20)], b"tests")


@pytest.fixture
def keys(random: Randomness) -> list[CommutativeKey]:
    return [CommutativeKey.generate(random) for _ in range(3)]


def test_layers_commute(points: NDArray[np.uint8], keys: list[CommutativeKey]) -> None:
    a, b, c = keys
    assert (a.encrypt(b.encrypt(c.encrypt(points))) == c.encrypt(a.encrypt(b.encrypt(points)))).all()


def test_layers_come_off_in_any_order(points: NDArray[np.uint8], keys: list[CommutativeKey]) -> None:
    a, b, c = keys
    wrapped = a.encrypt(b.encrypt(c.encrypt(points)))
    assert (b.decrypt(c.decrypt(a.decrypt(wrapped))) == points).all()


def test_equality_is_kept_and_nothing_else_collides(points: NDArray[np.uint8], keys: list[CommutativeKey]) -> None:
    twice = keys[0].encrypt(np.concatenate((points, points)))
    assert (twice[:20] == twice[20:]).all()
    assert len({row.tobytes() for row in twice}) == 20
    assert not (keys[1].encrypt(points) == twice[:20]).all(axis=1).any()


def test_a_foreign_string_is_refused(points: NDArray[np.uint8], keys: list[CommutativeKey]) -> None:
    points[3] = 0xFF
    with pytest.raises(ValueError, match="row 3 "):
        keys[0].encrypt(points)


def test_a_key_stays_secret(keys: list[CommutativeKey]) -> None:
    assert repr(keys[0]) == "<CommutativeKey>"
    for act in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="never copied"):
            act(keys[0])
