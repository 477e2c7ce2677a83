"""`tests/wire/baseline.json`: the frames of a seeded run of every protocol, as digests, and their wire version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from link.version import WIRE_VERSION
from tests.wire.protocols import PROTOCOLS

FILE: Final = Path(__file__).parent / "baseline.json"


def frozen() -> dict[str, Any]:
    """What the file says."""
    contents: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return contents


def freeze() -> None:
    """Writes the file anew.

    Raises:
        SystemExit: A protocol's frames have changed and the wire version has not.
    """
    before = frozen() if FILE.exists() else {"wire_version": 0, "protocols": {}}
    now = {name: run.digests() for name, run in PROTOCOLS.items()}
    changed = [name for name, digests in before["protocols"].items() if now.get(name, digests) != digests]
    if changed and before["wire_version"] == WIRE_VERSION:
        raise SystemExit(f"{', '.join(changed)}: other frames under the same wire version; raise it in link/version.py")
    FILE.write_text(json.dumps({"wire_version": WIRE_VERSION, "protocols": now}, indent=1) + "\n", encoding="utf-8")
