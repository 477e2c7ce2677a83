"""The mechanism by which a round of a collection takes reports, as the collection's specification gives it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import prod
from typing import Any, Final

from jobs.collections.tables import OPEN_DOMAINS, CollectionSection, CollectionTables
from ldp.budget import check_epsilon, float_below
from ldp.choice import choose
from ldp.domain import Domain
from ldp.heavy_hitters.bit_strings import Integers, Strings, Texts
from ldp.heavy_hitters.prefix_extending import PrefixExtending
from ldp.longitudinal.memoised import MemoisedMechanism, permanent_budget
from ldp.mechanism import Mechanism
from ldp.rappor.mechanism import Rappor
from ldp.registry import mechanism_class
from ldp.streams.allocation import budgets
from ldp.streams.method import StreamMethod
from ldp.streams.methods import stream_method
from ldp.streams.sampled import Sampled
from ldp.streams.sliding_memo import SlidingMemo
from link.errors import ConfigurationError

TWO_ROUNDS: Final = frozenset({"rappor", "l-grr", "l-osue"})
"""Mechanisms whose clients keep an answer of a larger ε∞, and perturb it anew for each report."""

MAX_REPORT_BYTES: Final = 1 << 20
MAX_TALLY_CELLS: Final = 1 << 25
MAX_PREFIXES: Final = 1 << 20

_KINDS: Final = {bool: {"bool"}, int: {"int", "float"}, Decimal: {"float"}}  # of values, and what may hold them
_CALLED: Final = {bool: "true or false", int: "a whole number", Decimal: "a number with a point"}
_GIVEN: Final = frozenset({"self", "domain", "epsilon", "strings", "k"})  # which the specification has elsewhere


def mechanism_of_round(spec: CollectionTables, domain: Domain | None, number: int = 0) -> Mechanism[Any]:
    """The mechanism of a round, of the first one where later ones follow from it.

    What follows is decided by `search_of` and `stream_of`.

    Args:
        spec: The collection's.
        domain: As `CollectionSpec.domain` gives it.
        number: The round, where a series gives each its own budget.

    Raises:
        ConfigurationError: A parameter is unknown or wrong, or reports or their sums would be too large.
    """
    section, series = spec.collection, budgets_of(spec)
    budget = check_epsilon(float_below(section.epsilon)) if series is None else float(series[number])
    if section.mechanism == "prefix-extending":
        return search_of(spec).oracle(0)
    if section.mechanism in OPEN_DOMAINS:
        return _made(section, mechanism_class(section.mechanism), strings_of(spec), budget, section.k)
    if section.mechanism == "1bit-mean":
        return _made(section, mechanism_class("1bit-mean"), budget)
    if section.mechanism == "rappor":
        permanent = section.parameters.get("permanent_epsilon")
        rest = {name: value for name, value in _plain(section).items() if name != "permanent_epsilon"}
        _check_parameters(section, Rappor.for_budget)
        given = None if permanent is None else float_below(Decimal(permanent))
        return Rappor.for_budget(budget, permanent_budget(budget, given), **rest)
    assert domain is not None
    if spec.continual is not None:
        stream = stream_of(spec, domain)
        phase = stream.plan(1)  # all of them ask at their first step
        assert phase is not None
        return stream.mechanism(phase.epsilon)
    if spec.sampling is not None:
        _check_parameters(section, choose if section.mechanism == "auto" else mechanism_class(section.mechanism))
        return Sampled.for_budget(section.mechanism, domain, budget, spec.sampling.exact, **_plain(section))
    if section.mechanism == "auto":
        _check_parameters(section, choose)
        return choose(domain, budget, **_plain(section)).oracle
    return _made(section, mechanism_class(section.mechanism), domain, budget)


def budgets_of(spec: CollectionTables) -> tuple[Fraction, ...] | None:
    """ε of a report in each window, where a series gives them; None where all have the same.

    Raises:
        ConfigurationError: The series does not fit the collection's ε and windows.
    """
    if spec.budget is None:
        return None
    assert spec.window is not None
    section = spec.budget
    try:
        return budgets(
            section.series,
            float_below(spec.collection.epsilon),
            spec.window.periods,
            ratio=None if section.ratio is None else float(section.ratio),
            exponent=None if section.exponent is None else float(section.exponent),
            errors=tuple(map(float, section.errors or ())),
        )
    except ConfigurationError as error:
        raise ConfigurationError(f"[budget] each window is a query: {error.message}") from None


def report_epsilon(spec: CollectionTables) -> Decimal:
    """The largest ε of a report that the collection may ask for."""
    series = budgets_of(spec)
    return spec.collection.epsilon if series is None else Decimal(float(max(series)))


def kept_epsilon(spec: CollectionTables) -> Decimal:
    """ε∞, the ε of all reports of one value together, where a client keeps an answer that it repeats; else that of one.

    Raises:
        ConfigurationError: It does not exceed that of one report, as it has to.
    """
    section = spec.collection
    if section.mechanism not in TWO_ROUNDS:
        return report_epsilon(spec)
    given = section.parameters.get("permanent_epsilon")
    if given is None:
        return Decimal(permanent_budget(float_below(report_epsilon(spec)), None))
    return Decimal(given)


def search_of(spec: CollectionTables) -> PrefixExtending:
    """The plan of a search for heavy hitters by prefixes.

    Raises:
        ConfigurationError: A parameter is unknown or wrong.
    """
    section = spec.collection
    _check_parameters(section, PrefixExtending)
    assert section.k is not None
    return PrefixExtending(strings_of(spec), float_below(section.epsilon), section.k, **_plain(section))


def stream_of(spec: CollectionTables, domain: Domain) -> StreamMethod:
    """The method of continual release, before its first step.

    Raises:
        ConfigurationError: The window is too long for the budget.
    """
    assert spec.continual is not None
    section = spec.collection
    epsilon = float_below(section.epsilon)
    return stream_method(spec.continual.method, domain, epsilon, spec.continual.w, section.mechanism)


def strings_of(spec: CollectionTables) -> Strings:
    """How values of an open domain are written."""
    section = spec.collection
    if section.text_bytes is not None:
        return Texts(section.text_bytes)
    assert section.integer_bits is not None
    return Integers(section.integer_bits)


def check_mechanism(spec: CollectionTables) -> int:
    """Refuses a specification whose mechanism cannot be made, or would need very much.

    Returns:
        How many sums an open round keeps, at the most.

    Raises:
        ConfigurationError: The sentence says which parameter is wrong.
    """
    sums = _check_search(search_of(spec)) if spec.collection.mechanism == "prefix-extending" else 0
    size = spec.collection.size
    domain, series = None if size is None else Domain(size), budgets_of(spec)
    # Between the least and the largest budget lie all others.
    for number in {0} if series is None else {series.index(min(series)), series.index(max(series))}:
        sums = max(sums, _check_size(mechanism_of_round(spec, domain, number)))
    if spec.memo is not None:
        found = mechanism_of_round(spec, domain)
        assert isinstance(found, MemoisedMechanism)
        try:
            SlidingMemo.drawn(found, spec.memo.w, float_below(spec.memo.epsilon))
        except ConfigurationError as error:
            raise ConfigurationError(f"[memo] of {spec.memo.w:,} windows together: {error.message}") from None
    return sums


def _check_size(found: Mechanism[Any]) -> int:
    """How many sums there are."""
    if found.report_bytes > MAX_REPORT_BYTES:
        raise ConfigurationError(
            f"reports of {found.name} would take {found.report_bytes:,} bytes, more than {MAX_REPORT_BYTES:,}; take a "
            'mechanism with shorter ones, such as mechanism = "olh"'
        )
    if prod(found.tally_shape) > MAX_TALLY_CELLS:
        raise ConfigurationError(
            f"{found.name} would keep {prod(found.tally_shape):,} sums with these parameters, more than "
            f"{MAX_TALLY_CELLS:,}; take fewer functions or buckets"
        )
    return prod(found.tally_shape)


def _check_search(plan: PrefixExtending) -> int:
    """How many candidates a round has, at the most."""
    widest = max((stop - start for start, stop in pairwise(plan.lengths)), default=0)
    most = max(1 << plan.lengths[0], plan.keep << widest)
    if most > MAX_PREFIXES:
        raise ConfigurationError(
            f"a round of the search would have {most:,} candidates, more than {MAX_PREFIXES:,}; take more groups, or "
            "keep fewer"
        )
    return most


def _made(section: CollectionSection, kind: Callable[..., Mechanism[Any]], *given: object) -> Mechanism[Any]:
    _check_parameters(section, kind)
    return kind(*given, **_plain(section))


def _check_parameters(section: CollectionSection, maker: Callable[..., object]) -> None:
    known = inspect.signature(maker).parameters
    names = sorted(set(known) - _GIVEN)
    for name, value in section.parameters.items():
        if name not in names:
            there = f"; there are {', '.join(names)}" if names else ", which has none"
            raise ConfigurationError(f"'{name[:40]}' is no parameter of {section.mechanism}{there}")
        kinds = set(str(known[name].annotation).split(" | "))
        wanted = _KINDS[type(value)]
        if not kinds & wanted:
            raise ConfigurationError(
                f"the parameter '{name}' of {section.mechanism} is {_CALLED[type(value)]}, and it takes "
                f"{' or '.join(sorted(kinds - {'None'}))}"
            )


def _plain(section: CollectionSection) -> dict[str, Any]:
    """The parameters as Python's numbers; budgets are rounded down, as ε itself is."""
    kinds = {name: float_below if name == "permanent_epsilon" else float for name in section.parameters}
    return {
        name: kinds[name](value) if isinstance(value, Decimal) else value for name, value in section.parameters.items()
    }
