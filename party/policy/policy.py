"""Whether this party takes part in a job: rules over what the job says, never over what the data says.

`verdicts` judges a job rule by rule, for people; `decide` is what follows from it. A refusal names the rule and what
would be allowed. The decision is a function of the policy, the specification and the jobs that were started before, so
that proposals cannot be used to probe the data. Two rules need the number of rows and are checked once a job that was
allowed has started: `check_new_rows` and `check_version` of `several_jobs`. What `min_count` says to a fraction is
decided in the session, once the number of all transactions is open.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Final, Literal

from jobs.kinds.kind import Facet
from jobs.kinds.registry import kind_of
from jobs.spec.job import JobSpec
from link.errors import ConfigurationError
from link.files.quantities import quantity, seconds
from mining.joint.hybrid.parameters import DEFAULT_K
from mining.joint.vertical.engines.names import OWN_NAMES
from party.policy.model_rules import min_count_of_model
from party.policy.plugin_rules import added_kinds, can_judge
from party.policy.policy_input import Earlier, PolicyInput, Verdict, denied, listed
from party.policy.privacy_budget import MOST_WITHOUT_FLOORS
from party.policy.privacy_rules import PRIVACY_RULES, budget_verdicts
from party.policy.release_rules import RELEASE_RULES, may_hold, min_count_of_release, withheld_columns
from party.policy.rules import ApprovalRule, PolicySection
from party.policy.several_jobs import min_group, min_new_rows, party_sets

Approval = Literal["auto", "manual"]

DEFAULT_PERIOD: Final = "30d"
CLOCK_SLACK_S: Final = 300  # by which a coordinator's clock may be ahead of this one
_TOP: Final = "; without a floor only where [dataset.privacy] bounds the noise"
_UNBOUNDED: Final = (
    f"; noise stands in for it only where [dataset.privacy] has delta and an epsilon of at most {MOST_WITHOUT_FLOORS}"
)


def decide(policy: PolicySection, facts: PolicyInput) -> Approval:
    """How the job is approved here, where it is allowed: at once, or by a person.

    Args:
        policy: This party's rules for the job's dataset.
        facts: The job and what it is judged by.

    Raises:
        ConfigurationError: The job does not fit this node: it names no part for it, strangers, or an unknown dataset.
        PolicyDenied: A rule refuses the job; the sentence names the rule and what would be allowed.
    """
    check_fit(facts)
    for verdict in verdicts(policy, facts):
        if verdict.refusal is not None:
            raise denied(facts.me, verdict.refusal)
    return "manual" if _approval(policy, facts) == "manual" else "auto"


def verdicts(policy: PolicySection, facts: PolicyInput) -> tuple[Verdict, ...]:
    """What each rule that is written says to the job, in the order in which they are enforced."""
    facets = kind_of(facts.spec).facets(facts.spec)
    if not can_judge(facts.spec, facets):
        return (Verdict("tasks", "jobs that its rules can judge", "has no rules for what this job opens (rule tasks)"),)
    asked = frozenset().union(*(_RULES_OF[facet] for facet in facets))
    given = (rule(policy, facts) for rule in _RULES if rule in asked or rule not in _PARTICULAR)
    *found, how = (verdict for verdict in given if verdict is not None)
    return (*found, *budget_verdicts(facts), how)


def check_fit(facts: PolicyInput) -> None:
    """Refuses what cannot run at this node, whatever its policy is.

    Raises:
        ConfigurationError: The job names no part for it, strangers, or an unknown dataset.
    """
    spec, me = facts.spec, facts.me
    if me not in spec.job.parties:
        raise ConfigurationError(f"the job has no part for {me}; propose it to the parties that it names", party=me)
    strangers = [name for name in spec.job.parties if name not in facts.federation]
    if strangers:
        raise ConfigurationError(
            f"{me} does not know the party '{strangers[0]}'; add it to the federation file of {me}", party=me
        )
    if spec.job.dataset not in facts.datasets:
        raise ConfigurationError(
            f"{me} has no dataset '{spec.job.dataset}'; use a name that all parties of the job have in common", party=me
        )


def recent_starts(policy: PolicySection, earlier: Sequence[Earlier], now: float) -> list[float]:
    """When the jobs started that `max_jobs` counts."""
    since = now - seconds(policy.max_jobs_period or DEFAULT_PERIOD)
    return [job.started for job in earlier if job.started > since]


# -- the rules --------------------------------------------------------------------------------------------------------
def _coordinators(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    if policy.coordinators is None:
        return None
    refusal = None
    if facts.coordinator not in policy.coordinators:
        refusal = f"takes no jobs of '{facts.coordinator}', only of {listed(policy.coordinators)} (rule coordinators)"
    return Verdict("coordinators", ", ".join(policy.coordinators), refusal)


def _peers(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    if policy.peers is None:
        return None
    others = [name for name in facts.spec.job.parties if name not in (facts.me, *policy.peers)]
    refusal = None
    if others:
        refusal = f"does not allow jobs together with '{others[0]}', only with {listed(policy.peers)} (rule peers)"
    return Verdict("peers", ", ".join(policy.peers), refusal)


def _min_parties(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    least = policy.min_parties
    if least is None:
        return None
    few = len(facts.spec.job.parties) < least
    return Verdict(
        "min_parties", f"at least {least}", f"asks for at least {least} parties (rule min_parties)" if few else None
    )


def _tasks(policy: PolicySection, facts: PolicyInput) -> Verdict:
    task, refusal = facts.spec.job.task, None
    if task not in policy.tasks:
        refusal = f"allows only {listed(policy.tasks)}, not the task '{task}' (rule tasks)"
    return Verdict("tasks", ", ".join(policy.tasks), refusal)


def _datasets(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    dataset = facts.spec.job.dataset
    if policy.datasets is None:
        return None
    refusal = None
    if dataset not in policy.datasets:
        refusal = f"does not open the dataset '{dataset}' to jobs, only {listed(policy.datasets)} (rule datasets)"
    return Verdict("datasets", ", ".join(policy.datasets), refusal)


def _min_support(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    least, asked = policy.min_support, facts.spec.itemsets.min_support_
    if least is None:
        return None
    allows, refusal = f"at least {least}", _opens_below(policy, facts, "min_support")
    if refusal is not None:
        return Verdict("min_support", allows, refusal)
    if asked is None:
        if not facts.noise_protects:
            refusal = f"asks for min_support of at least {least}, and the job has none (rule min_support){_UNBOUNDED}"
        return Verdict("min_support", f"{allows}{_TOP}", refusal)
    if isinstance(asked, int):
        if policy.min_count is not None:
            return Verdict("min_support", f"{allows}, or a count that min_count allows")
        if not facts.noise_protects:
            refusal = (
                f"asks for min_support as a fraction of at least {least}, and the job has a count (rule min_support)"
            )
        return Verdict("min_support", f"{allows}; as a count only where [dataset.privacy] bounds the noise", refusal)
    if asked < least:
        refusal = f"asks for min_support of at least {least}, and the job has {asked} (rule min_support)"
    return Verdict("min_support", allows, refusal)


def _min_count(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    least = policy.min_count
    if least is None:
        return None
    asked = facts.spec.itemsets.min_support_
    allows, refusal = f"at least {least} transactions", _opens_below(policy, facts, "min_count") if least > 1 else None
    if refusal is not None:
        return Verdict("min_count", allows, refusal)
    if asked is None:
        if not facts.noise_protects:
            refusal = f"asks for a count of at least {least} (rule min_count), and the job has none{_UNBOUNDED}"
        return Verdict("min_count", f"{allows}{_TOP}", refusal)
    if isinstance(asked, Decimal):
        if policy.min_support is not None:
            return Verdict("min_count", f"{allows} of all parties", later=True)
        refusal = f"asks for min_support as a count of at least {least}, and the job has a fraction (rule min_count)"
    elif asked < least:
        refusal = f"asks for a count of at least {least} (rule min_count), and the job has {asked}"
    return Verdict("min_count", allows, refusal)


def _opens_below(policy: PolicySection, facts: PolicyInput, floor: str) -> str | None:
    """Who sets a floor means it for all that a job opens, unless the rule `disclose` allows `candidates`."""
    given = facts.spec.itemsets
    if "candidates" in (policy.disclose or ()):
        return None
    if given.disclose == "candidates":
        what = "disclose = 'candidates' opens supports below it; take 'supports' or 'frequent'"
    elif given.universe == "all-items":
        what = "universe = 'all-items' names items below it; take 'hidden' or 'frequent-items'"
    elif given.quantiles:
        what = "quantiles cut at numbers of single rows, which the names of intervals show; give cuts of your own"
    else:
        return None
    return f"has a floor (rule {floor}), and {what}"


def _max_length(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    asked = facts.spec.itemsets.max_length
    return _at_most("max_length", policy.max_length, asked, "none" if asked is None else str(asked))


def _withhold(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    if not policy.withhold:
        return None
    given, refusal = facts.spec.itemsets, None
    missing = [pattern for pattern in policy.withhold if pattern not in given.exclude]
    cut = [column for column in sorted({*given.cuts, *given.quantiles}) if may_hold(policy.withhold, column)]
    if cut:
        refusal = (
            f"withholds {listed(may_hold(policy.withhold, cut[0]))} (rule withhold), which may be in the column "
            f"'{cut[0]}', and the job puts its numbers into intervals; leave it out of the job's [itemsets]"
        )
    elif missing:
        line = json.dumps([*given.exclude, *missing], ensure_ascii=False)
        refusal = f"withholds items (rule withhold); add to the job's [itemsets]: exclude = {line}"
    return Verdict("withhold", f"jobs that exclude {listed(policy.withhold)}", refusal)


def _max_candidates(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    asked = _candidates(facts.spec)
    return _at_most("max_candidates", policy.max_candidates, asked, str(asked))


def _candidates(spec: JobSpec) -> int:
    """What a job says of its candidates; where records are perturbed, what they are asked about at once."""
    if not kind_of(spec).perturbs:
        return spec.itemsets.max_candidates
    return max(len(spec.itemsets.catalogue or ()), 2 * (spec.itemsets.top_k or DEFAULT_K))


def _disclose(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    asked, refusal = facts.spec.itemsets.disclose, None
    if policy.disclose is None:
        return None
    if asked not in policy.disclose:
        refusal = f"allows disclose = {listed(policy.disclose)} only, and the job has '{asked}' (rule disclose)"
    return Verdict("disclose", ", ".join(policy.disclose), refusal)


def _compute(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    if policy.compute is None:
        return None
    if not kind_of(facts.spec).shares(facts.spec):
        return None
    computing: tuple[str, ...] = facts.spec.compute
    if not facts.spec.is_vertical and (helper := kind_of(facts.spec).helper(facts.spec)) is not None:
        computing = (*computing, helper)  # over rows it holds shares of the same sums
    others, refusal = [name for name in computing if name not in policy.compute], None
    if others:
        refusal = (
            f"does not trust '{others[0]}' to be a computing party, only {listed(policy.compute)} (rule compute); "
            "set [trust] compute in the job"
        )
    return Verdict("compute", ", ".join(policy.compute), refusal)


def _engines(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    engine, refusal = kind_of(facts.spec).engine(facts.spec), None
    if engine is None or (policy.engines is None and engine in OWN_NAMES):
        return None
    allowed = OWN_NAMES if policy.engines is None else policy.engines  # no plug-in computes unless it is named
    if engine not in allowed:
        refusal = f"allows engine = {listed(allowed)} only, and the job takes '{engine}' (rule engines)"
    return Verdict("engines", ", ".join(allowed), refusal)


def _helpers(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    helper, refusal = kind_of(facts.spec).helper(facts.spec), None
    if policy.helpers is None or (helper is None and not facts.spec.is_vertical):
        return None
    if helper is not None and helper not in (facts.me, *policy.helpers):
        trusted = f"only {listed(policy.helpers)}" if policy.helpers else "nobody"
        refusal = f"lets {trusted} help the computing parties, and in this job '{helper}' does (rule helpers)"
    return Verdict("helpers", ", ".join(policy.helpers) or "nobody", refusal)


def _security(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    refusal = None
    if policy.security is None:
        return None
    if policy.security == "malicious" and not facts.spec.is_verified:
        refusal = (
            'takes part only in jobs that hold where parties deviate (rule security); set security = "malicious" in '
            "[trust] of a job for itemsets or rules"
        )
    return Verdict("security", policy.security, refusal)


def _column_groups(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    if policy.column_groups is None or not facts.spec.groups:
        return None
    refusal = None
    if policy.column_groups == "refuse":
        refusal = "allows no groups of parties that hold the same columns (rule column_groups); leave [groups] out"
    return Verdict("column_groups", policy.column_groups, refusal)


def _max_deadline(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    if policy.max_deadline is None:
        return None
    long = facts.spec.job.deadline_s > seconds(policy.max_deadline)
    refusal = (
        f"asks for a deadline of at most {policy.max_deadline} (rule max_deadline), and the job has "
        f"{facts.spec.job.deadline}"
    )
    return Verdict("max_deadline", f"at most {policy.max_deadline}", refusal if long else None)


def _max_union_bound(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    given = kind_of(facts.spec).unions(facts.spec)
    if not (facts.spec.is_vertical or given.taken):
        return None
    return _at_most("max_union_bound", policy.max_union_bound, given.bound, str(given.bound or "none"), given.key)


def _max_expiry(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    if facts.expiry is None:
        return None
    late = facts.expiry - facts.now > seconds(policy.max_expiry) + CLOCK_SLACK_S
    refusal = f"takes proposals that expire within {policy.max_expiry} (rule max_expiry); check the clocks"
    return Verdict("max_expiry", f"within {policy.max_expiry}", refusal if late else None)


def _max_jobs(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    if policy.max_jobs is None:
        return None
    period, refusal = policy.max_jobs_period or DEFAULT_PERIOD, None
    recent = recent_starts(policy, facts.earlier, facts.now)
    if len(recent) >= policy.max_jobs:
        free = dt.datetime.fromtimestamp(recent[-policy.max_jobs] + seconds(period), dt.UTC)
        refusal = (
            f"allows {quantity(policy.max_jobs, 'job')} within {period} on '{facts.spec.job.dataset}' (rule max_jobs); "
            f"the next may start after {free:%Y-%m-%d %H:%M} UTC"
        )
    return Verdict("max_jobs", f"{policy.max_jobs} within {period}, {len(recent)} started", refusal)


def _approve(policy: PolicySection, facts: PolicyInput) -> Verdict:
    decision = _approval(policy, facts)
    words = {"auto": "approved at once", "manual": "a person decides", "refuse": "refused"}
    refusal = None
    if decision == "refuse":
        refusal = (
            f"takes no jobs of '{facts.coordinator}' for the task '{facts.spec.job.task}' on "
            f"'{facts.spec.job.dataset}' with these parties (rule approval)"
        )
    return Verdict("approve", words[decision], refusal)


_RULES: Final[tuple[Callable[[PolicySection, PolicyInput], Verdict | None], ...]] = (
    _coordinators,
    _peers,
    _min_parties,
    _tasks,
    added_kinds,
    _datasets,
    _min_support,
    _min_count,
    min_count_of_model,
    min_count_of_release,
    _max_length,
    _withhold,
    withheld_columns,
    _max_candidates,
    _disclose,
    *RELEASE_RULES,
    _compute,
    _engines,
    _helpers,
    _security,
    _column_groups,
    *PRIVACY_RULES,
    _max_deadline,
    _max_union_bound,
    _max_expiry,
    party_sets,
    _max_jobs,
    min_new_rows,
    min_group,
    _approve,
)
_ITEMSETS: Final = frozenset(
    {
        _min_support,
        _min_count,
        _max_length,
        _withhold,
        _max_candidates,
        _disclose,
        _compute,
        _engines,
        _helpers,
    }
)
_RULES_OF: Final[Mapping[Facet, frozenset[Callable[[PolicySection, PolicyInput], Verdict | None]]]] = {
    "itemsets": _ITEMSETS,
    "model": frozenset({min_count_of_model, withheld_columns, _compute, _engines}),
    "release": frozenset({*RELEASE_RULES, min_count_of_release, withheld_columns, _compute}),
    "rows in common": frozenset(),
    "column groups": frozenset({_column_groups}),
    "other": frozenset({_compute, _engines, _helpers}),
}
"""What a policy says to what a job opens, beside the rules for every job; of several facets all rules hold."""
_PARTICULAR: Final = frozenset().union(*_RULES_OF.values())


def _approval(policy: PolicySection, facts: PolicyInput) -> Literal["auto", "manual", "refuse"]:
    fitting = (rule.decide for rule in policy.approval if _fits(rule, facts))
    return next(fitting, policy.approve)


def _fits(rule: ApprovalRule, facts: PolicyInput) -> bool:
    job = facts.spec.job
    return (
        (rule.coordinators is None or facts.coordinator in rule.coordinators)
        and (rule.tasks is None or job.task in rule.tasks)
        and (rule.datasets is None or job.dataset in rule.datasets)
        and (rule.parties is None or set(job.parties) <= {facts.me, *rule.parties})
    )


def _at_most(rule: str, most: int | None, asked: int | None, shown: str, what: str = "") -> Verdict | None:
    if most is None:
        return None
    refusal = None
    if asked is None or asked > most:
        refusal = f"asks for {what or rule} of at most {most} (rule {rule}), and the job has {shown}"
    return Verdict(rule, f"at most {most}", refusal)
