"""As what a joint release counts, however its attempts end: what one may have let out, no later one takes back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest

from jobs.kinds.release.parameters import joint_anonymisation
from mining.joint.anonymisation.disclosure import OF_A_RELEASE, openings
from party.jobs.context import JobContext
from party.jobs.endings.end_writer import EndWriter, JobEnd
from party.jobs.forgetting import Forgetting
from party.jobs.job import Job
from party.services.anonymization.releases import NOTHING, Counted, Releases
from protos.v1.control_pb2 import FAILED, RUNNING, JobEvent
from tests.mining.joint.anonymisation import anonymisation_jobs_world

SPEC = anonymisation_jobs_world.job()
SEARCHED = frozenset({"rows", "losses", "satisfiable", "verdicts"})
RELEASE, FAILURE = Counted(releases=1), Counted(failures=1)


class End(NamedTuple):
    """Of an attempt: why, and what its session has opened, where it has come to one."""

    code: str
    opened: frozenset[str] | None = None


CANCELLED, CHANGED = End("E500"), End("E101")  # before the session
LOST, NONE_ALLOWED = End("E200", SEARCHED), End("E101", SEARCHED)
LEFT = End("E200", SEARCHED | {"classes"})
BEFORE, WITHIN = (End("E200"), CANCELLED, CHANGED, End("E100")), (LOST, NONE_ALLOWED, LEFT, End("E600", SEARCHED))


@pytest.fixture
def releases(tmp_path: Path) -> Iterator[Releases]:
    with closing(Releases.open(tmp_path / "releases.db", "north")) as opened:
        yield opened


def writer_of(releases: Releases) -> EndWriter:
    context, forgetting = cast(JobContext, SimpleNamespace(releases=releases)), cast(Forgetting, None)
    return EndWriter(context, forgetting)


def after(releases: Releases, *ends: End, name: bytes = bytes(32)) -> Counted:
    """As what a job counts whose attempts have ended like this; each has a `Job` of its own, as in a node."""
    writer = writer_of(releases)
    without = releases.counted("people", name)
    for code, opened in ends:
        job: Any = Job(name, SPEC, "analyst", JobEvent(state=RUNNING))
        job.earlier_release = releases.begin("people", name, "analyst", 99)
        assert releases.counted("people").releases == without.releases + 1  # from its start, whatever it was before
        if opened is not None:
            job.in_session, job.opened = lambda: True, lambda labels=opened: labels
        writer.discharge(JobEnd(job, RUNNING, FAILED, {}, None, code))
    now = releases.counted("people")
    return Counted(now.releases - without.releases, now.failures - without.failures)


@pytest.mark.parametrize("code", ["E100", "E101", "E104"])
def test_what_a_peer_says_takes_no_release_back(releases: Releases, code: str) -> None:
    assert after(releases, End(code, SEARCHED)) == FAILURE
    for number, label in enumerate(OF_A_RELEASE, 1):
        assert after(releases, End(code, SEARCHED | {label}), name=bytes([number])) == RELEASE


def test_other_ends_count_as_a_release_once_parties_have_met(releases: Releases) -> None:
    assert after(releases, End("E600", frozenset()), name=b"met") == RELEASE
    assert after(releases, End("E600")) == NOTHING


def test_no_later_attempt_takes_back_a_release(releases: Releases) -> None:
    for number, (first, then) in enumerate(product((LEFT, LOST), BEFORE + WITHIN)):
        assert after(releases, first, then, NONE_ALLOWED, name=bytes([number])) == RELEASE


def test_a_failure_stays_one_until_another_attempt_gets_further(releases: Releases) -> None:
    for number, end in enumerate(BEFORE):
        assert after(releases, NONE_ALLOWED, end, end, name=bytes([number])) == FAILURE
    assert after(releases, NONE_ALLOWED, CANCELLED, NONE_ALLOWED, name=b"again") == FAILURE
    assert after(releases, NONE_ALLOWED, LOST, name=b"further") == RELEASE


def test_after_attempts_that_parties_never_met_in_the_next_counts_as_the_first(releases: Releases) -> None:
    assert after(releases, CANCELLED, End("E200"), NONE_ALLOWED, name=b"failed") == FAILURE
    assert after(releases, CANCELLED, LEFT, name=b"left") == RELEASE
    assert after(releases, CANCELLED, CANCELLED) == NOTHING


def test_an_end_before_any_start_takes_nothing_back(releases: Releases) -> None:
    """As of a `Job` that is made anew for one that has ended, and is cancelled."""
    after(releases, LEFT)
    job = Job(bytes(32), SPEC, "analyst", JobEvent(state=RUNNING))
    for end in (CANCELLED, CHANGED):
        writer_of(releases).discharge(JobEnd(job, RUNNING, FAILED, {}, None, end.code))
    assert releases.counted("people") == RELEASE


def test_labels_of_a_release_are_those_of_statements() -> None:
    labels = {line.label for line in openings(joint_anonymisation(SPEC), SPEC.job.parties)}
    assert {"classes"} <= labels & OF_A_RELEASE
