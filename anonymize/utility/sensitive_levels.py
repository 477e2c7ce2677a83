"""EPP and R_IL, by which MAA-SLIE is compared, for any release with classes.

Source: Shi, Zhang and Dong, "Data anonymity method based on sensitive hierarchical information entropy", Computer
Applications and Software 41(5), 2024: equations 22 and 23.
"""

from __future__ import annotations

import numpy as np

from anonymize.clustering.entropy import level_entropy
from anonymize.grouping import histogram
from anonymize.models import SensitiveLevels
from anonymize.release import Release
from anonymize.tables import Table
from link.errors import ConfigurationError


def epp(release: Release, table: Table, levels: SensitiveLevels, base: float = 2.0) -> float:
    """EPP: the mean, over published classes, of the weighted entropy of their levels of sensitivity. More is better.

    Args:
        release: With classes; suppressed rows are no class.
        table: Its input.
        levels: The sensitive column, its levels and their weights.
        base: Of the logarithm.

    Raises:
        ConfigurationError: The release has no classes, or the levels have no weights.
    """
    if release.classes is None or release.rows is None or not release.classes.size:
        raise ConfigurationError("EPP is a mean over equivalence classes, and the release has none.")
    if levels.weights is None:
        raise ConfigurationError("EPP weighs levels of sensitivity; give each of them a weight.")
    column = table.sensitive_column(levels.column)
    shown = (release.classes >= 0) & ~np.isin(release.rows, release.suppressed)
    codes = levels.codes(column)[column.codes[release.rows[shown]]]
    counts = histogram(release.classes[shown], release.n_classes, codes, len(levels.levels))
    return float(level_entropy(counts[counts.sum(axis=1) > 0], levels.weights, base).mean())


def r_il(release: Release) -> float:
    """R_IL: the mean loss of a record, summed over its attributes, so that it may exceed 1. Less is better.

    Of classes published as centres the loss of a cell is its distance from the centre, of ranges and labels it is NCP.

    Raises:
        ConfigurationError: The release measures no loss of cells.
    """
    if release.cell_loss is None or not len(release.cell_loss):
        raise ConfigurationError("R_IL is a mean of the losses of cells, and the release measures none.")
    return float(release.cell_loss.sum() / len(release.cell_loss))
