"""`tests/wire/baseline.json`: the frames of seeded runs of every protocol and of some jobs, and their wire version."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from link.version import WIRE_VERSION
from tests.wire.jobs import JOBS, Wire, played
from tests.wire.protocols import PROTOCOLS

FILE: Final = Path(__file__).parent / "baseline.json"


def frozen() -> dict[str, Any]:
    """What the file says."""
    contents: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return contents


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
    FILE.write_text(json.dumps({"wire_version": WIRE_VERSION, **now}, indent=1) + "\n", encoding="utf-8")
