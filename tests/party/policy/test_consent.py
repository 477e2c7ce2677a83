"""What a person is told who decides on a job that awaits no decision."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jobs.audit.events import Refused
from link.errors import UsageError
from party.policy.consent import POLICY, Consent
from party.state.recovery.history import refusal_of
from party.state.store import Store
from protos.v1.control_pb2 import JobState
from tests.party.state.test_store import record


@pytest.mark.parametrize(
    ("state", "by", "words"),
    [
        ("APPROVED", "Nora North", "was approved by Nora North"),
        ("APPROVED", "policy", "was approved by the policy"),
        ("DENIED", "Nora North", "was denied by Nora North"),
        ("RUNNING", "Nora North", "is running"),
        ("RELEASING", "policy", "is running"),
        ("SUCCEEDED", "Nora North", "has succeeded"),
        ("FAILED", "policy", "has failed"),
        ("CANCELLED", "", "was cancelled"),
        ("EXPIRED", "", "has expired"),
    ],
)
def test_a_job_that_cannot_be_decided_any_more(tmp_path: Path, state: str, by: str, words: str) -> None:
    store = Store.open(tmp_path / "node.db")
    job = record(state=JobState.Value(state), decided_by=by)
    store.add(job)
    me = SimpleNamespace(name="north")
    consent = Consent(cast(Any, None), cast(Any, me), store, cast(Any, None), now=lambda: 1500.0)
    sentence = f"the job {'01' * 6} {words}; only jobs that await approval can be approved or denied"
    with pytest.raises(UsageError) as approved:
        consent.approve(job, "alice")
    with pytest.raises(UsageError) as denied:
        consent.deny(job, "alice", "no")
    assert approved.value.message == denied.value.message == sentence
    store.close()


def test_a_person_may_name_a_place_in_a_reason(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "node.db")
    job = record(state=JobState.AWAITING_APPROVAL)
    store.add(job)
    audit = SimpleNamespace(append=lambda _: None)
    consent = Consent(
        cast(Any, None), cast(Any, SimpleNamespace(name="north")), store, cast(Any, audit), now=lambda: 1.0
    )
    consent.deny(job, "Nora", "see https://north.example/rules and /srv/rules")
    denied = store.get(job.job_id)
    assert denied is not None
    assert denied.reason == "see https://north.example/rules and /srv/rules"
    assert denied.error_message == f"Nora at north denied the job: {denied.reason}"
    assert (denied.error_code, denied.error_party) == ("E300", "north")
    store.close()


def test_what_the_log_says_of_a_refusal_names_no_place_unless_a_person_did() -> None:
    reason = "/srv/baskets.csv cannot be read"
    assert refusal_of(Refused(job=b"\1" * 32, by="Nora", reason=reason)) == reason
    assert "/srv" not in refusal_of(Refused(job=b"\1" * 32, by=POLICY, reason=reason))
    assert refusal_of(Refused(job=b"\1" * 32, by=POLICY, reason="too often")) == "too often"
