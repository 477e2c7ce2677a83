"""GreedyPKClustering: classes of least information loss that are p-sensitive k-anonymous, and optionally H-level.

Source: Campan, Truta, Miller and Sinca, "A clustering approach for achieving data privacy", 2007 (GreedyPKClustering),
which MAA-SLIE is compared with; (H, p, k)-GPKC adds the rule of levels.

A class starts with the record farthest from the last class's first record (at first: from a random record). It takes
the record that makes its loss least, first of new levels only until it has H, then of new values only until it has p,
then of any, until it has k (`growing`). Records that are left over when no class can be begun join the class whose loss
rises least, in the order of their rows. Classes are published as their centres.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from anonymize.clustering.diverse import DiverseTable, centroid_loss, generalisation_loss
from anonymize.clustering.leftovers import disperse, least_increase
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models.sensitive_levels import SensitiveLevels
from anonymize.release import Release
from anonymize.tables import Table
from crypto.primitives.randomness import Randomness
from link.errors import ConfigurationError

Floats = NDArray[np.float64]
Loss = Literal["centroid", "generalisation"]

_NO_HIERARCHIES: Final[Mapping[str, Hierarchy]] = MappingProxyType({})


class LeastLoss:
    """The objective: the least loss, whatever the levels."""

    def entropies(self, level_counts: NDArray[np.int64]) -> Floats:
        """Nothing: shape (c,), of classes by their records of each level, shape (c, levels)."""
        return np.zeros(len(level_counts))

    def index(self, loss: float, _: float) -> float:
        """The loss, negated."""
        return -loss


def gpkc(
    table: Table,
    k: int,
    p: int,
    *,
    rng: Randomness,
    levels: SensitiveLevels | None = None,
    column: str | None = None,
    hierarchies: Mapping[str, Hierarchy] = _NO_HIERARCHIES,
    loss: Loss = "centroid",
) -> Release:
    """Publishes class centres that are p-sensitive k-anonymous, and have H levels of sensitivity.

    Args:
        table: Quasi-identifiers of any kind; the sensitive columns are published as they are.
        k: Least number of records of a class.
        p: Least number of sensitive values of a class.
        rng: For the first reference record.
        levels: H, the least number of levels of a class, the sensitive column and its levels, for (H, p, k)-anonymity.
            Without them all values are of one level, and the statistic `epp` is 0.
        column: The sensitive column, where no levels name it and there are several.
        hierarchies: Of quasi-identifiers of kind tree or code; without one, all values of a column differ by 1.
        loss: "centroid" is the loss of MAA-SLIE, distances from the centre; "generalisation" that of the source, the
            records times the width of the value that would cover them.

    Returns:
        All rows; statistics as in `DiverseTable.publish`.

    Raises:
        ConfigurationError: A parameter does not suit the table; the sentence says what would.
        InputDataError: A value has no place in its column's hierarchy.
    """
    if loss not in get_args(Loss):
        raise ConfigurationError(f'loss is "{loss}"; it must be one of {", ".join(get_args(Loss))}.')
    diverse = DiverseTable.of(table, k, p, levels, column, hierarchies)
    clustering = diverse.clustering(centroid_loss if loss == "centroid" else generalisation_loss, LeastLoss())
    classes, rest = clustering.grow(clustering.distances_from(rng.below(table.n_rows)))
    disperse(clustering, classes, rest, least_increase)
    details = {} if levels is None else {"levels": levels.levels, "weights": levels.weights}
    return diverse.publish("gpkc", classes, len(rest), {"loss": loss, **details})
