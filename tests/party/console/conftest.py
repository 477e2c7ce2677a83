"""Real nodes with their console, and one browser for all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.async_api import Browser

from tests.browser import CHROMIUM
from tests.console.chromium import Loop, chromium
from tests.console.conftest import cheap_hashes  # noqa: F401 - a fixture of this folder, too
from tests.party.console.world import World, world


@pytest.fixture(scope="session")
def loop() -> Iterator[Loop]:
    found = Loop()
    yield found
    found.close()


@pytest.fixture(scope="session")
def browser(loop: Loop) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed; the console is not looked at")
    with chromium(loop) as found:
        yield found


@pytest.fixture(scope="module")
def north(loop: Loop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(loop, tmp_path_factory.mktemp("north")) as found:
        yield found
