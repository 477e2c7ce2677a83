"""Fixtures of the tests of a node's data."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from link.executor import ThreadExecutor


@pytest.fixture
def executor() -> Iterator[ThreadExecutor]:
    executor = ThreadExecutor(2)
    yield executor
    executor.close()
