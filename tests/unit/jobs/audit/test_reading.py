"""Entries in words, as `comine audit show` prints them."""

from __future__ import annotations

import pytest

from jobs.audit.catalogue import EVENTS, read_event
from jobs.audit.events import Event, RulesHidden
from jobs.audit.reading import summary
from jobs.audit.service_events import QueryDecided, QueryRefused, ReleaseRefused, TableReleased

ASKED = {"dataset": "staff", "coordinator": "hub"}
REFUSED = ASKED | {"code": "E300", "reason": "the policy of north lets nothing leave"}
RELEASED = ASKED | {"request": b"r" * 32, "columns": ("age", "ill"), "rows": 40, "certificate": b"c" * 32}


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (RulesHidden(job=b"j" * 32, dataset="baskets", rules=2), "2 in 'baskets'"),
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
    assert summary(event) == words
    assert read_event(event.event, event.fields()) == event


def test_every_event_is_in_the_catalogue():
    def leaves(model: type[Event]) -> set[type[Event]]:
        return {model} if hasattr(model, "event") else {each for sub in model.__subclasses__() for each in leaves(sub)}

    assert set(EVENTS.values()) == leaves(Event)
