"""The summary of a job, by which a person decides: what is asked, who learns what, the worst case, and the cost."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Final, NamedTuple

from pydantic import Field

from jobs.documents.part import Part

WIDTH: Final = 80
_LABELS: Final = 13  # columns before the text


class Learns(Part):
    """What some members learn."""

    who: str = Field(description='Members of the job; "parties" are all of these, and "all" the coordinator too.')
    what: list[str] = Field(description="In the words of the statement, or in fewer that state no less.")


class Entry(NamedTuple):
    """A line of a summary, as long as it may be.

    Attributes:
        label: What it is about.
        text: What it says.
    """

    label: str
    text: str


class Summary(Part):
    """What is asked of the parties of a job, what each side learns, and what could happen at worst."""

    asked: str = Field(description="What is computed, over whose data.")
    learns: list[Learns] = Field(description="Who learns what; all else is in the statement.")
    worst: str = Field(description="The worst that colluders could find out, in plain words.")
    charge: str | None = Field(description="What it costs the privacy budget of each record; null without noise.")
    holds: str = Field(description="Under which assumption all this holds, and how much more the statement says.")

    def entries(self, by: str | None = None, cost: str | None = None) -> list[Entry]:
        """Its lines.

        Args:
            by: Who asks; None where that is not known.
            cost: What the job costs the parties' machines; None where that is not known.
        """
        found = [Entry("asked", f"by {by}: {self.asked}" if by else self.asked)]
        found += [Entry(each.who, "; ".join(each.what)) for each in self.learns]
        found.append(Entry("worst case", self.worst))
        if costs := [each for each in (cost, self.charge) if each]:
            found.append(Entry("cost", "; ".join(costs)))
        return [*found, Entry("holds", self.holds)]

    def lines(self, by: str | None = None, cost: str | None = None, width: int = WIDTH) -> list[str]:
        """It as text, no line longer than a width; arguments as for `entries`."""
        return lines(self.entries(by, cost), width)


def lines(entries: Sequence[Entry], width: int = WIDTH) -> list[str]:
    """Lines of a summary as text, none longer than a width."""
    found = list[str]()
    for label, text in entries:
        fits = len(label) < _LABELS
        head, rest = (label.ljust(_LABELS), text) if fits else ("", f"{label}: {text}")
        found += textwrap.wrap(rest, width, initial_indent=head, subsequent_indent=" " * _LABELS)
    return found
