"""What the audit log tells of a collection or route that is over is not of the next one of its name."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from jobs.audit.events import Event
from jobs.audit.service_events import (
    CollectionCreated,
    CollectionDeleted,
    EstimatesRead,
    RouteCreated,
    RouteRetired,
)
from party.state.recovery.heads import BEGUN, Head, follow
from party.state.store import Store

CREATED = CollectionCreated(collection="c", coordinator="analyst", spec_digest=bytes(32), domain_digest=None)
READ = EstimatesRead(collection="c", coordinator="analyst", round=3, reports=90)
ROUTE = RouteCreated(route="r", coordinator="analyst", document_digest=bytes(32))


@pytest.mark.parametrize(
    ("events", "service", "subject"),
    [
        ([CREATED, READ, CollectionDeleted(collection="c", by="analyst"), READ, CREATED], "frequency", "c"),
        ([ROUTE, RouteRetired(route="r", by="analyst", discarded=0), ROUTE], "shuffler", "r"),
    ],
)
def test_what_is_created_anew_begins_anew(tmp_path: Path, events: list[Event], service: str, subject: str) -> None:
    with closing(Store.open(tmp_path / "node.db")) as store:
        follow(store, events)
        assert store.heads(service) == [Head(service, subject, BEGUN)]
