"""What all tests of clients share."""

import pytest


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test cuts the power, so none waits for the disk; nor longer than needed for the next try of a call."""
    monkeypatch.setattr("client.database.SYNCHRONOUS", "OFF")
    monkeypatch.setattr("client.connection.BACKOFF_S", 0.001)
