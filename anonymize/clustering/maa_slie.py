"""MAA-SLIE: microaggregation by the entropy of levels of sensitivity, for (H, p, k)-anonymity.

Source: Shi, Zhang and Dong, "Data anonymity method based on sensitive hierarchical information entropy", Computer
Applications and Software 41(5), 2024, algorithm 1, in this reading:

1. The reference is the centroid of all records (a place, not a record). A class starts with the record farthest from
   the reference, and that record becomes the next reference.
2. The class takes the record that maximises PSI = w₁·HEC + w₂ / InfoLoss (eq. 21) until it has k records: first of new
   levels only until it has H, then of new values only until it has p, then of any (`growing`). H counts levels, as in
   definition 7: on HEC the text's "entropy > lb H" could not hold. A loss of 0 counts as an infinite term.
3. Classes are begun while k records, p values and H levels remain.
4. Each leftover record, in random order, joins the class whose PSI with it is greatest, or whose loss rises least.
5. Each class is published as its centre.

Ties go to the higher entropy, then to the lowest row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from anonymize.clustering.diverse import DiverseTable, centroid_loss
from anonymize.clustering.entropy import level_entropy
from anonymize.clustering.leftovers import Choice, disperse, least_increase
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models.sensitive_levels import SensitiveLevels
from anonymize.release import Release
from anonymize.tables import Table
from crypto.primitives.randomness import Randomness
from link.errors import ConfigurationError

Floats = NDArray[np.float64]
Term = Literal["reciprocal", "bounded"]
Leftover = Literal["psi", "infoloss"]

_NO_HIERARCHIES: Final[Mapping[str, Hierarchy]] = MappingProxyType({})
_NO_LOSS: Final = 1e-12  # a smaller loss is the rounding error of none


@dataclass(frozen=True, eq=False)
class PrivacySecurityIndex:
    """PSI = w₁·HEC + w₂ / InfoLoss (eq. 21).

    Attributes:
        weights: Shape (levels,), of the levels in HEC.
        entropy: w₁.
        loss: w₂.
        term: "reciprocal" is the paper's 1 / InfoLoss, "bounded" 1 / (1 + InfoLoss).
        base: Of the logarithm in HEC.
    """

    weights: Floats
    entropy: float
    loss: float
    term: Term = "reciprocal"
    base: float = 2.0

    def entropies(self, level_counts: NDArray[np.int64]) -> Floats:
        """HEC of classes, shape (c,), by their records of each level, shape (c, levels)."""
        return level_entropy(level_counts, self.weights, self.base)

    def index(self, loss: float, entropy: float) -> float:
        """PSI of a class."""
        if self.term == "bounded":
            return self.entropy * entropy + self.loss / (1 + loss)
        return self.entropy * entropy + (self.loss / loss if loss > _NO_LOSS else math.inf)

    def greatest(self, with_it: Floats, _: Floats, level_counts: NDArray[np.int64]) -> int:
        """The class of greatest PSI after a record has joined, then of greatest HEC, then the first."""
        entropies = self.entropies(level_counts)
        terms = with_it + 1 if self.term == "bounded" else np.where(with_it > _NO_LOSS, with_it, 0)
        gains = np.divide(1, terms, out=np.full(len(terms), np.inf), where=terms > 0)
        index = self.entropy * entropies + self.loss * gains
        tied = np.flatnonzero(index == index.max())
        return int(tied[entropies[tied].argmax()])


def maa_slie(
    table: Table,
    k: int,
    p: int,
    levels: SensitiveLevels,
    *,
    rng: Randomness,
    hierarchies: Mapping[str, Hierarchy] = _NO_HIERARCHIES,
    psi_weights: tuple[float, float] = (0.5, 0.5),
    term: Term = "reciprocal",
    leftover: Leftover = "psi",
    base: float = 2.0,
) -> Release:
    """Publishes class centres that are (H, p, k)-anonymous.

    Args:
        table: Quasi-identifiers of any kind; the sensitive columns are published as they are.
        k: Least number of records of a class.
        p: Least number of sensitive values of a class.
        levels: H, the least number of levels of a class; the sensitive column, its levels, and their weights in HEC.
        rng: For the order of the leftover records.
        hierarchies: Of quasi-identifiers of kind tree or code; without one, all values of a column differ by 1.
        psi_weights: w₁ of the entropy and w₂ of the loss; they sum to 1.
        term: How the loss enters PSI, see `PrivacySecurityIndex`.
        leftover: "psi" (as in the paper) lets a leftover record join the class of greatest PSI, which tends to pile
            them up in few rich classes; "infoloss" the one whose loss rises least.
        base: Of the logarithm in HEC.

    Returns:
        All rows; statistics as in `DiverseTable.publish`.

    Raises:
        ConfigurationError: A parameter does not suit the table; the sentence says what would.
        InputDataError: A value has no place in its column's hierarchy.
    """
    entropy, loss = psi_weights
    if min(psi_weights) < 0 or abs(entropy + loss - 1) > 1e-9:
        raise ConfigurationError(
            f"The weights of PSI are {entropy:g} and {loss:g}; they must be at least 0 and sum to 1, such as 0.5 "
            "and 0.5."
        )
    if term not in get_args(Term) or leftover not in get_args(Leftover):
        raise ConfigurationError(
            f'term is "{term}" and leftover is "{leftover}"; terms are {", ".join(get_args(Term))}, leftovers '
            f"{', '.join(get_args(Leftover))}."
        )
    if not base > 1:
        raise ConfigurationError(f"The base of the logarithm is {base:g}; choose one above 1, such as 2.")
    if levels.weights is None:
        raise ConfigurationError("The levels of sensitivity have no weights, which their entropy needs; give each one.")
    diverse = DiverseTable.of(table, k, p, levels, None, hierarchies)
    index = PrivacySecurityIndex(diverse.weights, entropy, loss, term, base)
    clustering = diverse.clustering(centroid_loss, index)
    classes, rest = clustering.grow(clustering.distances_from_centroid())
    choose: Choice = index.greatest if leftover == "psi" else least_increase
    disperse(clustering, classes, rest[rng.permutation(len(rest))], choose)
    parameters = {"psi_weights": psi_weights, "term": term, "leftover": leftover, "base": base}
    return diverse.publish(
        "maa-slie", classes, len(rest), {**parameters, "levels": levels.levels, "weights": levels.weights}
    )
