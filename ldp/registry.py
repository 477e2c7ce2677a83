"""Frequency oracles and other mechanisms by the names that commands and files use.

Other packages bring frequency oracles as entry points of the group `comine.mechanisms`, by their names. They are loaded
when they are asked for, and take no name that is in use here.
"""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from typing import Any, Final, get_args, get_type_hints

from ldp.choice import choose
from ldp.domain import DomainLike
from ldp.frequency_oracle import FrequencyOracle
from ldp.longitudinal.memoised import MemoisedMechanism
from ldp.mechanism import Mechanism
from link.errors import ConfigurationError
from link.plugins import load_class, names

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

COLLECTED: Final = {
    **HOMES,
    "dbitflip": "longitudinal.bit_flip:BitFlip",
    "1bit-mean": "longitudinal.one_bit_mean:OneBitMean",
    "rappor": "rappor.mechanism:Rappor",
    "sfp": "heavy_hitters.fragment_puzzle:SequenceFragmentPuzzle",
    "prefix-hashing": "heavy_hitters.prefix_extending:PrefixHashing",
    "padding-and-sampling": "sets.padding:PaddingAndSampling",
    "set-sizes": "sets.size_histogram:SetSizes",
    "privset": "sets.privset:PrivSet",
    "wheel": "sets.wheel:Wheel",
    "two-stage": "blending.two_stages:TwoStageEncoding",
    "sampled": "streams.sampled:Sampled",
}
"""The mechanisms that a service collects by, and where they live, relative to this package."""

ORACLES: Final = tuple(HOMES)
"""The frequency oracles of comine itself."""

GROUP: Final = "comine.mechanisms"
_TAKEN: Final = frozenset({*COLLECTED, "auto", "prefix-extending"})


def oracle(name: str, domain: DomainLike, epsilon: float, **parameters: float | None) -> FrequencyOracle:
    """The oracle of a name.

    Args:
        name: One of `oracle_names()`, or "auto" for the one that `ldp.choice.choose` takes.
        domain: The domain, its size, or the texts of its values.
        epsilon: The privacy budget ε.
        **parameters: Further parameters of that oracle.

    Raises:
        ConfigurationError: There is none of that name, or a parameter is wrong.
    """
    given: dict[str, Any] = dict(parameters)  # whose kinds the oracle checks
    if name == "auto":
        return choose(domain, epsilon, **given).oracle
    if name not in HOMES and not is_brought(name):
        raise ConfigurationError(f"there is no frequency oracle '{name}'; take one of {', '.join(oracle_names())}")
    known = settable(name)
    for each in parameters:
        if each not in known:
            raise ConfigurationError(
                f"{name} has no parameter '{each}'; it has {', '.join(known) or 'none beside epsilon'}"
            )
    return _oracle(name)(domain, epsilon, **given)


def oracle_names() -> tuple[str, ...]:
    """The names of all frequency oracles, those of other packages last.

    Example:
        >>> oracle_names()[:3]
        ('grr', 'sue', 'oue')
    """
    return (*ORACLES, *brought())


def brought() -> tuple[str, ...]:
    """The names of the oracles that other packages bring; none is loaded."""
    return tuple(name for name in names(GROUP) if name not in _TAKEN)


def is_brought(name: str) -> bool:
    """Whether another package brings an oracle of that name."""
    return name not in _TAKEN and name in names(GROUP)


def mechanism_class(name: str) -> type[Mechanism[Any]]:
    """The class of a mechanism that a service collects by.

    Raises:
        KeyError: There is none of that name.
        ConfigurationError: Another package brings it, and it cannot be used.
    """
    if name in COLLECTED:
        module, kind = COLLECTED[name].split(":")
        found: type[Mechanism[Any]] = getattr(import_module(f"ldp.{module}"), kind)
        return found
    if name in _TAKEN:
        raise KeyError(name)
    outside = load_class(GROUP, name, FrequencyOracle, called=True)  # type: ignore[type-abstract]
    if outside is None:
        raise KeyError(name)
    if issubclass(outside, MemoisedMechanism):  # ε of a report would say nothing of all reports of a value together
        raise ConfigurationError(
            f"the mechanism '{name}' of another package keeps answers for later reports, which only comine's own may; "
            "take l-grr or l-osue"
        )
    return outside


def settable(name: str) -> dict[str, type[int] | type[float]]:
    """The parameters of an oracle beside its domain and ε, and whether they are whole numbers.

    Args:
        name: One of `oracle_names()`.
    """
    kind = _oracle(name)
    hints = get_type_hints(kind.__init__)
    names = [each for each in signature(kind).parameters if each not in {"domain", "epsilon"}]
    return {each: float if float in {hints[each], *get_args(hints[each])} else int for each in names}


def _oracle(name: str) -> type[FrequencyOracle]:
    found = mechanism_class(name)
    assert issubclass(found, FrequencyOracle)
    return found
