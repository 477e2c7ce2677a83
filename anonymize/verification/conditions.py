"""Privacy models, recomputed class by class in exact numbers where the definition is rational.

The definitions are those of the papers, written a second time on purpose: k-anonymity (Samarati 2001), ℓ-diversity
(Machanavajjhala et al. 2006), t-closeness (Li et al. 2007), p-sensitivity (Truta and Vinay 2006), (α, k) (Wong et al.
2006), (H, p, k), β-likeness (Cao and Karras 2012), δ-disclosure (Brickell and Shmatikov 2008).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Final

from anonymize.certificate import (
    Certificate,
    ClosenessClaim,
    DisclosureClaim,
    DiversityClaim,
    LevelsClaim,
    LikenessClaim,
    ShareClaim,
    Written,
)
from anonymize.verification.findings import Finding
from anonymize.verification.rows import EquivalenceClass, Key, key_of
from link.plugins import load_function, names

GROUP: Final = "comine.anonymity_conditions"
_TOLERANCE = 1e-9  # of logarithms and of sums of shares
_UNHEARD_OF = 10**9  # the gain of a value that the input does not have
Counts = Mapping[Key, int]


def _exact(number: Written) -> Fraction:
    return Fraction(str(number))  # the decimal, or the fraction, that the certificate writes


def conditions(certificate: Certificate, classes: Sequence[EquivalenceClass]) -> Iterator[Finding]:
    """Every claimed condition against every class.

    Args:
        certificate: The claims, and the input's sensitive counts.
        classes: All classes that the release shows.
    """
    model = certificate.model
    k = model.k
    if k is not None:
        yield _finding(f"k-anonymity, k = {k}", classes, lambda c: c.size >= k, lambda c: c.size, "rows")
    for diversity in model.l:
        yield _diversity(diversity, classes)
    for sensitivity in model.p:
        for column in sensitivity.columns:
            check = f"p-sensitivity of {column}, p = {sensitivity.value}"
            yield _distinct(check, column, sensitivity.value, classes)
    for share in model.alpha:
        yield _largest_share(certificate, share, classes)
    for levels in model.levels:
        yield _levels(certificate, levels, classes)
    relative: list[ClosenessClaim | LikenessClaim | DisclosureClaim] = [*model.t, *model.beta, *model.delta]
    for claim in relative:
        if certificate.sensitive_counts.get(claim.column) is None:
            why = "the input's counts are withheld; only the original shows that"
            yield Finding(f"closeness of {claim.column} to the input", "every class", why, None)
        elif isinstance(claim, ClosenessClaim):
            yield _closeness(certificate, claim, classes)
        elif isinstance(claim, LikenessClaim):
            yield _likeness(certificate, claim, classes)
        else:
            yield _disclosure(certificate, claim, classes)
    if model.outside:
        yield from _outside(certificate, classes)


def _outside(certificate: Certificate, classes: Sequence[EquivalenceClass]) -> Iterator[Finding]:
    """The conditions of models that comine does not have, by the plug-ins that bring a check of them."""
    known = names(GROUP)  # looked up once, however many keys a stranger's certificate has
    for key, claims in certificate.model.outside.items():
        check = load_function(GROUP, key) if key in known else None
        if check is None:
            unknown = f"this verifier does not know the model '{key[:40]}', so nothing was checked of it"
            yield Finding(f"the model {key[:40]}", "a model that this verifier knows", unknown, False)
            continue
        for claim in claims:
            yield from check(claim, certificate, classes)


def _finding(
    check: str,
    classes: Sequence[EquivalenceClass],
    holds: Callable[[EquivalenceClass], bool],
    measure: Callable[[EquivalenceClass], float],
    unit: str,
) -> Finding:
    """Whether a condition holds of all classes; the class of least measure is named."""
    if not classes:
        return Finding(check, "every class", "there is no class", True)
    broken = [each for each in classes if not holds(each)]
    worst = min(broken or classes, key=measure)
    shown = f"{abs(measure(worst)):.6g} {unit} in ({', '.join(worst.cells)})"
    found = f"least: {shown}" if not broken else f"{len(broken)} of {len(classes)} classes fail, such as {shown}"
    return Finding(check, "every class", found, not broken)


def _distinct(check: str, column: str, least: float, classes: Sequence[EquivalenceClass]) -> Finding:
    def values(c: EquivalenceClass) -> int:
        return len(c.counts[column])

    return _finding(check, classes, lambda c: values(c) >= least, values, "values")


def _largest_share(certificate: Certificate, claim: ShareClaim, classes: Sequence[EquivalenceClass]) -> Finding:
    kind, alpha = certificate.columns[claim.column].kind, _exact(claim.value)
    bounded = None if claim.values is None else {key_of(value, kind) for value in claim.values}

    def share(c: EquivalenceClass) -> Fraction:
        counts = c.counts[claim.column].items()
        return Fraction(max((n for value, n in counts if bounded is None or value in bounded), default=0), c.size)

    check = f"(α, k)-anonymity of {claim.column}, α = {claim.value}"
    return _finding(check, classes, lambda c: share(c) <= alpha, lambda c: -float(share(c)), "as the largest share")


def _levels(certificate: Certificate, claim: LevelsClaim, classes: Sequence[EquivalenceClass]) -> Finding:
    kind = certificate.columns[claim.column].kind
    level_of = {key_of(value, kind): place for place, values in enumerate(claim.levels) for value in values}

    def levels(c: EquivalenceClass) -> int:
        return len({level_of[value] for value in c.counts[claim.column] if value in level_of})

    check = f"sensitive levels of {claim.column}, H = {claim.value}"
    return _finding(check, classes, lambda c: levels(c) >= claim.value, levels, "levels")


def _diversity(claim: DiversityClaim, classes: Sequence[EquivalenceClass]) -> Finding:
    name, l = claim.column, claim.value  # noqa: E741 - the model's own name
    if claim.kind == "distinct":
        check = f"distinct ℓ-diversity of {name}, ℓ = {l:g}"
        return _distinct(check, name, l, classes)
    if claim.kind == "entropy":
        check = f"entropy ℓ-diversity of {name}, ℓ = {l:g}"
        return _finding(
            check,
            classes,
            lambda c: _entropy(c.counts[name]) >= math.log(l) - _TOLERANCE,
            lambda c: math.exp(_entropy(c.counts[name])),
            "as exp(entropy)",
        )
    factor = _exact(claim.c if claim.c is not None else 0)
    check = f"recursive (c, ℓ)-diversity of {name}, c = {claim.c}, ℓ = {l:g}"

    def tail(c: EquivalenceClass) -> int:
        return sum(sorted(c.counts[name].values(), reverse=True)[int(l) - 1 :])

    def holds(c: EquivalenceClass) -> bool:
        return max(c.counts[name].values()) < factor * tail(c)

    return _finding(
        check, classes, holds, lambda c: tail(c) / max(c.counts[name].values()), "of the most frequent value"
    )


def _entropy(counts: Counts) -> float:
    total = sum(counts.values())
    return -sum(n / total * math.log(n / total) for n in counts.values())


def _shares(certificate: Certificate, column: str) -> dict[Key, Fraction]:
    """Q: the input's share of each value."""
    kind = certificate.columns[column].kind
    counts = {key_of(value, kind): n for value, n in (certificate.sensitive_counts[column] or {}).items() if n}
    total = sum(counts.values())
    return {value: Fraction(n, total) for value, n in counts.items()}


