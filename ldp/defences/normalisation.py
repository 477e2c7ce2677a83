"""Normalisation: estimates are moved and scaled to be no less than 0 and add up to 1, which limits what an attack adds.

Source: Cao, Jia and Gong, "Data Poisoning Attacks to Local Differential Privacy Protocols", USENIX Security 2021,
section 5.1.
"""

from __future__ import annotations

import numpy as np

from ldp.frequency_oracle import Floats


def normalise(frequencies: Floats) -> Floats:
    """(f − min f) / Σ (f − min f): order and relative differences stay; uniform if all are equal.

    The least estimate becomes 0 and every other one is biased; without an attack `ldp.consistency.norm_sub` is better.

    Args:
        frequencies: Raw estimates, shape (d,).
    """
    moved: Floats = frequencies - frequencies.min()
    total = float(moved.sum())
    return moved / total if total > 0 else np.full(len(moved), 1 / len(moved))
