"""What each model and algorithm protects, and what it leaves open, for people who have to answer for a release."""

from __future__ import annotations

from typing import Final, NamedTuple

from anonymize.models import Model


class Protection(NamedTuple):
    """What holds and what does not, as sentences."""

    holds: str
    open: str


_MODELS: Final = {
    "k-anonymity": Protection(
        "Whoever knows a person's quasi-identifiers finds at least {k} rows that could be theirs.",
        "If these rows agree in a sensitive value, it is known all the same.",
    ),
    "distinct l-diversity": Protection(
        "Each class has at least {l} values of {column}.",
        "One of them may be by far the most likely, and who can rule some out is nearer to the rest.",
    ),
    "entropy l-diversity": Protection(
        "The values of {column} are spread in each class as widely as {l} equally likely ones.",
        "Values that are alike in meaning count as different.",
    ),
    "recursive (c, l)-diversity": Protection(
        "In each class the most frequent value of {column} is not much more frequent than those from the l-th on "
        "together (c = {c}, l = {l}).",
        "Values that are alike in meaning count as different.",
    ),
    "t-closeness": Protection(
        "What a class tells about {column} is within {t} ({distance}) of what the whole table tells.",
        "What the whole table tells of everybody stays told; t bounds a mean, not each value.",
    ),
    "p-sensitive k-anonymity": Protection(
        "Each class has at least {p} values of every one of: {columns}.",
        "One of them may be by far the most likely.",
    ),
    "(alpha, k)-anonymity": Protection(
        "No value of {column} has more than the share {alpha} of a class.",
        "A chance of up to that share is accepted.",
    ),
    "H sensitive levels": Protection(
        "Each class has values of {column} of at least {h} levels of sensitivity.",
        "The levels are a judgement; within one, values may agree.",
    ),
    "beta-likeness": Protection(
        "No value of {column} is more likely in a class by more than the factor 1 + {beta} than in the whole table.",
        "Values may become less likely without a bound.",
    ),
    "delta-disclosure privacy": Protection(
        "Each value of {column} that a class holds is as likely there as in the whole table, up to a factor e^{delta}.",
        "A value may be absent from a class.",
    ),
}

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
            known = _MODELS[model.name]
            found.append((model.name, Protection(known.holds.format(**values), known.open)))
    else:
        known = _ALGORITHMS[algorithm]
        found.append((algorithm, Protection(known.holds.format(k=k), known.open)))
    return found


def _words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