def _differences(each: EquivalenceClass, column: str, whole: Mapping[Key, Fraction]) -> dict[Key, Fraction]:
    held = each.counts[column]
    return {value: Fraction(held.get(value, 0), each.size) - q for value, q in whole.items()}


def _closeness(certificate: Certificate, claim: ClosenessClaim, classes: Sequence[EquivalenceClass]) -> Finding:
    column, kind = claim.column, certificate.columns[claim.column].kind
    whole = _shares(certificate, column)
    check = f"t-closeness of {column} ({claim.distance}), t = {claim.value}"
    unknown = [each for each in classes if not each.counts[column].keys() <= whole.keys()]
    if unknown:
        return Finding(check, "values of the input", f"{len(unknown)} classes hold values that the input lacks", False)
    distance: Callable[[EquivalenceClass], float]
    if claim.distance in ("variational", "equal"):

        def distance(c: EquivalenceClass) -> float:
            return float(sum(map(abs, _differences(c, column, whole).values())) / 2)

    elif claim.distance == "kl":

        def distance(c: EquivalenceClass) -> float:
            return sum(n / c.size * math.log(Fraction(n, c.size) / whole[v]) for v, n in c.counts[column].items())

    elif claim.distance == "ordered":
        order = [key_of(value, kind) for value in claim.order or ()]
        places = [_exact(place) for place in claim.positions or range(len(order))]
        if not whole.keys() <= set(order) or len(places) != len(order):
            return Finding(check, "an order of all values", "the certificate's order lacks values", False)

        def distance(c: EquivalenceClass) -> float:
            return _ordered(_differences(c, column, whole), order, places)

    else:
        paths = {key_of(value, kind): path for value, path in (claim.paths or {}).items()}
        if not whole.keys() <= paths.keys() or len({len(path) for path in paths.values()}) > 1:
            return Finding(check, "a path for each value", "the certificate's hierarchy lacks values or levels", False)

        def distance(c: EquivalenceClass) -> float:
            return _hierarchical(_differences(c, column, whole), paths)

    limit = float(_exact(claim.value)) + _TOLERANCE
    return _finding(check, classes, lambda c: distance(c) <= limit, lambda c: -distance(c), "as the largest distance")


