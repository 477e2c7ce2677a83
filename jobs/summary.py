"""From the statement of a job to its summary, in the same words, so that no summary says anything else.

The lines of the statement that a summary names are marked where they are made, as `Learned.brief`.
"""

from __future__ import annotations

from typing import Final

from jobs.documents.summary import Learns, Summary
from jobs.kinds.charge import charge
from jobs.kinds.registry import kind_of
from jobs.spec.job import JobSpec
from jobs.statement import Statement, deviating, statement
from link.files.printable import enumeration

_NAMES: Final = 40  # characters of names of parties that are listed


def summary(spec: JobSpec) -> Summary:
    """The summary of a job, from its specification alone: every party computes the same."""
    stated = statement(spec)
    more = sum(not line.brief for line in stated.learned) + len(stated.beyond)
    return Summary(
        asked=_asked(spec),
        learns=_learns(spec, stated),
        worst=stated.worst,
        charge=_charge(spec),
        holds=f"{_holds(spec)}; {more} more lines in the statement",
    )


def _holds(spec: JobSpec) -> str:
    if spec.is_verified:
        return f"even if {deviating(spec)} should deviate from the protocol"
    return "if every party follows the protocol"


def _asked(spec: JobSpec) -> str:
    what, names = kind_of(spec).lead(spec)[0], enumeration(spec.job.parties)
    whose = names if len(names) <= _NAMES else f"{len(spec.job.parties)} parties"
    settings = ", ".join(f"{name} {value}" for name, value in kind_of(spec).asks(spec))
    return f"{what[0].lower()}{what[1:]} of {whose}{f'; {settings}' if settings else ''}"


def _learns(spec: JobSpec, stated: Statement) -> list[Learns]:
    """The marked lines, those of the same members together, in the order of the statement."""
    groups: dict[frozenset[str], list[str]] = {}
    for line in stated.learned:
        if line.brief and line.brief not in (named := groups.setdefault(frozenset(line.who), [])):
            named.append(line.brief)
    return [Learns(who=_called(who, spec), what=what) for who, what in groups.items()]


def _called(who: frozenset[str], spec: JobSpec) -> str:
    """What members are called together."""
    parties = frozenset(spec.job.parties)
    if who == parties:
        return "parties"
    if who == parties | {"coordinator"}:
        return "all"
    names = enumeration([name for name in ("coordinator", *spec.job.parties) if name in who])
    others = [name for name in spec.job.parties if name not in who]
    if len(names) <= _NAMES or "coordinator" in who:
        return names
    return f"parties but {others[0]}" if len(others) == 1 else f"{len(who)} parties"


def _charge(spec: JobSpec) -> str | None:
    cost = charge(spec)
    if cost.epsilon is None:
        return None
    delta = f" and δ = {float(cost.delta):g}" if cost.delta else ""
    return f"ε = {float(cost.epsilon):g}{delta} of each record's budget"
