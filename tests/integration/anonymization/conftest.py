"""Nodes with the table of patients, and runs in the test's process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from party.services.anonymization.worker import outcome_of
from tests.integration.anonymization.patients import NoProcess, write
from tests.integration.processes import Organisations


@pytest.fixture
def north(tmp_path: Path) -> Iterator[Organisations]:
    organisations = write(tmp_path)
    try:
        yield organisations
    finally:
        organisations.stop()


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are in the test's process, for tests of what releases tell: each spares the start of an interpreter."""

    async def started(*_: Any, **__: Any) -> NoProcess:
        return NoProcess()

    async def outcome(_: NoProcess, task: Any) -> bytes:
        made = await asyncio.to_thread(outcome_of, json.loads(json.dumps(task)))
        return json.dumps(made).encode()

    monkeypatch.setattr("party.services.anonymization.runs.asyncio.create_subprocess_exec", started)
    monkeypatch.setattr("party.services.anonymization.runs.last_output", outcome)
