"""Frequency oracles by the names that commands and files use."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from ldp.domain import DomainLike
from ldp.oracle import FrequencyOracle
from link.errors import ConfigurationError

_HOMES: Final = {
    "grr": "direct_encoding:DirectEncoding",
    "sue": "unary_encoding:SymmetricUnaryEncoding",
    "oue": "unary_encoding:OptimisedUnaryEncoding",
    "blh": "local_hashing:BinaryLocalHashing",
    "olh": "local_hashing:OptimisedLocalHashing",
    "she": "histogram_encoding:SummationHistogramEncoding",
    "the": "histogram_encoding:ThresholdHistogramEncoding",
    "flh": "sketches:FastLocalHashing",
    "cms": "sketches:CountMeanSketch",
    "hcms": "sketches:HadamardCountMeanSketch",
    "hr": "hadamard_response:HadamardResponse",
    "ss": "subset_selection:SubsetSelection",
}

ORACLES: Final = tuple(_HOMES)


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
        from ldp.choice import choose

        return choose(domain, epsilon, **parameters).oracle
    if name not in _HOMES:
        raise ConfigurationError(f"there is no frequency oracle '{name}'; take one of {', '.join(ORACLES)}")
    module, kind = _HOMES[name].split(":")
    found = getattr(import_module(f"ldp.oracles.{module}"), kind)(domain, epsilon, **parameters)
    assert isinstance(found, FrequencyOracle)
    return found
