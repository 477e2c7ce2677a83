"""What parties sign about the task `align`: the kind of size that the job asks for, and all of them the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coordinator.jobs.released import assemble
from jobs.loading import job_of
from jobs.spec.job import JobSpec
from protos.v1.control_pb2 import Release, ResultHeader
from tests.errors import fails

PARTIES = ("north", "south")


def signed(**sizes: Any) -> tuple[ResultHeader, bytes]:
    return ResultHeader(release=Release(session=bytes(32), **sizes).SerializeToString()), b""


def job(mode: str) -> JobSpec:
    named = {"name": "a", "task": "align", "parties": PARTIES, "dataset": "people", "partition": "vertical"}
    return job_of({"job": named, "align": {"mode": mode}}, "the test", Path())


@pytest.mark.parametrize(
    ("mode", "sizes", "told"),
    [
        ("intersection", {"n_rows": 0}, (0, None)),
        ("cardinality", {"n_rows": 7}, (7, None)),
        ("union", {"positions": 12}, (None, 12)),
    ],
)
def test_the_size_that_all_have_signed(mode: str, sizes: dict[str, int], told: tuple[int | None, int | None]) -> None:
    released = {party: signed(party=party, **sizes) for party in PARTIES}
    result = assemble(job(mode), bytes(32), None, released, None)
    assert (result.n_rows, result.positions, result.finding) == (*told, None)


@pytest.mark.parametrize(
    ("mode", "sizes"),
    [
        ("intersection", {}),
        ("intersection", {"positions": 3}),
        ("cardinality", {"n_rows": 3, "positions": 3}),
        ("union", {"n_rows": 3}),
        ("union", {}),
    ],
)
def test_another_kind_of_size_is_refused(mode: str, sizes: dict[str, int]) -> None:
    released = {party: signed(party=party, **sizes) for party in PARTIES}
    with fails("E400") as caught:
        assemble(job(mode), bytes(32), None, released, None)
    assert caught.value.party == "north"


@pytest.mark.parametrize(("mode", "name"), [("intersection", "n_rows"), ("union", "positions")])
def test_parties_that_sign_different_sizes(mode: str, name: str) -> None:
    released = {"north": signed(party="north", **{name: 7}), "south": signed(party="south", **{name: 8})}
    with fails("E400") as caught:
        assemble(job(mode), bytes(32), None, released, None)
    assert caught.value.party is None  # either may have signed what is wrong
