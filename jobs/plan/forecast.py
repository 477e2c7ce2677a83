"""A plan from what parties have published: likely figures, and between which they lie as far as published sizes say.

The same estimate is made three times: of parties as they likely are, and of those at both ends of what they publish.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from jobs.kinds.registry import opens
from jobs.plan.estimate import estimate
from jobs.plan.plan import PartyPlan, Plan
from jobs.plan.predicted import End, predicted
from jobs.plan.supposed import supposed
from jobs.spec.job import JobSpec
from link.errors import ConfigurationError
from link.files.printable import enumeration
from link.traffic import TOLERANCE
from mining.public_sizes import FLOOR
from protos.v1.plan_pb2 import PartyEstimate

_FRAMES: Final = ("bytes_sent", "bytes_received")
_COURSE: Final = ("rounds", "seconds")
_COARSE: Final = f"1, 2 or 5 times a power of ten, and nothing below {FLOOR}"


def forecast(spec: JobSpec, published: Mapping[str, PartyEstimate], latency_s: float, *others: str) -> Plan:
    """What the job will cost and disclose.

    Args:
        spec: The job.
        published: What each of its parties has published.
        latency_s: Seconds that a message is expected to take from party to party.
        others: What else the figures rest on, in sentences.

    Raises:
        ConfigurationError: The job cannot run with parties as they likely are; the sentence says why.
    """
    likely = estimate(spec, predicted(spec, published, "likely"), latency_s, *others, *_grounds(spec, published))
    hidden = not any(published[name].sizes.rows for name in spec.job.parties)
    if hidden or likely.is_least:
        with suppress(ConfigurationError):
            likely = likely.model_copy(update={"supposed": supposed(spec, published, latency_s)})
    if hidden:
        return likely

    def at(end: End) -> Plan | None:
        with suppress(ConfigurationError):  # so few or so many rows are nothing for the job
            return estimate(spec, predicted(spec, published, end), latency_s, compare=False)
        return None

    return _between(likely, at("least"), at("most"))


def _grounds(spec: JobSpec, published: Mapping[str, PartyEstimate]) -> list[str]:
    """On what all figures rest."""
    public = [name for name in spec.job.parties if published[name].sizes.rows]
    if not public:
        return [
            "No party publishes any size, and no row was looked at. Owners publish coarse sizes in "
            "[dataset.publish] of party.toml.",
            *_made(spec, published),
        ]
    return [
        f"The figures rest on what {enumeration(public)} {'publishes' if len(public) == 1 else 'publish'} of "
        f"{'its' if len(public) == 1 else 'their'} sizes ({_COARSE}) and on nothing else: no row was looked at. "
        "Parties that differ much in kind may cost more or less than the range says.",
        *_of_clusters(spec, published),
        *_made(spec, published),
    ]


def _of_clusters(spec: JobSpec, published: Mapping[str, PartyEstimate]) -> list[str]:
    """How rows are counted that lie on clusters."""
    timed = [name for name in spec.job.parties if published[name].sizes.level_ms]
    if not timed:
        return []
    whose = f"{'the cluster' if len(timed) == 1 else 'clusters'} of {enumeration(timed)}"
    return [f"Each pass over rows on {whose} is taken to last as long as is published, however much it counts."]


def _made(spec: JobSpec, published: Mapping[str, PartyEstimate]) -> list[str]:
    """Which release of the same rows a job would be: each is safe by itself alone."""
    lines = []
    releases = {name: published[name].release for name in spec.job.parties if published[name].release}
    if releases and opens(spec, "release"):
        lines.append(
            f"This would be {_places('release', releases)}. Releases combine: what each of several releases of the "
            "same rows hides, they may reveal together."
        )
    return lines


def _places(what: str, numbers: Mapping[str, int]) -> str:
    """Which one a job would be of whose rows."""
    return ", ".join(
        f"{what} {number} of the rows of {enumeration([name for name in numbers if numbers[name] == number])}"
        for number in sorted(set(numbers.values()))
    )


def _between(likely: Plan, least: Plan | None, most: Plan | None) -> Plan:
    """The likely plan with the ranges between the other two; of one that says the least, the least is what it says."""
    ends = (least, most, most is None or most.is_least, likely.is_least)
    parties = {}
    for name, party in likely.parties.items():
        of_party = (least and least.parties[name], most and most.parties[name])
        parties[name] = party.model_copy(update=_ranges(party, *of_party, *ends[2:], figures=_FRAMES))
    return likely.model_copy(update={**_ranges(likely, *ends, figures=_COURSE), "parties": parties})


def _ranges(
    likely: Plan | PartyPlan,
    least: Plan | PartyPlan | None,
    most: Plan | PartyPlan | None,
    most_is_open: bool,
    is_least: bool,
    *,
    figures: Sequence[str],
) -> dict[str, float | None]:
    """What changes: `most_is_open` says that the figures of `most` are themselves the least of something."""
    changes: dict[str, float | None] = {}
    slack = TOLERANCE if figures == _FRAMES else 0.0  # bytes are no closer than that, rounds are exact
    for figure in figures:
        value, limit = getattr(likely, figure), getattr(likely, f"{figure}_at_most")
        low = _less(value if least is None else min(value, getattr(least, figure)), slack)
        if most is not None:
            stated = getattr(most, f"{figure}_at_most")
            limit = stated if stated is not None or most_is_open else getattr(most, figure)
        changes[f"{figure}_at_least"] = low
        changes[f"{figure}_at_most"] = None if limit is None else _less(max(limit, value), -slack)
        if is_least:
            changes[figure] = low
    return changes


def _less(figure: float, share: float) -> float:
    """A figure without some of it; of bytes a whole number."""
    return round(figure * (1 - share)) if share else figure
