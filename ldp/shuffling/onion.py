"""Layers around reports: sealed for the collector first, then for each shuffler, the last one first.

Each layer is HPKE (`crypto.primitives.sealed`) under a context that names version, route and hop. So a report opens at
one hop of one route, and nobody can change it on its way. All reports of a hop have the same length.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.sealed import Rows, open_rows, seal_rows
from ldp.shuffling.route import Route
from link.errors import ConfigurationError, InputDataError


def wrap(reports: Rows, route: Route, keys: Sequence[bytes]) -> Rows:
    """Seals reports for a route.

    Args:
        reports: Shape (n, `route.size`).
        route: Which way they go.
        keys: The shufflers' public keys for it, in its order.

    Returns:
        Shape (n, `route.sealed_size(0)`).

    Raises:
        InputDataError: The reports have another size.
        ConfigurationError: There is not one good key for each shuffler.
    """
    if reports.ndim != 2 or reports.shape[1] != route.size:
        raise InputDataError(f"reports for the route '{route.name}' have {route.size} bytes each; pad them to that")
    if len(keys) != len(route.shufflers):
        raise ConfigurationError(f"the route '{route.name}' has {len(route.shufflers)} shufflers, and not {len(keys)}")
    try:
        for hop, key in reversed([*enumerate((*keys, route.collector_key))]):
            reports = seal_rows(reports, key, route.context(hop))
    except ValueError:
        raise ConfigurationError(
            f"a public key for the route '{route.name}' is none; ask its shufflers again"
        ) from None
    return reports


def peel(sealed: Rows, route: Route, hop: int, private_key: bytes) -> tuple[Rows, NDArray[np.bool_]]:
    """Takes a hop's layer off.

    Args:
        sealed: Shape (n, `route.sealed_size(hop)`).
        route: Which way they go.
        hop: Of the shuffler, from 0; or after the last one, of the collector.
        private_key: Of that hop.

    Returns:
        Shape (n, `route.sealed_size(hop + 1)`), or `route.size` at the collector; zeros where a report is unreadable.
        And which are readable, shape (n,).
    """
    return open_rows(sealed, private_key, route.context(hop))
