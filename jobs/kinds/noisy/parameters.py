"""From a job specification to the public parameters of mining under distributed noise."""

from __future__ import annotations

from jobs.kinds.itemsets_parameters import asked_catalogue, asked_rules
from jobs.spec.job import UNIVERSES, JobSpec
from link.errors import ConfigurationError
from mining.joint.distributed.parameters import DEFAULT_LENGTH, LONGEST, DistributedMining


def distributed_mining(spec: JobSpec) -> DistributedMining:
    """The public parameters of mining under distributed noise, as the specification gives them.

    Raises:
        ConfigurationError: The budget does not fit the noise, or the job says what means nothing, or asks for a
            universe that would reveal single records.
    """
    from mining.joint.distributed.budget import spent

    given, privacy = spec.itemsets, spec.privacy
    assert privacy.epsilon is not None  # as the specification sees to, and to delta
    assert privacy.delta is not None
    if given.max_length is not None and given.max_length > LONGEST:
        raise ConfigurationError(
            f"[itemsets] max_length is at most {LONGEST} under noise, which each length has more of; lower it"
        )
    if given.catalogue is None and given.universe in UNIVERSES and given.universe != "auto":
        raise ConfigurationError(
            f'[itemsets] universe = "{given.universe}" would reveal single records under [privacy] model = '
            '"distributed"; give the path of a catalogue, or leave it out, and parties name items by noisy counts'
        )
    task = DistributedMining(
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        min_support=given.min_support_,
        learners=spec.learners,
        top_k=given.top_k,
        max_length=given.max_length or DEFAULT_LENGTH,
        colluding=privacy.colluding,
        noise=privacy.noise,
        contributions=privacy.contributions,
        catalogue=asked_catalogue(spec),
        max_candidates=given.max_candidates,
        rules=asked_rules(spec),
    )
    spent(task, len(spec.job.parties))
    return task
