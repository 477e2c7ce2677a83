"""Mechanisms for the mean of one number by the names that commands and files use."""

from __future__ import annotations

from typing import Any, Final

from ldp.numeric.duchi import Duchi
from ldp.numeric.hybrid import Hybrid
from ldp.numeric.laplace import DiscreteLaplace
from ldp.numeric.mean import NumericMechanism
from ldp.numeric.piecewise import Piecewise
from link.errors import ConfigurationError

_KINDS: Final = (DiscreteLaplace, Duchi, Piecewise, Hybrid)

NUMERIC: Final = tuple(kind.name for kind in _KINDS)


def numeric(
    name: str, epsilon: float, low: float = -1.0, high: float = 1.0, clip: bool = False, **parameters: Any
) -> NumericMechanism:
    """The mechanism of a name.

    Args:
        name: One of `NUMERIC`.
        epsilon: The privacy budget ε.
        low: The range's lower end; not to be computed from the data.
        high: Its upper end.
        clip: Whether numbers outside are moved to the nearer end, instead of being refused.
        **parameters: Further parameters of that mechanism.

    Raises:
        ConfigurationError: There is none of that name, or a parameter is wrong.
    """
    for kind in _KINDS:
        if kind.name == name:
            return kind(epsilon, low, high, clip, **parameters)
    raise ConfigurationError(f"there is no mechanism for means '{name}'; take one of {', '.join(NUMERIC)}")
