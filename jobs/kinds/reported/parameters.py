"""From a job specification to the public parameters of mining by perturbed records."""

from __future__ import annotations

from jobs.kinds.itemsets_parameters import asked_catalogue, asked_rules
from jobs.spec.job import UNIVERSES, JobSpec
from link.errors import ConfigurationError
from mining.joint.hybrid.parameters import DEFAULT_K, MOST_LOCAL, HybridMining, Search


def hybrid_mining(spec: JobSpec) -> HybridMining:
    """The public parameters of mining by perturbed records, as the specification gives them.

    Raises:
        ConfigurationError: The job names no catalogue, asks for what reports cannot show, or says what means nothing.
    """
    given, privacy = spec.itemsets, spec.privacy
    assert privacy.epsilon is not None  # which the specification refuses
    assert privacy.model in ("local", "shuffle")
    catalogue = _catalogue(spec)
    task = HybridMining(
        model="shuffle" if privacy.model == "shuffle" else "local",
        catalogue=catalogue,
        k=given.top_k or DEFAULT_K,
        search=_search(spec),
        epsilon=float(privacy.epsilon),
        delta=float(privacy.delta or 0) if privacy.model == "shuffle" else 0.0,
        most_local=float(privacy.local_epsilon or MOST_LOCAL),
        analyst=spec.analyst,
        shufflers=spec.shufflers if privacy.model == "shuffle" else (),
        colluding=max(0, privacy.colluding - 1),
        learners=spec.learners,
        min_support=given.min_support_,
        max_length=given.max_length,
        rules=asked_rules(spec),
    )
    _check_plan(task, task.epsilon if task.model == "local" else min(task.epsilon, task.most_local))
    if privacy.local_epsilon is not None:
        _check_plan(task, task.most_local, "with reports of local_epsilon, ")
    return task


def _check_plan(task: HybridMining, local_epsilon: float, when: str = "") -> None:
    """Refuses a search that cannot be made with reports of this ε, before anybody is asked to take part in it."""
    try:
        task.plan(local_epsilon)
    except ConfigurationError as error:
        searched = f"{when}the search for the {task.k} most frequent itemsets"
        raise ConfigurationError(f"{searched}: {error.message}") from None


def _catalogue(spec: JobSpec) -> tuple[str, ...]:
    given, asked = spec.itemsets, asked_catalogue(spec)
    if asked is None:
        named = f'universe = "{given.universe}"' if given.universe in UNIVERSES else "its catalogue"
        raise ConfigurationError(
            f'[privacy] model = "{spec.privacy.model}" asks about the items of a public catalogue, since the names of '
            f"items in the data would reveal records; in place of {named} give [itemsets] universe the path of a file "
            "with one item a line"
        )
    if len(asked) < 2:
        less = " but for those that exclude removes" if len(asked) < len(given.catalogue or ()) else ""
        raise ConfigurationError(
            f"a search needs two items or more to ask about, and the catalogue of [itemsets] universe has "
            f"{len(asked)}{less}"
        )
    return asked


def _search(spec: JobSpec) -> Search:
    asked, longest = spec.privacy.search, spec.itemsets.max_length
    found: Search = ("svim" if longest == 1 else "svsm") if asked == "auto" else asked
    if found == "svsm" and longest == 1:
        raise ConfigurationError('[privacy] search = "svsm" finds itemsets of two or more items; use "svim"')
    if found != "svsm" and spec.rules is not None:
        raise ConfigurationError(
            f'task = "rules" needs itemsets of two or more items, which [privacy] search = "{found}" does not find; '
            'use search = "svsm", and max_length above 1'
        )
    return found
