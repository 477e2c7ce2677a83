from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from party.services.frequency.storage.participants import SUBMITTERS, Claim, Participants, summary
from party.services.frequency.storage.tags import KEY_BYTES, Tagger, TagSet
from protos.v1.frequency_pb2 import COUNTED, DUPLICATE, OVER_QUOTA
from tests.party.services.frequency.storage.storing import pseudonyms

NOBODY = np.empty(0, np.uint64), np.empty(0, SUBMITTERS)

tag = st.one_of(st.integers(1, 40), st.integers(1, (1 << 64) - 1))
# Tags of one place and one step, which meet again and again.
crowded = st.integers(0, 400).map(lambda number: (number << 20) + 1)


@given(st.lists(st.lists(st.one_of(tag, crowded), max_size=300), max_size=12))
def test_a_set_of_tags_is_a_set(batches: list[list[int]]) -> None:
    tags, model = TagSet(), set[int]()
    for batch in batches:
        array = np.array(batch, np.uint64)
        assert tags.holds(array).tolist() == [each in model for each in batch]
        fresh = sorted(set(batch) - model)
        tags.add(np.array(fresh, np.uint64))
        model.update(fresh)
        assert len(tags) == len(model)
    everything = sorted(model)
    assert tags.holds(np.array(everything, np.uint64)).all()
    again = TagSet(np.array(everything, np.uint64))
    assert again.holds(np.array(everything, np.uint64)).all()
    others = {each ^ 1 << 63 for each in everything} - model - {0}  # which is no tag
    assert not again.holds(np.array(list(others), np.uint64)).any()


def test_ten_million_tags_would_fit_400_megabytes() -> None:
    tags = TagSet()
    tags.reserve(10_000_000)
    assert tags.nbytes * 1.5 < 400e6  # the half more is the table before, while it grows


def test_tags_depend_on_pseudonym_submitter_and_key() -> None:
    tagger, other = Tagger(bytes(KEY_BYTES)), Tagger(bytes([1]) * KEY_BYTES)
    some = pseudonyms(range(1000))
    found = set[int]()
    for each in (tagger, other):
        for name in ("north", "south"):
            offset, own = each.submitter(name)
            assert offset.shape == (2,)
            found |= {own, *each.tags(some, offset).tolist()}
    assert len(found) == 4 * 1001
    offset, _ = tagger.submitter("north")
    assert tagger.tags(some, offset).tolist() == tagger.tags(some[::-1], offset)[::-1].tolist()


# A submitter, its clients, in a batch; several batches make a group; quotas stay.
batch = st.tuples(st.sampled_from("abcd"), st.lists(st.integers(0, 12), min_size=1, max_size=8))
QUOTAS = {"a": 1, "b": 3, "c": 10, "d": 0}


@given(st.lists(st.lists(batch, min_size=1, max_size=5), max_size=10), st.booleans())
@settings(max_examples=200)
def test_each_client_counts_once_and_no_submitter_more_than_its_quota(
    groups: list[list[tuple[str, list[int]]]], forgetful: bool
) -> None:
    participants = Participants(bytes(KEY_BYTES), *NOBODY)
    model: dict[str, set[int]] = {name: set() for name in QUOTAS}
    kept = []
    for group in groups:
        if forgetful:  # a start from what is on disk
            tags, submitters = summary(kept)
            participants = Participants(bytes(KEY_BYTES), tags, submitters)
        rulings = participants.rule([Claim(name, pseudonyms(clients), QUOTAS[name]) for name, clients in group])
        for (name, clients), ruling in zip(group, rulings, strict=True):
            expected = []
            for client in clients:
                if client in model[name]:
                    expected.append(DUPLICATE)
                elif len(model[name]) >= QUOTAS[name]:
                    expected.append(OVER_QUOTA)
                else:
                    model[name].add(client)
                    expected.append(COUNTED)
            assert ruling.statuses.tolist() == expected
            assert len(ruling.tags) == expected.count(COUNTED)
        participants.reserve(rulings)
        participants.admit(rulings)
        kept += rulings
        assert len(participants) == sum(map(len, model.values()))


def test_what_was_ruled_and_not_admitted_leaves_no_trace() -> None:
    participants = Participants(bytes(KEY_BYTES), *NOBODY)
    claim = Claim("a", pseudonyms([1, 2]), 5)
    for _ in range(2):
        (ruling,) = participants.rule([claim])
        assert ruling.statuses.tolist() == [COUNTED, COUNTED]
        participants.reserve([ruling])
    participants.admit([ruling])
    (ruling,) = participants.rule([claim])
    assert ruling.statuses.tolist() == [DUPLICATE, DUPLICATE]


@pytest.mark.parametrize("size", [1, 1 << 16, (1 << 16) + 1, 200_000])
def test_sets_grow_by_any_step(size: int) -> None:
    rng = np.random.default_rng(size)
    some = np.unique(rng.integers(1, 1 << 63, size, dtype=np.uint64))
    tags = TagSet()
    tags.add(some)
    assert tags.holds(some).all()
    assert not tags.holds(some + np.uint64(1 << 63)).any()
