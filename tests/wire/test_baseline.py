"""No protocol's frames change under the same wire version."""

from __future__ import annotations

import pytest

from link.version import WIRE_VERSION
from tests.wire.baseline import frozen
from tests.wire.protocols import PROTOCOLS

CHANGED = """
The frames of {name} are not what they were. Nobody asked for this? Then something leaks, costs or reveals more or less
than before: find out what. If the change is meant, nodes of old and new versions may not understand each other: raise
WIRE_VERSION in link/version.py, go through docs/protocols and CHANGELOG.md, and run `python -m tests.wire`.
"""


def test_the_baseline_is_of_this_version_and_has_all_protocols() -> None:
    assert frozen()["wire_version"] == WIRE_VERSION, "run `python -m tests.wire`"
    assert frozen()["protocols"].keys() == PROTOCOLS.keys()


@pytest.mark.parametrize("name", PROTOCOLS)
def test_frames_are_those_of_the_baseline(name: str) -> None:
    assert PROTOCOLS[name].digests() == frozen()["protocols"][name], CHANGED.format(name=name)