def _ordered(extra: Mapping[Key, Fraction], order: Sequence[Key], places: Sequence[Fraction]) -> float:
    """Earth mover's distance along a line: what is carried over each gap, by the gap's width."""
    span = places[-1] - places[0] if places else Fraction(0)
    carried, cost = Fraction(0), Fraction(0)
    for value, (here, there) in zip(order[:-1], pairwise(places), strict=True):
        carried += extra.get(value, Fraction(0))
        cost += abs(carried) * (there - here)
    return float(cost / span) if span else 0.0


def _hierarchical(extra: Mapping[Key, Fraction], paths: Mapping[Key, Sequence[str]]) -> float:
    """Earth mover's distance in a tree: at each inner node the children settle among themselves what they can."""
    height = max(map(len, paths.values())) - 1
    settled, nodes = Fraction(0), {(0, str(value)): (amount, paths[value]) for value, amount in extra.items()}
    for level in range(1, height + 1):
        surplus: dict[str, Fraction] = {}
        lack: dict[str, Fraction] = {}
        merged: dict[tuple[int, str], tuple[Fraction, Sequence[str]]] = {}
        for amount, path in nodes.values():
            parent = path[level]
            surplus[parent] = surplus.get(parent, Fraction(0)) + max(amount, Fraction(0))
            lack[parent] = lack.get(parent, Fraction(0)) + max(-amount, Fraction(0))
            merged[level, parent] = (merged.get((level, parent), (Fraction(0), path))[0] + amount, path)
        settled += Fraction(level, height) * sum(min(surplus[node], lack[node]) for node in surplus)
        nodes = merged
    return float(settled)


def _likeness(certificate: Certificate, claim: LikenessClaim, classes: Sequence[EquivalenceClass]) -> Finding:
    whole, beta = _shares(certificate, claim.column), _exact(claim.value)

    def gains(c: EquivalenceClass) -> Iterator[tuple[Fraction, Fraction]]:
        for value, n in c.counts[claim.column].items():
            q = whole.get(value, Fraction(0))
            yield (Fraction(n, c.size) / q - 1 if q else Fraction(_UNHEARD_OF)), q

    def within(gain: Fraction, q: Fraction) -> bool:
        return gain <= beta and (not claim.enhanced or gain <= 0 or gain * q <= -math.log(q) * q + _TOLERANCE)

    return _finding(
        f"β-likeness of {claim.column}, β = {claim.value}" + (", enhanced" if claim.enhanced else ""),
        classes,
        lambda c: all(within(gain, q) for gain, q in gains(c)),
        lambda c: -float(max(gain for gain, _ in gains(c))),
        "as the largest gain",
    )


def _disclosure(certificate: Certificate, claim: DisclosureClaim, classes: Sequence[EquivalenceClass]) -> Finding:
    whole, delta = _shares(certificate, claim.column), float(_exact(claim.value))

    def largest(c: EquivalenceClass) -> float:
        counts = c.counts[claim.column].items()
        return max(abs(math.log(Fraction(n, c.size) / whole[v])) if v in whole else math.inf for v, n in counts)

    return _finding(
        f"δ-disclosure of {claim.column}, δ = {claim.value}",
        classes,
        lambda c: largest(c) < delta,
        lambda c: -largest(c),
        "as the largest logarithm",
    )
