"""Whether this party takes part in a job: rules over what the job says, never over what the data says.

A refusal names the rule and what would be allowed. Apart from `check_rows` the decision is a function of the policy and
the specification alone, so that proposals cannot be used to probe the data. What `min_count` says to a fraction is
decided in the session, once the number of all transactions is open.
"""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal

from jobs.spec import JobSpec
from link.errors import ConfigurationError, PolicyDenied
from party.config import PolicySection


def decide(
    policy: PolicySection, spec: JobSpec, *, me: str, federation: Collection[str], datasets: Collection[str]
) -> None:
    """Returns where the job is allowed here.

    Args:
        policy: This party's rules.
        spec: What is proposed.
        me: This party.
        federation: All parties of its federation file.
        datasets: The names of its datasets.

    Raises:
        ConfigurationError: The job does not fit this node: it names no part for it, strangers, or an unknown dataset.
        PolicyDenied: A rule refuses the job; the sentence names the rule.
    """
    _fits(spec, me, federation, datasets)
    _check_partners(policy, spec, me)
    if spec.job.task not in policy.tasks:
        raise _denied(me, f"allows only {_either(policy.tasks)}, not the task '{spec.job.task}'")
    if policy.datasets is not None and spec.job.dataset not in policy.datasets:
        raise _denied(me, f"does not open the dataset '{spec.job.dataset}' to jobs")
    _check_threshold(policy, spec, me)
    _check_length(policy, spec, me)
    if policy.approve == "manual":
        raise PolicyDenied(
            f'{me} has approve = "manual", but this version has no inbox in which a person could approve; '
            f'ask {me} to set approve = "auto" with rules that it can stand behind',
            party=me,
        )


def check_rows(policy: PolicySection, spec: JobSpec, *, me: str, n_rows: int) -> None:
    """The one rule that needs the data: a count under a policy that has `min_support` but no `min_count`.

    The count must be at least `min_support` of this party's own transactions. Since all parties' transactions are at
    least as many, this is necessary for the joint support to reach `min_support`, not sufficient. A refusal tells that
    the count is below that share of the rows, and no more.

    Raises:
        PolicyDenied: The count is too low.
    """
    count = spec.itemsets.min_support
    if isinstance(count, Decimal) or policy.min_support is None or policy.min_count is not None:
        return
    if count < policy.min_support * n_rows:
        raise _denied(me, f"asks for a support of at least {policy.min_support}, and a count of {count} is below it")


def _fits(spec: JobSpec, me: str, federation: Collection[str], datasets: Collection[str]) -> None:
    if me not in spec.job.parties:
        raise ConfigurationError(f"the job has no part for {me}; propose it to the parties that it names", party=me)
    strangers = [name for name in spec.job.parties if name not in federation]
    if strangers:
        raise ConfigurationError(
            f"{me} does not know the party '{strangers[0]}'; add it to the federation file of {me}", party=me
        )
    if spec.job.dataset not in datasets:
        raise ConfigurationError(
            f"{me} has no dataset '{spec.job.dataset}'; use a name that all parties of the job have in common", party=me
        )


def _check_partners(policy: PolicySection, spec: JobSpec, me: str) -> None:
    if policy.peers is not None:
        for name in spec.job.parties:
            if name not in (me, *policy.peers):
                raise _denied(me, f"does not allow jobs together with '{name}' (rule peers)")
    if policy.min_parties is not None and len(spec.job.parties) < policy.min_parties:
        raise _denied(me, f"asks for at least {policy.min_parties} parties (rule min_parties)")


def _check_threshold(policy: PolicySection, spec: JobSpec, me: str) -> None:
    asked = spec.itemsets.min_support
    if isinstance(asked, Decimal):
        if policy.min_support is not None and asked < policy.min_support:
            raise _denied(me, f"asks for min_support of at least {policy.min_support}, and the job has {asked}")
        if policy.min_support is None and policy.min_count is not None:
            raise _denied(
                me, f"asks for min_support as a count of at least {policy.min_count}, and the job has a fraction"
            )
    elif policy.min_count is not None and asked < policy.min_count:
        raise _denied(me, f"asks for a count of at least {policy.min_count} (rule min_count), and the job has {asked}")


def _check_length(policy: PolicySection, spec: JobSpec, me: str) -> None:
    limit, asked = policy.max_length, spec.itemsets.max_length
    if limit is not None and (asked is None or asked > limit):
        raise _denied(me, f"asks for max_length of at most {limit}, and the job has {asked or 'none'}")


def _denied(me: str, what: str) -> PolicyDenied:
    return PolicyDenied(f"the policy of {me} {what}", party=me)


def _either(names: Collection[str]) -> str:
    return " and ".join(f"'{name}'" for name in names)
