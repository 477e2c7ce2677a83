"""What a policy says to jobs that anonymise rows of several parties together: of which columns, and how strictly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from jobs.kinds.models.tables import MODEL_TABLES
from jobs.kinds.registry import opens
from jobs.kinds.release.table import INSIDER_K
from mining.data.transactions import matching
from party.policy.column_roles import asked_columns, columns_refusal
from party.policy.policy_input import PolicyInput, Verdict, listed
from party.policy.rules import PolicySection
from party.services.anonymization.releases import too_many


def min_count_of_release(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    """In a release, counts are those of its classes; where origins are shown, each party's part of a class."""
    least = policy.min_count
    if least is None:
        return None
    section = facts.spec.anonymization
    k, refusal = section.model.k or 0, None
    if k < least:
        refusal = f"asks for classes of at least {least} rows (rule min_count), and the job has k = {k}"
    elif section.origin == "shown" and (section.k_site or 0) < least:
        refusal = (
            f"asks for classes of at least {least} rows of each party where origins are shown (rule min_count), and "
            f"the job has k_site = {section.k_site}"
        )
    return Verdict("min_count", f"releases with k, or with shown origins k_site, of at least {least}", refusal)


def withheld_columns(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    """No release or model takes a column of which an item `column=value` could match, generalised or not."""
    if not policy.withhold:
        return None
    spec, refusal = facts.spec, None
    if opens(spec, "release"):
        what, table, names = "releases", "anonymize", [name for _, name in asked_columns(spec.anonymization)]
        names += spec.columns
    else:
        what, table, names = "models", MODEL_TABLES.get(spec.job.task, "columns"), list(spec.columns)
    for name in names:
        found = may_hold(policy.withhold, name)
        if found:
            refusal = (
                f"withholds {listed(found)} (rule withhold), which may be in the column '{name}'; leave it out of the "
                f"job's [{table}]"
            )
            break
    return Verdict("withhold", f"{what} without columns that may hold {listed(policy.withhold)}", refusal)


def may_hold(patterns: Sequence[str], column: str) -> list[str]:
    """The patterns that a cell of a column could match, as `column=value`."""
    return [pattern for pattern in patterns if _could_match(pattern, column)]


def _could_match(pattern: str, column: str) -> bool:
    """Whether a pattern fits some text that begins with `column=`: then a beginning of it fits just that."""
    return bool(matching([f"{column}="], [pattern[:end] for end in range(1, len(pattern) + 1)]))


def _columns(policy: PolicySection, facts: PolicyInput) -> Verdict:
    """Of jobs over columns of several parties, too, all columns count: the rows are about this party's people."""
    if policy.columns is None:
        return Verdict("columns", "releases of any columns, since none are named")
    allows = "; ".join(f"{name} as {' or '.join(roles)}" for name, roles in policy.columns.items())
    return Verdict("columns", allows, columns_refusal(policy.columns, facts.spec.anonymization))


def _keys(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    """The one rule that refuses where nothing is written: what such a job reveals is seldom expected of a release."""
    asked, allows = facts.spec.anonymization.keys, policy.keys or "none"
    if policy.keys is None and asked == "none":
        return None
    refusal = None
    if asked not in ("none", allows):
        refusal = (
            'does not allow keys = "union", by which all learn which combinations of values occur (rule keys); leave '
            "keys out of the job"
        )
    return Verdict("keys", allows, refusal)


def _min_insider_k(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    """Says nothing where parties hold columns: all of them have all rows."""
    least = policy.min_insider_k
    if least is None or facts.spec.is_vertical:
        return None
    asked, refusal = facts.spec.anonymization.insider_k or INSIDER_K, None
    if asked < least:
        refusal = f"asks for insider_k of at least {least} (rule min_insider_k), and the job has {asked}"
    return Verdict("min_insider_k", f"at least {least}", refusal)


def _max_releases(policy: PolicySection, facts: PolicyInput) -> Verdict:
    """Each release is judged as if it were the only one, and several of the same rows may name what each hides."""
    most, left = policy.max_releases, facts.made.releases
    refusal = too_many(facts.spec.job.dataset, most) if left >= most else None
    allows = f"{most} of the same rows in all, and this would be release {left + 1} of them: releases combine"
    return Verdict("max_releases", allows, refusal)


def _max_failed_releases(policy: PolicySection, facts: PolicyInput) -> Verdict:
    most, failed = policy.max_failed_releases, facts.made.failures
    refusal = None
    if failed >= most:
        refusal = (
            f"lets {most} releases of '{facts.spec.job.dataset}' come to nothing on its rows (rule "
            "max_failed_releases), and as many have"
        )
    return Verdict("max_failed_releases", f"{most} in all, {failed} came to nothing", refusal)


RELEASE_RULES: Final[tuple[Callable[[PolicySection, PolicyInput], Verdict | None], ...]] = (
    _columns,
    _keys,
    _min_insider_k,
    _max_releases,
    _max_failed_releases,
)
