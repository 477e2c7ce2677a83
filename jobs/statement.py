"""The disclosure statement of a job: who learns what, under which adversary and collusion bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from jobs import fitness
from jobs.kinds.registry import kind_of
from jobs.spec.job import JobSpec
from link import steps
from link.disclosure import Declared, Learned
from link.files.printable import enumeration

EXACT_FORM: Final = (
    "In their exact form, with all numbers and bounds, these lines are the details of the disclosure in JSON (--json, "
    "result.json)."
)


@dataclass(frozen=True, slots=True)
class Statement:
    """What exactly this job discloses.

    Attributes:
        adversary: The behaviour against which it holds.
        collusion: How many colluders it withstands.
        worst: The worst that colluders could find out, in plain words.
        declared: Every label under which a party may open something; enforced while the job runs.
        learned: Who learns what: the result first, then what all parties learn, then what some do, then what the end
            of a job reveals of one party's rows.
        beyond: What no statement of a single job can cover.
    """

    adversary: str
    collusion: str
    worst: str
    declared: tuple[Declared, ...]
    learned: tuple[Learned, ...]
    beyond: tuple[str, ...]

    def as_data(self) -> list[dict[str, Any]]:
        """The statement as JSON values."""
        return [
            {"adversary": self.adversary, "collusion": self.collusion, "worst": self.worst},
            *(
                {"who": list(line.who), "kind": line.kind, "what": line.what, "detail": line.detail}
                for line in self.learned
            ),
            *(
                {
                    "label": d.label,
                    "recipients": sorted(d.recipients),
                    "what": d.what,
                    "maximum": d.maximum,
                    "when": d.when,
                }
                for d in self.declared
            ),
            *({"beyond": line} for line in self.beyond),
        ]

    def prose(self) -> list[str]:
        """The statement as short sentences, and where the exact ones are."""
        return [*self._sentences([line.what for line in self.learned]), EXACT_FORM]

    def exact_prose(self) -> list[str]:
        """The statement as sentences in their exact form."""
        return self._sentences([line.exact for line in self.learned])

    def _sentences(self, learned: list[str]) -> list[str]:
        return [
            f"Adversary: {self.adversary}. Collusion: {self.collusion}.",
            *(
                f"{enumeration(line.who)} {_learn(line.who)} {what}."
                for line, what in zip(self.learned, learned, strict=True)
            ),
            *(f"Not covered: {line}." for line in self.beyond),
        ]


def openings(disclosure: Iterable[Mapping[str, Any]]) -> list[str]:
    """Of a statement as JSON values, in sentences, the labels under which nodes may open something."""
    return [
        f"{line['label']}: {line['what']}, to {enumeration(line['recipients'])}, at most {line['maximum']:,} "
        f"values from each, {line['when']}."
        for line in disclosure
        if "label" in line
    ]


def statement(spec: JobSpec) -> Statement:
    """The statement of a job, from its specification alone: every party computes the same."""
    receivers = tuple(dict.fromkeys(r for name in spec.job.recipients for r in _expand(name, spec.job.parties)))
    kind, parties = kind_of(spec), spec.job.parties
    own = kind.disclosure(spec)
    again = kind.resumes(spec)
    known = (*own.learned, *([steps.learned(parties, noisy=kind.estimates)] if again else []))
    return Statement(
        adversary=adversary(spec),
        collusion=own.collusion,
        worst=own.worst,
        declared=(*own.declared, *([steps.openings(parties)] if again else [])),
        learned=(
            Learned(receivers, "result", own.result).main(),
            *sorted(known, key=lambda line: _rank(line, parties)),
            own.progress,
            *fitness.learned(spec, own.declared),
        ),
        beyond=(
            "an invented input" if spec.is_verified else "what a modified node sends, or an invented input",
            "the sizes and times of messages",
            "what several jobs on overlapping data reveal together",
            *own.beyond,
        ),
    )


def adversary(spec: JobSpec) -> str:
    """Against whom the statement holds."""
    if not spec.is_verified:
        return "semi-honest: every party follows the protocol and may study all it sees"
    passes = "a wrong result passes with probability 2^-40 a batch"
    if kind_of(spec).helper(spec) is None:
        passes = "what they do goes unnoticed with probability 2^-40 for each block of a batch"
    return (
        f"malicious: {deviating(spec)} may do what they like; "
        "they can end the job, also when they have learned its result and others have not, and choose "
        f"{_input(spec)}; {passes}"
    )


def deviating(spec: JobSpec) -> str:
    """Whom a job in which parties may deviate withstands."""
    helper = kind_of(spec).helper(spec)
    computing = spec.compute if helper is None else (*spec.compute, helper)
    others = ", and any parties that do not compute," if len(spec.job.parties) > len(computing) else ""
    return f"one of {enumeration(computing)}{others}"


def _input(spec: JobSpec) -> str:
    """What parties that deviate still choose."""
    if spec.is_vertical:
        merger = spec.job.parties[0]
        return (
            "their own ids, up to 2.7 times as many as a list has places, and their own columns, before any count is "
            f"known; {merger}, if it deviates, can leave out common rows that it has seen"
        )
    unions = ", and what they bring to unions" if kind_of(spec).unions(spec).taken else ""
    return f"their own counts, between 0 and the rows that they say they have{unions}"


def _rank(line: Learned, parties: tuple[str, ...]) -> tuple[bool, bool]:
    """Results come first, then what all parties learn."""
    return line.kind != "result", not set(parties) <= set(line.who)


def _expand(recipient: str, parties: tuple[str, ...]) -> tuple[str, ...]:
    return ("coordinator", *parties) if recipient == "all" else (recipient,)


def _learn(who: tuple[str, ...]) -> str:
    return "learns" if len(who) == 1 else "learn"
