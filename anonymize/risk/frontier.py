"""Privacy against utility: an anonymiser run over its parameters, and the runs that no other one beats in both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from anonymize.release import Release
from anonymize.risk.reidentification import prosecutor
from anonymize.utility.loss import gcp
from anonymize.utility.summary import counted_sizes
from link.errors import ConfigurationError

Measure = Callable[[Release], float]


@dataclass(frozen=True)
class FrontierPoint:
    """One run.

    Attributes:
        parameters: What it was run with.
        risk: Measured on its release.
        loss: Measured on its release.
    """

    parameters: Mapping[str, Any]
    risk: float
    loss: float


@dataclass(frozen=True)
class Frontier:
    """All runs.

    Attributes:
        points: Runs that gave a release, in the order of their parameters.
        refused: Parameters that no release can meet, each with the reason.
    """

    points: tuple[FrontierPoint, ...]
    refused: tuple[tuple[Mapping[str, Any], str], ...]

    @property
    def pareto(self) -> tuple[FrontierPoint, ...]:
        """Runs that no other one beats, by ascending risk; of equal ones the first."""
        best: list[FrontierPoint] = []
        for point in sorted(self.points, key=lambda point: (point.risk, point.loss)):
            if not best or point.loss < best[-1].loss:
                best.append(point)
        return tuple(best)


def highest_risk(release: Release) -> float:
    """The prosecutor's risk of the smallest class; 0 where nothing is published.

    Raises:
        ConfigurationError: The release has no classes.
    """
    if release.classes is None:
        raise ConfigurationError("Without equivalence classes there is no prosecutor risk; measure linkage.")
    sizes = counted_sizes(release)
    return prosecutor(sizes).highest if sizes.size else 0.0


def mean_loss(release: Release) -> float:
    """GCP.

    Raises:
        ConfigurationError: The release measures no loss of cells.
    """
    if release.cell_loss is None:
        raise ConfigurationError("The release has no generalised cells; give another loss, such as a distortion.")
    return gcp(release.cell_loss)


def grid(**values: Sequence[Any]) -> list[dict[str, Any]]:
    """All combinations of parameters: `grid(k=[2, 5], t=[0.2, 0.4])` is four of them."""
    return [dict(zip(values, combination, strict=True)) for combination in product(*values.values())]


def frontier(
    anonymise: Callable[..., Release],
    parameters: Iterable[Mapping[str, Any]],
    *,
    risk: Measure = highest_risk,
    loss: Measure = mean_loss,
) -> Frontier:
    """Runs an anonymiser with each set of parameters.

    Args:
        anonymise: Takes a set of parameters as keywords.
        parameters: The sets, such as `grid(…)`.
        risk: Measures a release; smaller is more private.
        loss: Measures a release; smaller is more useful.

    Returns:
        The runs. Those that the anonymiser refuses with a `ConfigurationError` are listed with its reason.
    """
    points, refused = [], []
    for chosen in parameters:
        try:
            release = anonymise(**chosen)
        except ConfigurationError as error:
            refused.append((dict(chosen), error.message))
        else:
            points.append(FrontierPoint(dict(chosen), risk(release), loss(release)))
    return Frontier(tuple(points), tuple(refused))
