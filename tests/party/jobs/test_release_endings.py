"""A release that came to nothing counts as a failure, whoever says so, only while nothing of one has been opened."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jobs.kinds.release.parameters import joint_anonymisation
from mining.joint.anonymisation.disclosure import OF_A_RELEASE, openings
from party.jobs.end_writer import EndWriter, JobEnd
from protos.v1.control_pb2 import JobState
from tests.mining.joint.anonymisation import anonymisation_jobs_world


class Releases:
    def __init__(self) -> None:
        self.said: list[str] = []

    def came_to_nothing(self, job: bytes) -> None:
        self.said.append("came to nothing")

    def forget(self, job: bytes) -> None:
        self.said.append("forgotten")


def discharged(code: str, *, opened: frozenset[str], in_session: bool = True) -> list[str]:
    releases = Releases()
    spec = anonymisation_jobs_world.job()
    job: Any = SimpleNamespace(id=bytes(32), spec=spec, in_session=lambda: in_session, opened=lambda: opened)
    room: Any = SimpleNamespace(releases=releases)
    EndWriter(room).discharge(JobEnd(job, JobState.RUNNING, JobState.FAILED, {}, None, code))
    return releases.said


@pytest.mark.parametrize("code", ["E100", "E101", "E104"])
def test_what_a_peer_says_takes_no_release_back(code: str) -> None:
    searched = frozenset({"rows", "losses", "satisfiable", "verdicts"})
    assert discharged(code, opened=searched) == ["came to nothing"]
    for label in OF_A_RELEASE:
        assert discharged(code, opened=searched | {label}) == []


def test_other_ends_count_as_a_release_once_parties_have_met() -> None:
    assert discharged("E600", opened=frozenset()) == []
    assert discharged("E600", opened=frozenset(), in_session=False) == ["forgotten"]


def test_labels_of_a_release_are_those_of_statements() -> None:
    spec = anonymisation_jobs_world.job()
    labels = {line.label for line in openings(joint_anonymisation(spec), spec.job.parties)}
    assert {"classes"} <= labels & OF_A_RELEASE
