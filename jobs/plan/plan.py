"""A plan: what a job is expected to cost each party, and what it discloses, before anybody agrees to it."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any, Literal, Self

from pydantic import Field, ValidationError

from jobs.documents.budget import Amounts
from jobs.documents.part import Part
from jobs.documents.summary import Summary
from jobs.plan.privacy import Privacy
from link.costs import Costs
from link.errors import InputDataError
from mining.joint.parameters import Disclose

_HEX_DIGEST = r"^[0-9a-f]{64}$"
Compared = dict[str, float | None]


class PartyPlan(Part):
    """What the job is expected to cost one party."""

    rows_public: Literal["rounded", "hidden"] = Field(description="How exactly it publishes its number of rows.")
    n_rows: int | None = Field(ge=0, description="The rows that it publishes, coarsely; null where it hides them.")
    bytes_sent: int = Field(ge=0, description="Bytes of protocol frames that it sends to its peers, likely.")
    bytes_received: int = Field(ge=0, description="Bytes of protocol frames that it gets from its peers, likely.")
    bytes_sent_at_least: int | None = Field(
        default=None, ge=0, description="The least that published sizes let expect; null where they say no range."
    )
    bytes_received_at_least: int | None = Field(default=None, ge=0, description="The same of what it gets.")
    bytes_sent_at_most: int | None = Field(
        default=None,
        ge=0,
        description="The most that published sizes let expect, or where a party publishes none the job's own limits "
        "allow; null where nothing says it.",
    )
    bytes_received_at_most: int | None = Field(default=None, ge=0, description="The same of what it gets.")
    seconds: float = Field(ge=0, description="From the greeting of its peers to the result.")
    memory_bytes: int = Field(ge=0, description="Memory of its node at the most.")
    left: Amounts | None = Field(
        default=None, description="What is left of its totals for the privacy of records; null where it does not say."
    )


class Batch(Part):
    """Candidates that are decided on together."""

    step: str = Field(description="Of the protocol.")
    candidates: int = Field(ge=0, description="How many are expected.")
    opened: int = Field(ge=0, description="Of how many the sums are opened to those who learn them.")

    @classmethod
    def of(cls, step: str, disclose: Disclose, candidates: int, frequent: int) -> Self:
        """Candidates of exact mining, of which so many are expected to be frequent."""
        opened = {"candidates": candidates, "supports": frequent, "frequent": 0}
        return cls(step=step, candidates=candidates, opened=opened[disclose])


class Alternative(Part):
    """Another way to do the job. Figures are null where the parties have not published what they depend on."""

    name: str = Field(description="What it is about.")
    change: list[str] = Field(description="The settings of the job file that choose it, each after its table.")
    strategy: str | None = Field(description="The strategy that the parties are expected to take.")
    rounds: int | None = Field(ge=0, description="Longest chain of messages that wait for each other.")
    seconds: float | None = Field(ge=0, description="Of the slowest party.")
    bytes_sent: int | None = Field(ge=0, description="Of all parties together.")
    adds: list[str] = Field(description="Sentences of its statement that are not in that of the job as written.")
    drops: list[str] = Field(description="Sentences of the statement of the job as written that are not in its own.")
    in_short: str = Field(description="Both in a line; what a union reveals beside its elements is one item of it.")


class Supposed(Part):
    """What a job would cost with parties of sizes that many have."""

    bytes_sent: int = Field(ge=0, description="Of all parties together.")
    seconds: float = Field(ge=0, description="Of the slowest party.")
    condition: str = Field(description="On which sizes the figures rest.")


class EngineFigures(Part):
    """What a vertical job would cost with one of the engines. Figures are null where nobody publishes sizes."""

    engine: str
    chosen: bool = Field(description="Whether the job takes it.")
    allowed: bool = Field(description="Whether the trust that the job states allows it.")
    trust: str = Field(description="Who has to be trusted.")
    change: list[str] = Field(description="The settings of the job file that choose it, each after its table.")
    rounds: int | None = Field(ge=0, description="Longest chain of messages that wait for each other.")
    seconds: float | None = Field(ge=0, description="Of the slowest party.")
    bytes_sent: int | None = Field(ge=0, description="Of all parties together.")
    memory_bytes: int | None = Field(ge=0, description="Of the party that needs most.")


class Plan(Part):
    """A plan of one job. It rests on what the parties publish of their sizes, and on nothing else of their data."""

    schema_: Literal["comine.plan/1"] = Field(default="comine.plan/1", alias="schema")
    job: str = Field(description="Name of the job.")
    spec_digest: str = Field(pattern=_HEX_DIGEST, description="SHA-256 of the canonical job specification.")
    n_rows: int | None = Field(ge=0, description="Transactions of all parties, as far as they are published.")
    strategy: str = Field(description="The strategy that the parties are expected to take.")
    rounds: int = Field(ge=0, description="Longest chain of messages that wait for each other.")
    seconds: float = Field(ge=0, description="Of the slowest party.")
    is_least: bool = Field(
        default=False,
        description="Whether bytes, rounds and seconds are the least, since the rest depends on the rows.",
    )
    rounds_at_least: int | None = Field(default=None, ge=0, description="Of such a job the least; null as for bytes.")
    rounds_at_most: int | None = Field(
        default=None, ge=0, description="Of such a job the most; null where none is known."
    )
    seconds_at_least: float | None = Field(default=None, ge=0, description="The same of the seconds.")
    seconds_at_most: float | None = Field(default=None, ge=0, description="The same of the seconds.")
    supposed: Supposed | None = Field(
        default=None, description="An order of magnitude, where no party publishes what it takes to know more."
    )
    parties: dict[str, PartyPlan]
    batches: list[Batch] = Field(description="What is decided on, as far as sizes are published.")
    coordinator: str | None = Field(default=None, description="Who asks; null where nobody has asked yet.")
    summary: Summary | None = Field(default=None, description="The statement in short; null of earlier versions.")
    disclosure: list[dict[str, Any]] = Field(
        description="Who learns what; each entry is a line, `detail` its exact form where that is longer."
    )
    prose: list[str] = Field(description="The statement in short sentences.")
    assumptions: list[str] = Field(description="On what the figures rest.")
    privacy: Privacy | None = Field(
        default=None, description="What the job costs each record; null of a job without noise, which nothing bounds."
    )
    advice: list[str] = Field(default=[], description="What the owner of the job should think of.")
    warning: str | None = Field(
        default=None,
        description="What policies' rule min_count may say to the job at its run; null where that goes without saying.",
    )
    alternatives: list[Alternative] = Field(
        default=[], description="Other ways to do the job, each beside the job as written."
    )
    engines: list[EngineFigures] = Field(default=[], description="Of a vertical job that mines: all engines compared.")
    engine_reason: str | None = Field(default=None, description="Why the job takes the engine that it takes.")

    @property
    def bytes_sent(self) -> int:
        """Bytes of all parties together."""
        return sum(party.bytes_sent for party in self.parties.values())

    @property
    def bytes_sent_at_least(self) -> int:
        """The same at least."""
        return sum(
            party.bytes_sent if party.bytes_sent_at_least is None else party.bytes_sent_at_least
            for party in self.parties.values()
        )

    @property
    def bytes_sent_at_most(self) -> int | None:
        """The same at most; None where nothing is known of a party."""
        most = [party.bytes_sent_at_most for party in self.parties.values()]
        known = [size for size in most if size is not None]
        return sum(known) if len(known) == len(most) else None

    @property
    def middle(self) -> tuple[int, float] | None:
        """Bytes and seconds between the least and the most, as a ratio of both; None where no most is known."""
        most, longest = self.bytes_sent_at_most, self.seconds_at_most
        if most is None or longest is None:
            return None
        return round(sqrt(self.bytes_sent * most)), sqrt(self.seconds * longest)

    def as_data(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return self.model_dump(mode="json", by_alias=True)

    @classmethod
    def from_data(cls, contents: Mapping[str, Any]) -> Self:
        """Reads a plan again.

        Raises:
            InputDataError: The contents are not those of a plan.
        """
        try:
            return cls.model_validate(dict(contents))
        except ValidationError:
            raise InputDataError("the plan is none that this version of comine made; make a new one") from None

    def compare(self, costs: Mapping[str, Costs]) -> dict[str, dict[str, Compared]]:
        """What was predicted beside what the job has cost.

        Args:
            costs: Of the parties, after the run.

        Returns:
            By party and kind of cost the values `predicted`, `actual` and `ratio`, which is predicted by actual and
            None where the actual one is 0. Nothing where the plan says the least only: that is no prediction.
        """
        if self.is_least:
            return {}
        return {
            name: {
                "bytes_sent": _compared(self.parties[name].bytes_sent, actual.bytes_sent),
                "bytes_received": _compared(self.parties[name].bytes_received, actual.bytes_received),
                "rounds": _compared(self.rounds, actual.rounds),
                "seconds": _compared(self.parties[name].seconds, actual.seconds),
            }
            for name, actual in costs.items()
            if name in self.parties
        }


def _compared(predicted: float, actual: float) -> Compared:
    return {"predicted": predicted, "actual": actual, "ratio": predicted / actual if actual else None}
