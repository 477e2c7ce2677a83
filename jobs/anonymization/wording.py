"""What each algorithm protects beside its models and leaves open, for people who have to answer for a release."""

from __future__ import annotations

from typing import Final

from anonymize.models.model import Model, Protection

_ALGORITHMS: Final = {
    "condensation": Protection(
        "Every published record is synthetic: drawn from the means and covariances of groups of at least {k} records.",
        "A group's moments may lie near a single extreme record, and no model of classes holds.",
    ),
    "distributions": Protection(
        "Every published record has so much noise that it is one of {k} in expectation, for an attacker who knows all "
        "true values.",
        "That is a mean over the noise, not a bound for each record; sensitive values are published as they are.",
    ),
    "ppir": Protection(
        "Every published record was moved at random within the ranges given.",
        "There is no formal guarantee: a record may come out as it was, and who knows numbers nearly can link by "
        "distance.",
    ),
}

WORK: Final = {
    "nodes": "nodes of the lattice",
    "checked": "nodes examined",
    "rolled_up": "of these by roll-up",
    "pruned": "left out: certain to fail, or no better",
    "marked": "known to satisfy without a look",
    "regions": "regions",
    "cuts_tried": "cuts tried",
    "levels": "depth of the tree of cuts",
    "groups": "groups",
    "smallest": "records of the smallest group",
    "largest": "records of the largest group",
    "il": "SSE / SST, the share of variance lost",
    "classes_built": "classes built",
    "leftover": "records left over, which joined a class last",
    "epp": "EPP, mean entropy of sensitive levels",
    "r_il": "R_IL, mean distance from the centre",
    "mean_sigma": "mean deviation of the noise, in units of the columns",
    "largest_sigma": "greatest deviation of the noise",
    "accepted": "records with an accepted draw",
    "exhausted": "records without one",
    "mean_tries": "mean number of draws",
    "leak_rate": "share of records with an identity similarity of 0.95 or more",
}
"""What the statistics of algorithms count."""

ALWAYS: Final = (
    "No model here protects against somebody who knows sensitive values of others in a class, or who joins this "
    "release with another release of the same people. None is differential privacy."
)


def protections(models: tuple[Model, ...], algorithm: str, k: int | None) -> list[tuple[str, Protection]]:
    """Of each model with its parameters, what it protects and what it leaves open; then of the algorithm."""
    found = []
    if algorithm not in _ALGORITHMS:
        for model in models:
            values = {name: _words(value) for name, value in model.parameters.items()}
            known = model.protection
            found.append((model.name, Protection(known.holds.format(**values), known.open)))
    else:
        known = _ALGORITHMS[algorithm]
        found.append((algorithm, Protection(known.holds.format(k=k), known.open)))
    return found


def _words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
