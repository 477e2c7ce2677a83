"""Frequency oracles by the names that commands and files use."""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from typing import Any, Final, get_args, get_type_hints

from ldp.choice import choose
from ldp.domain import DomainLike
from ldp.oracle import FrequencyOracle
from link.errors import ConfigurationError

HOMES: Final = {
    "grr": "oracles.direct_encoding:DirectEncoding",
    "sue": "oracles.unary_encoding:SymmetricUnaryEncoding",
    "oue": "oracles.unary_encoding:OptimisedUnaryEncoding",
    "blh": "oracles.local_hashing:BinaryLocalHashing",
    "olh": "oracles.local_hashing:OptimisedLocalHashing",
    "she": "oracles.histogram_encoding:SummationHistogramEncoding",
    "the": "oracles.histogram_encoding:ThresholdHistogramEncoding",
    "flh": "oracles.sketches:FastLocalHashing",
    "cms": "oracles.sketches:CountMeanSketch",
    "hcms": "oracles.sketches:HadamardCountMeanSketch",
    "hr": "oracles.hadamard_response:HadamardResponse",
    "ss": "oracles.subset_selection:SubsetSelection",
    "l-grr": "longitudinal.two_rounds:LongitudinalDirectEncoding",
    "l-osue": "longitudinal.two_rounds:LongitudinalUnaryEncoding",
}

ORACLES: Final = tuple(HOMES)


def oracle(name: str, domain: DomainLike, epsilon: float, **parameters: Any) -> FrequencyOracle:
    """The oracle of a name.

    Args:
        name: One of `ORACLES`, or "auto" for the one that `ldp.choice.choose` takes.
        domain: The domain, its size, or the texts of its values.
        epsilon: The privacy budget ε.
        **parameters: Further parameters of that oracle.

    Raises:
        ConfigurationError: There is none of that name, or a parameter is wrong.
    """
    if name == "auto":
        return choose(domain, epsilon, **parameters).oracle
    if name not in HOMES:
        raise ConfigurationError(f"there is no frequency oracle '{name}'; take one of {', '.join(ORACLES)}")
    known = settable(name)
    for each in parameters:
        if each not in known:
            raise ConfigurationError(
                f"{name} has no parameter '{each}'; it has {', '.join(known) or 'none beside epsilon'}"
            )
    return _kind(name)(domain, epsilon, **parameters)


def settable(name: str) -> dict[str, type[int] | type[float]]:
    """The parameters of an oracle beside its domain and ε, and whether they are whole numbers.

    Args:
        name: One of `ORACLES`.
    """
    kind = _kind(name)
    hints = get_type_hints(kind.__init__)
    names = [each for each in signature(kind).parameters if each not in {"domain", "epsilon"}]
    return {each: float if float in {hints[each], *get_args(hints[each])} else int for each in names}


def _kind(name: str) -> type[FrequencyOracle]:
    module, kind = HOMES[name].split(":")
    found: type[FrequencyOracle] = getattr(import_module(f"ldp.{module}"), kind)
    return found
