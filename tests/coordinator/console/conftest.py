"""A coordinator with its console, real nodes, and one browser for all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.console.chromium import Loop
from tests.console.conftest import cheap_hashes  # noqa: F401 - a fixture of this folder, too
from tests.coordinator.console.world import World, world
from tests.party.console.conftest import browser, loop  # noqa: F401 - the same


@pytest.fixture(scope="session")
def hub(loop: Loop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:  # noqa: F811
    with world(loop, tmp_path_factory.mktemp("hub")) as found:
        yield found
