"""Collections with one round, for tests of what keeps reports."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.documents import document
from ldp.mechanism import Mechanism
from ldp.registry import oracle
from ldp.reports import Reports
from party.services.frequency.intake import Intake
from party.services.frequency.storage.records import StoredCollection, StoredRound
from party.services.frequency.storage.store import FILE, FrequencyStore

GRR = oracle("grr", 64, 1.0)


def collection(name: str = "homepages", **changes: Any) -> StoredCollection:
    values: dict[str, Any] = {"id": b"i" * 16, "spec": b"{}", "labels": b"a\nb\n", "creator": "analyst", "created": 1.0}
    return StoredCollection(name, **{**values, **changes})


def a_round(number: int = 0, mechanism: Mechanism[Any] = GRR, **changes: Any) -> StoredRound:
    values: dict[str, Any] = {"period": number, "step": number, "opens": 1.0, "closes": 0.0}
    return StoredRound(number, mechanism=document(mechanism), **{**values, **changes})


def opened(store: FrequencyStore, name: str = "homepages", mechanism: Mechanism[Any] = GRR) -> Intake:
    """A collection with a round that is open, taken up again where it exists."""
    if name not in [each.name for each in store.collections()]:
        store.create(collection(name))
    if not store.rounds(name):
        store.open_round(name, a_round(mechanism=mechanism), b"state")
    return Intake(store, name, 0, 0, mechanism)


def store_in(folder: Path) -> FrequencyStore:
    return FrequencyStore.open(folder / FILE)


def on_disk(folder: Path, statement: str) -> list[Any]:
    """What a query finds in the database of a store."""
    with closing(sqlite3.connect(folder / FILE)) as database:
        return database.execute(statement).fetchall()


def pseudonyms(clients: Any) -> NDArray[np.uint8]:
    """Of clients that are known by numbers, shape (n, 16)."""
    rows = np.zeros((len(clients), 2), "<u8")
    rows[:, 0] = np.asarray(clients, np.uint64)
    return rows.view(np.uint8)


def reports(clients: Any, mechanism: Mechanism[Any] = GRR) -> Reports:
    """One of each client, which says client mod 64 for sure: what was counted can be read off the tally."""
    made = mechanism.privatise(np.zeros(len(clients), np.int64), Randomness.from_seed(7))
    return Reports(made.fingerprint, ((np.asarray(clients) % 64).astype(made.fields[0].dtype), *made.fields[1:]))


def tally(intake: Intake) -> list[int]:
    """How many counted clients there are of each number mod 64."""
    return sums(intake.aggregator())


def sums(total: Aggregator[Any]) -> list[int]:
    """A tally of one dimension."""
    (size,) = total.mechanism.tally_shape
    found: list[int] = np.frombuffer(total.to_bytes()[-8 * size :], "<i8").tolist()
    return found
