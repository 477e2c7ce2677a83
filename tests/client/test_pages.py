"""The page for app developers is right: its examples run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.connection import Connection
from client.fleet import Fleet
from ldp.domain import Domain
from ldp.registry import oracle
from tests.client.node import BEGIN, LABELS, Node, homepages, served

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tasks" / "frequency-clients.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    node = Node(homepages(oracle("grr", Domain(4, LABELS), 1.0)))
    first, second = BLOCKS
    with served(node) as service:
        monkeypatch.setattr(Connection, "open", lambda *_, **__: service.connect())
        names: dict[str, Any] = {}
        exec(first, names)
        names["device"].clock = lambda: BEGIN
        names["exchange"]()
        names["seen"]("somewhere")
        names["exchange"]()
        told = capsys.readouterr().out
        assert "a report to north/homepages waits in the outbox" in told
        assert "counted=1" in told
        names["device"].close()
        exec(second, names)
        with service.connect() as connection:
            names["every_hour"](Fleet(3, clock=lambda: BEGIN), connection, np.array(LABELS[:3], dtype=object))
        assert "3 of 3 in round 0" in capsys.readouterr().out
