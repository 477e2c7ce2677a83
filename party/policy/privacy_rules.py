"""What a policy says to a job's privacy model and to what the job costs the records of its dataset.

`[policy]` bounds each job by itself, `[dataset.privacy]` all jobs on a dataset together. Neither looks at data: what a
job costs follows from its specification.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from decimal import Decimal
from typing import Final

from jobs.kinds.charge import charge
from jobs.kinds.registry import kind_of
from party.policy.policy_input import PolicyInput, Verdict, listed
from party.policy.privacy_budget import NAMES, left, short, totals
from party.policy.rules import PolicySection


def budget_verdicts(facts: PolicyInput) -> list[Verdict]:
    """What the totals of `[dataset.privacy]` say to a job, one verdict for each that is written, and what hides rules.

    Which items are taken out of a row to hide a rule depends on all rows, so one record more may change many others: no
    noise of the models is made for that.
    """
    budget, cost = facts.budget, charge(facts.spec)
    if facts.hides and cost.epsilon is not None:
        return [_hiding(facts)]
    found = [verdict for verdict in (_delta_of_rows(facts),) if verdict is not None]
    if budget is None:
        return found
    if cost.epsilon is None:
        return [_exact(facts)] if budget.exact == "refuse" else []
    spent, after = totals(facts.charged, budget), totals([*facts.charged, cost], budget)
    if budget.epsilon is not None and not kind_of(facts.spec).protects_from_parties(facts.spec):
        found.append(_colluding())
    for key, rest in left(budget, spent).items():
        most, refusal = getattr(budget, key), None
        if getattr(after, key) > most:
            refusal = (
                f"allows {NAMES[key]} {short(most)} {_of_all(facts)} (rule privacy.{key}); {short(rest)} of it is "
                f"left, and with the job {short(getattr(after, key))} would be spent"
            )
        found.append(Verdict(f"privacy.{key}", f"{short(most)} {_of_all(facts)}, {short(rest)} left", refusal))
    return found


def _exact(facts: PolicyInput) -> Verdict:
    refusal = (
        f"lets no job without noise run on '{facts.spec.job.dataset}' (rule privacy.exact), and no epsilon bounds what "
        "this one reveals; give it a [privacy] model"
    )
    return Verdict("privacy.exact", "jobs whose model adds noise", refusal)


def _hiding(facts: PolicyInput) -> Verdict:
    refusal = (
        f"hides rules in '{facts.spec.job.dataset}' by what all its rows hold together (rule hiding), which no epsilon "
        "covers; leave [privacy] out, or ask for a dataset without [dataset.hiding]"
    )
    return Verdict("hiding", "jobs without a privacy model", refusal)


def _colluding() -> Verdict:
    """Each party can take its own noise off the sums, so that these reveal more to it than the job's ε allows."""
    refusal = (
        "asks for noise that protects from each party too (rule privacy.epsilon), and the job has colluding = 0; leave "
        "it out"
    )
    return Verdict("privacy.epsilon", "noise that protects from each party too", refusal)


def _delta_of_rows(facts: PolicyInput) -> Verdict | None:
    """δ above 1/n would let a job reveal a row outright; n is the number of rows that the owner publishes."""
    delta, rows = charge(facts.spec).delta, facts.published_rows
    if not rows or delta is None:
        return None
    refusal = None
    if delta * rows > 1:
        refusal = (
            f"allows a delta of at most one in the {rows:,} rows that it publishes of '{facts.spec.job.dataset}' (rule "
            f"publish.rows), and the job has {short(delta)}"
        )
    return Verdict("publish.rows", f"a delta of at most 1/{rows:,}", refusal)


def _of_all(facts: PolicyInput) -> str:
    assert facts.budget is not None
    within = "" if facts.budget.period is None else f" within {facts.budget.period}"
    return f"for all jobs on '{facts.spec.job.dataset}'{within}"


# -- each job by itself -----------------------------------------------------------------------------------------------
def _models(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    model, refusal = facts.spec.privacy.model, None
    if policy.models is None:
        return None
    if model not in policy.models:
        refusal = f"allows the privacy models {listed(policy.models)} only, and the job has '{model}' (rule models)"
    return Verdict("models", ", ".join(policy.models), refusal)


def _max_epsilon(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    return _at_most("max_epsilon", policy.max_epsilon, charge(facts.spec).epsilon)


def _max_delta(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    return _at_most("max_delta", policy.max_delta, charge(facts.spec).delta)


def _max_local_epsilon(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    return _at_most("max_local_epsilon", policy.max_local_epsilon, charge(facts.spec).local_epsilon)


def _at_most(rule: str, most: Decimal | None, asked: Decimal | None) -> Verdict | None:
    """Says nothing to a job that has no such number: whether those may run, `models` says."""
    if most is None or asked is None:
        return None
    refusal = None
    if asked > most:
        name = NAMES[rule.removeprefix("max_")]
        refusal = f"allows {name} up to {short(most)} (rule {rule}), and the job may spend {short(asked)}"
    return Verdict(rule, f"at most {short(most)}", refusal)


def _analysts(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    if policy.analysts is None or not kind_of(facts.spec).perturbs:
        return None
    return _trusted("analysts", policy.analysts, (facts.spec.analyst,), "see reports", "analyst")


def _shufflers(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    shufflers = kind_of(facts.spec).shufflers(facts.spec)
    if policy.shufflers is None or not shufflers:
        return None
    return _trusted("shufflers", policy.shufflers, shufflers, "shuffle reports", "shufflers")


def _trusted(rule: str, allowed: Collection[str], named: Collection[str], to: str, key: str) -> Verdict:
    others = [name for name in named if name not in allowed]
    refusal = None
    if others:
        refusal = f"lets only {listed(allowed)} {to} (rule {rule}), not '{others[0]}'; set [privacy] {key} in the job"
    return Verdict(rule, ", ".join(allowed), refusal)


PRIVACY_RULES: Final[tuple[Callable[[PolicySection, PolicyInput], Verdict | None], ...]] = (
    _models,
    _max_epsilon,
    _max_delta,
    _max_local_epsilon,
    _analysts,
    _shufflers,
)
