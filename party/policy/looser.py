"""Whether a rule that is changed allows more than before; in doubt it is taken to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from link.files.quantities import seconds
from party.policy.policy import DEFAULT_PERIOD
from party.policy.privacy_budget import DatasetBudget
from party.policy.rules import ApprovalRule, PolicySection

Direction = Literal["looser", "may be looser", "stricter"]


def direction(key: str, before: PolicySection, after: PolicySection) -> Direction:
    """What a change of a rule does; both policies are those that hold in the end.

    Args:
        key: The rule.
        before: The policy before.
        after: The policy with the change.
    """
    was, now = getattr(before, key), getattr(after, key)
    if key == "approval":
        return _of_exceptions(was, now)
    if key == "disclose":
        return _disclose(before, after)
    if key in _FLOORS and was is None and getattr(before, _FLOORS[key]) is not None:
        return "may be looser"  # jobs that state the other kind of threshold were refused
    return _ORDERS[key](was, now)


def direction_of_budget(
    key: str, before: DatasetBudget | None, after: DatasetBudget | None, policy: PolicySection
) -> Direction:
    """The same of a key of `[dataset.privacy]`, where either may be absent.

    Args:
        key: The key.
        before: The table before.
        after: The table with the change.
        policy: With which it holds.
    """
    before, after = before or DatasetBudget(), after or DatasetBudget()
    found = _ORDERS[key](getattr(before, key), getattr(after, key))
    floors = any(getattr(policy, floor) is not None for floor in _FLOORS)
    if found == "stricter" and floors and after.bounds_noise and not before.bounds_noise:
        return "may be looser"  # noise now stands in for a floor
    return found


def _told(looser: bool) -> Direction:
    return "looser" if looser else "stricter"


def _least(was: Any, now: Any) -> Direction:
    """A floor; without one anything goes."""
    return _told(now is None or (was is not None and now < was))


def _most(was: Any, now: Any) -> Direction:
    """A limit; without one anything goes."""
    return _told(now is None or (was is not None and now > was))


def _longest(was: str | None, now: str | None) -> Direction:
    return _most(*(None if each is None else seconds(each) for each in (was, now)))


def _window(default: str | None) -> Callable[[str | None, str | None], Direction]:
    """A time within which something counts: the shorter, the less does; without one everything does."""

    def told(was: str | None, now: str | None) -> Direction:
        before, after = (seconds(each) if each else None for each in (was or default, now or default))
        return _told(after is not None and (before is None or after < before))

    return told


def _among(was: tuple[str, ...] | None, now: tuple[str, ...] | None) -> Direction:
    """What is allowed by name; without names everything is."""
    return _told(now is None or (was is not None and not set(now) <= set(was)))


def _withhold(was: tuple[str, ...], now: tuple[str, ...]) -> Direction:
    return _told(not set(was) <= set(now))


def _columns(was: Mapping[str, tuple[str, ...]] | None, now: Mapping[str, tuple[str, ...]] | None) -> Direction:
    if now is None or was is None:
        return _told(now is None)
    return _told(any(not set(roles) <= set(was.get(name, ())) for name, roles in now.items()))


def _ranked(*values: str | None) -> Callable[[str | None, str | None], Direction]:
    """Values from the strictest to the loosest."""
    return lambda was, now: _told(values.index(now) > values.index(was))


def _disclose(before: PolicySection, after: PolicySection) -> Direction:
    """Where nothing is written, a floor keeps candidates from jobs; what is written may allow them beside it."""
    everything = {"candidates", "supports", "frequent"}
    was = everything - {"candidates"} if before.disclose is None else set(before.disclose)
    return _told(not (everything if after.disclose is None else set(after.disclose)) <= was)


def _of_exceptions(was: tuple[ApprovalRule, ...], now: tuple[ApprovalRule, ...]) -> Direction:
    """The first that fits decides. One more that refuses, or one less that approves, never lets a job through."""
    added, gone = [each for each in now if each not in was], [each for each in was if each not in now]
    in_order = [each for each in now if each in was] == [each for each in was if each in now]
    tight = all(each.decide == "refuse" for each in added) and all(each.decide == "auto" for each in gone)
    return "stricter" if in_order and tight else "may be looser"


_FLOORS: Final = {"min_support": "min_count", "min_count": "min_support"}
_ORDERS: Final[Mapping[str, Callable[[Any, Any], Direction]]] = {
    **dict.fromkeys(
        ("approvals", "min_parties", "min_support", "min_count", "min_insider_k", "min_new_rows", "min_group"),
        _least,
    ),
    **dict.fromkeys(
        (
            "max_length",
            "max_releases",
            "max_failed_releases",
            "max_jobs",
            "max_candidates",
            "max_epsilon",
            "max_delta",
            "max_local_epsilon",
            "max_union_bound",
            "max_plans",
            "max_failed_jobs",
            "max_open_jobs",
            "max_running_jobs",
            "max_proposals",
            "epsilon",
            "delta",
            "local_epsilon",
        ),
        _most,
    ),
    **dict.fromkeys(("max_deadline", "max_expiry"), _longest),
    **dict.fromkeys(
        (
            "tasks",
            "coordinators",
            "peers",
            "compute",
            "helpers",
            "models",
            "analysts",
            "shufflers",
            "datasets",
        ),
        _among,
    ),
    "max_jobs_period": _window(DEFAULT_PERIOD),
    "period": _window(None),
    "withhold": _withhold,
    "columns": _columns,
    "approve": _ranked("manual", "auto"),
    "release": _ranked("manual", "auto"),
    "party_sets": _ranked("fixed", None),
    "keys": lambda was, now: _ranked("none", "union")(was or "none", now or "none"),
    "security": lambda was, now: _ranked("malicious", "semi-honest")(was or "semi-honest", now or "semi-honest"),
    "column_groups": lambda was, now: _ranked("refuse", "allow")(was or "allow", now or "allow"),
    "composition": _ranked("basic", "optimal"),
    "exact": _ranked("refuse", "allow"),
}
