"""`tests/wire/baseline.json`: the frames of seeded runs of every protocol and of some jobs, and their wire version.

`earlier` has the last baseline of each earlier version that nodes still speak. A window is part of the greetings, so
each baseline says from which version on nodes spoke then.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import pytest

from link.core import Terms
from link.version import WINDOW, WIRE_VERSION, Window
from tests.wire.jobs import JOBS, Wire, played
from tests.wire.protocols import PROTOCOLS

FILE: Final = Path(__file__).parent / "baseline.json"
EARLIER: Final = Path(__file__).parent / "earlier"


def frozen(file: Path = FILE) -> dict[str, Any]:
    """What a file says."""
    contents: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return contents


@contextmanager
def speaking(window: Window) -> Iterator[None]:
    """All parties of what runs meanwhile have this window."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Terms.__init__, "__defaults__", (window,))
        yield


def freeze() -> None:
    """Writes the file anew.

    Raises:
        SystemExit: Frames have changed and the wire version has not.
    """
    before = frozen() if FILE.exists() else {"wire_version": 0}
    now = {
        "protocols": {name: run.digests() for name, run in PROTOCOLS.items()},
        "jobs": {name: asdict(Wire.of(*played(name))) for name in JOBS},
    }
    changed = [
        name
        for kind, runs in now.items()
        for name, digests in before.get(kind, {}).items()
        if runs.get(name, digests) != digests
    ]
    if changed and before["wire_version"] == WIRE_VERSION:
        raise SystemExit(f"{', '.join(changed)}: other frames under the same wire version; raise it in link/version.py")
    if WINDOW.oldest <= int(before["wire_version"]) < WINDOW.latest:
        EARLIER.mkdir(exist_ok=True)
        FILE.rename(EARLIER / f"{before['wire_version']}.json")
    for file in EARLIER.glob("*.json"):
        if int(file.stem) < WINDOW.oldest:
            file.unlink()
    window = {"wire_version": WIRE_VERSION, "oldest_version": str(WINDOW.oldest)}
    FILE.write_text(json.dumps({**window, **now}, indent=1) + "\n", encoding="utf-8")
