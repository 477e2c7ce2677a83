"""Entries in words, as `comine audit show` prints them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_origin

import pytest

from jobs.audit.catalogue import EVENTS, read_event
from jobs.audit.events import Charged, Event, HeadLost, NodeStopped, RulesHidden, ValuesOpened
from jobs.audit.service_events import (
    BatchClosed,
    BatchForwarded,
    CollectionClosed,
    CollectionCreated,
    CollectionDeleted,
    EstimatesRead,
    JointReleaseBegan,
    QueryDecided,
    QueryRefused,
    ReleaseRefused,
    RoundEnded,
    RouteCreated,
    RouteRetired,
    TableReleased,
)
from jobs.audit.standing_events import Terms

ASKED = {"dataset": "staff", "coordinator": "hub"}
REFUSED = ASKED | {"code": "E300", "reason": "the policy of north lets nothing leave"}
CHARGED = {
    "job": b"j" * 32,
    "attempt": 2,
    "dataset": "baskets",
    "model": "distributed",
    "epsilon": "0.5",
    "delta": "0.000001",
}
RELEASED = ASKED | {"request": b"r" * 32, "columns": ("age", "ill"), "rows": 40, "certificate": b"c" * 32}


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (RulesHidden(job=b"j" * 32, dataset="baskets", rules=2), "2 in 'baskets'"),
        (HeadLost(), "the head file was lost: whether lines had been cut off is not known"),
        (NodeStopped(), "in order"),
        (Charged(**CHARGED, local_epsilon=None), "'baskets' for attempt 2: ε = 0.5, δ = 0.000001 (distributed)"),
        (
            Charged(**CHARGED, local_epsilon="3"),
            "'baskets' for attempt 2: ε = 0.5, δ = 0.000001, 3 in each report (distributed)",
        ),
        (
            CollectionCreated(collection="c1", coordinator="hub", spec_digest=b"s" * 32, domain_digest=None),
            "'c1' by hub, specification 737373737373",
        ),
        (CollectionClosed(collection="c1", by="schedule"), "'c1' by schedule"),
        (CollectionDeleted(collection="c1", by="hub"), "'c1' by hub"),
        (RoundEnded(collection="c1", round=4, reports=90), "'c1', round 4: 90 reports"),
        (EstimatesRead(collection="c1", coordinator="hub", round=4, reports=90), "'c1', round 4 of 90 reports, to hub"),
        (RouteCreated(route="r1", coordinator="hub", document_digest=b"d" * 32), "'r1' by hub, document 646464646464"),
        (
            BatchClosed(route="r1", batch=2, received=9, dropped=1, withheld=0, forwarded=8),
            "'r1', batch 2: 9 reports came, 1 dropped, 0 withheld, 8 forwarded",
        ),
        (BatchForwarded(route="r1", batch=2, to="east", reports=8), "'r1', batch 2: 8 reports to east"),
        (RouteRetired(route="r1", by="hub", discarded=3), "'r1' by hub, 3 reports discarded"),
        (
            QueryDecided(**ASKED, number=3, query="sum(pay) where age < 40", denied=None),
            "hub asked 'staff': sum(pay) where age < 40; answered, number 3",
        ),
        (
            QueryDecided(**ASKED, number=4, query="max(pay)", denied="class"),
            "hub asked 'staff': max(pay); denied (class), number 4",
        ),
        (QueryRefused(**REFUSED), "hub asked for 'staff': E300, the policy of north lets nothing leave"),
        (ReleaseRefused(**REFUSED), "hub asked for 'staff': E300, the policy of north lets nothing leave"),
        (
            JointReleaseBegan(dataset="staff", coordinator="hub", job=b"j" * 32, number=2),
            "'staff' for hub: job 6a6a6a6a6a6a, number 2",
        ),
        (
            TableReleased(**RELEASED, algorithm="mondrian", k=5, report=True),
            "'staff' to hub: 40 rows of age, ill (mondrian, k = 5), with its report",
        ),
        (
            TableReleased(**RELEASED, algorithm="ppir", k=None, report=False),
            "'staff' to hub: 40 rows of age, ill (ppir)",
        ),
    ],
    ids=lambda value: value.event if isinstance(value, Event) else "",
)
def test_an_entry_says_what_happened(event: Event, words: str):
    assert str(event) == words
    assert read_event(event.event, event.fields()) == event


@pytest.mark.parametrize("model", EVENTS.values(), ids=EVENTS)
def test_every_event_has_words(model: type[Event]):
    kinds = {int: 1, str: "x", bytes: b"x" * 32, bool: False, tuple: (), dict: {}, Mapping: {}, Literal: "failed"}
    kinds[Terms] = Terms.model_construct(
        **{name: kinds[field.annotation or str] for name, field in Terms.model_fields.items()}
    )
    fields = {
        name: next((kinds[kind] for kind in (field.annotation, get_origin(field.annotation)) if kind in kinds), None)
        for name, field in model.model_fields.items()
    }
    assert str(model.model_construct(**fields)) or model is ValuesOpened  # which says what was opened


def test_every_event_is_in_the_catalogue():
    def leaves(model: type[Event]) -> set[type[Event]]:
        return {model} if hasattr(model, "event") else {each for sub in model.__subclasses__() for each in leaves(sub)}

    assert set(EVENTS.values()) == leaves(Event)
