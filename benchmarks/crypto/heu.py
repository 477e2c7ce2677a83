"""Paillier in sf-heu, the peer beside which ours and the dot products are measured; in an environment of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from benchmarks.measure import run_process
from benchmarks.settings import Settings

SCRIPT = Path(__file__).parent.parent / "peers" / "heu_paillier.py"
SKIPPED = "sf-heu is skipped; make bench-peers installs it"


def operations(settings: Settings, bits: int) -> Mapping[str, float]:
    """Processor time of sf-heu's operations by name, in seconds of one; empty where it is not installed."""
    if settings.peers_python is None:
        return {}
    settings.tell(f"sf-heu, {bits} bits")
    number = 20 if settings.quick else 200
    try:
        finished = run_process([settings.peers_python, SCRIPT, "--bits", str(bits), "--number", str(number)])
    except RuntimeError as error:
        settings.tell(str(error))
        return {}
    found: Mapping[str, float] = json.loads(finished.output.strip().splitlines()[-1])
    return found
