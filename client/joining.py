"""When a client that joins a running stream may report first, where each step asks a share of the clients.

It acts as if a uniform one of the w steps before had been its last. Clients would otherwise be the likelier to report
the newer they are, and a release would reveal more about newcomers than about all. `ldp.streams.simulation` does the
same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness


def first_steps(step: int, w: int, clients: int, rng: Randomness) -> NDArray[np.int64]:
    """The first steps in which clients may report that join together, shape (clients,).

    Args:
        step: The present one.
        w: How many steps are protected together.
        clients: How many join.
        rng: Their own coins.
    """
    free = step + rng.integers(w, clients).astype(np.int64)
    free[free < w] = step  # steps before the first cannot have been anybody's last
    return free
