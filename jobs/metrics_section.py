"""The `[metrics]` table of a node or a relay: where it shows its metrics."""

from __future__ import annotations

from typing import Final

from pydantic import field_validator

from jobs.federation import check_address
from jobs.spec.toml import TomlTable

LISTEN: Final = "127.0.0.1:9464"  # the port that OpenTelemetry's exporters for Prometheus have


class MetricsSection(TomlTable):
    """The `[metrics]` table.

    Attributes:
        listen: HOST:PORT at which Prometheus reads `/metrics`, without TLS or a password: keep it on the machine, or
            in a network of its own.
    """

    listen: str = LISTEN
    _address = field_validator("listen")(check_address)
