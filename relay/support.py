"""What helps others find a fault of a relay; see `jobs.support`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jobs.support import begun, metrics
from relay.config import RelayConfig


def support_bundle(path: Path) -> dict[str, Any]:
    """What may be shown to others of the relay of a `relay.toml`, as `comine.support/1`.

    Raises:
        ConfigurationError: The file cannot be read.
    """
    config = RelayConfig.load(path)
    return {
        **begun("relay", config, path.absolute().parent),
        "metrics": None if config.metrics is None else metrics(config.metrics),
    }
