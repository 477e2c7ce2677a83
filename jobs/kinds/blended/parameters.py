"""From a job specification to the public parameters of blended mining."""

from __future__ import annotations

from jobs.kinds.itemsets_parameters import asked_catalogue
from jobs.spec.job import JobSpec
from ldp.budget import check_epsilon
from link.errors import ConfigurationError
from mining.joint.blended.parameters import Blending
from mining.joint.hybrid.parameters import DEFAULT_K


def blended_mining(spec: JobSpec) -> Blending:
    """The public parameters of blended mining, as the specification gives them.

    Raises:
        ConfigurationError: The job names no trusted party or no other, asks for more than single items, or says what
            means nothing.
    """
    given, privacy = spec.itemsets, spec.privacy
    assert privacy.epsilon is not None  # which the specification refuses
    assert privacy.delta is not None
    if not privacy.opted_in or set(privacy.opted_in) == set(spec.job.parties):
        raise ConfigurationError(
            '[privacy] model = "blended" needs opted_in, the parties whose people trust them to count: at least one, '
            "and not all"
        )
    if given.max_length != 1 or spec.rules is not None:
        raise ConfigurationError(
            '[privacy] model = "blended" finds single items; set task = "itemsets" and [itemsets] max_length = 1'
        )
    if given.catalogue is None and given.universe not in ("auto", "frequent-items"):
        raise ConfigurationError(
            f'[itemsets] universe = "{given.universe}" means nothing with [privacy] model = "blended": trusted parties '
            "name items by noisy counts; leave it out, or give the path of a public catalogue"
        )
    check_epsilon(float(privacy.epsilon))
    return Blending(
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        k=given.top_k or DEFAULT_K,
        opted_in=tuple(party for party in spec.job.parties if party in privacy.opted_in),
        analyst=spec.analyst,
        learners=spec.learners,
        catalogue=asked_catalogue(spec),
        min_support=given.min_support_,
    )
