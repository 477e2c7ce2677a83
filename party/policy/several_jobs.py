"""What a policy says to what several jobs reveal together: by their parties, their thresholds and this party's rows."""

from __future__ import annotations

from collections.abc import Iterable

from mining.public_sizes import between
from party.policy.joint_result import joint_result, other_columns, tells_of_few, too_close
from party.policy.policy_input import Earlier, PolicyInput, Verdict, Version, denied
from party.policy.rules import PolicySection


def check_new_rows(policy: PolicySection, *, me: str, n_rows: int, data_digest: bytes, last: Earlier | None) -> None:
    """What `min_new_rows` says: two results on data that differ in a few rows reveal something about those rows.

    The same content as at the last job is allowed. A refusal reveals that the dataset has changed since then and by
    fewer rows than the rule asks for, and no more.

    Args:
        policy: This party's rules for the dataset.
        me: This party.
        n_rows: Rows of the dataset now.
        data_digest: Of its content now.
        last: The last job on it whose rows were counted.

    Raises:
        PolicyDenied: The dataset has changed by too few rows.
    """
    if policy.min_new_rows is None or last is None or last.data_digest == data_digest:
        return
    if last.n_rows is None:
        raise denied(
            me,
            "asks how many rows are new (rule min_new_rows), and on what rows the last job on the dataset ran was lost "
            "with the job database of this party; its owner can bring that back, or leave the rule out for one job",
        )
    if abs(n_rows - last.n_rows) < policy.min_new_rows:
        raise denied(
            me,
            f"asks for at least {policy.min_new_rows} new rows in a dataset that has changed since the last job on it "
            "(rule min_new_rows), and it has fewer",
        )


def check_version(
    policy: PolicySection, *, me: str, n_rows: int, data_digest: bytes, before: Iterable[Version]
) -> None:
    """What `min_group` says to rows: those of any two jobs are the same, or differ by enough.

    Args:
        policy: This party's rules for the dataset.
        me: This party.
        n_rows: Rows of the dataset now.
        data_digest: Of its content now.
        before: On what rows of the dataset jobs ran.

    Raises:
        PolicyDenied: They differ by too few from those of some job, or nobody knows from what.
    """
    least, versions = policy.min_group, list(before)
    if least is None or any(each.digest == data_digest for each in versions):
        return
    for each in versions:
        if each.n_rows is None:
            raise denied(
                me,
                "asks by how many rows a dataset has changed since each job on it (rule min_group), and on what rows "
                "one ran was lost with the job database of this party; its owner can bring that back, or leave the "
                "rule out for one job",
            )
        if abs(n_rows - each.n_rows) < least:
            raise denied(
                me,
                f"asks that the rows of a dataset are those of an earlier job on it, or at least {least} more or fewer "
                "than in each (rule min_group), and they are not",
            )


def party_sets(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    """All jobs have the parties of the first."""
    if policy.party_sets is None:
        return None
    if not facts.earlier:
        return Verdict("party_sets", "any parties, since no job was started on the dataset yet")
    first, refusal = facts.earlier[0].parties, None
    if set(first) != set(facts.spec.job.parties):
        refusal = (
            f"asks for the parties {', '.join(sorted(first))} in every job on '{facts.spec.job.dataset}', as in the "
            'first one (rule party_sets = "fixed")'
        )
    return Verdict("party_sets", ", ".join(sorted(first)), refusal)


def min_new_rows(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    """Decided once the rows are counted."""
    if policy.min_new_rows is None or facts.noise_protects:
        return None
    allows = f"the rows of the last job, or at least {policy.min_new_rows} more or fewer"
    return Verdict("min_new_rows", allows, later=True)


def min_group(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    """What follows from all exact jobs on the rows must not be about too few parties or rows.

    That is decided from the jobs alone; how many rows have changed, once they are counted.
    """
    if policy.min_group is None or facts.noise_protects:
        return None
    parties = policy.min_parties or 2
    allows = (
        f"with all jobs before it, numbers of at least {parties} parties, and the rows of an earlier job or at least "
        f"{policy.min_group} more or fewer than in each"
    )
    refusal = _parties_refusal(parties, facts) or _columns_refusal(facts) or _thresholds_refusal(policy, facts)
    return Verdict("min_group", allows, refusal, later=refusal is None)


def _parties_refusal(least: int, facts: PolicyInput) -> str | None:
    new, dataset = joint_result(facts.spec), facts.spec.job.dataset
    before = {each.parties for each in facts.results}
    if not all(each.sums for each in (new, *facts.results)):
        if before <= {new.parties}:
            return None
        return (
            f"asks for the same parties in all jobs on '{dataset}' where one opens more than sums over rows "
            "(rule min_group), and this one has others"
        )
    if not tells_of_few(new.parties, before, least):
        return None
    return (
        f"lets jobs on '{dataset}' together give no number of fewer than {least} parties (rule min_group), and with "
        "sums of earlier ones this one's may; take the parties of an earlier job, or some that are less alike"
    )


def _columns_refusal(facts: PolicyInput) -> str | None:
    """Over columns a job chooses which ids are equal and where numbers are cut, and so whom a count takes in."""
    asked = joint_result(facts.spec).columns
    if not any(other_columns(asked, each.columns) for each in facts.results):
        return None
    return (
        f"asks that all jobs over columns on '{facts.spec.job.dataset}' have the same rows in common and put numbers "
        "into the same intervals (rule min_group); take [align] trim, case and unicode, [groups], cuts and quantiles "
        "from an earlier job"
    )


def _thresholds_refusal(policy: PolicySection, facts: PolicyInput) -> str | None:
    """Only where no job may open supports: who may ask for them need not pin them."""
    least = policy.min_group
    if least is None or policy.disclose is None or set(policy.disclose) != {"frequent"}:
        return None
    fewest = None if facts.spec.is_vertical or not facts.published_rows else between(facts.published_rows)[0]
    asked = joint_result(facts.spec).threshold
    if not any(too_close(asked, each.threshold, least, fewest) for each in facts.results):
        return None
    return (
        f"hides supports, and asks for the min_support of an earlier job on '{facts.spec.job.dataset}' or one that is "
        f"at least {least} transactions apart from each (rule min_group); as a fraction, of the rows that its owner "
        "publishes"
    )
