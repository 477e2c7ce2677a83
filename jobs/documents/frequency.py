"""`result.json` of a simulated collection, as models from which its published schema is made."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from jobs.documents.part import Part


class FrequencyErrors(Part):
    """How far estimated counts lie from the true ones, over all values and runs."""

    rmse: float = Field(ge=0, description="Root of the mean squared error of a count, of raw estimates.")
    theory_rmse: float = Field(ge=0, description="The same by the mechanism's exact variance at the true counts.")
    ratio: float = Field(ge=0, description="One by the other; near 1 where the theory holds.")
    ratio_deviation: float = Field(ge=0, description="Standard deviation that chance gives the ratio.")
    mean_absolute: float = Field(ge=0, description="Mean absolute error.")
    largest: float = Field(ge=0, description="Largest absolute error.")
    coverage: float = Field(ge=0, le=1, description="Share of the intervals that hold the true count.")
    top_found: float = Field(
        ge=0, le=1, description="Share of the most frequent values that are among as many with the highest estimates."
    )
    post_processed_rmse: float | None = Field(
        default=None, ge=0, description="As rmse, of post-processed estimates; left out without post-processing."
    )


class SimulatedMechanism(Part):
    """What one mechanism gave."""

    mechanism: str = Field(description="Its name, such as olh.")
    parameters: dict[str, int | float | str | None] = Field(
        description="All parameters it was run with; of the domain its size. Null is the mechanism's own choice."
    )
    exact_epsilon: float = Field(gt=0, description="The ε that a report really spends; at most epsilon.")
    report_bytes: int = Field(ge=1, description="Bytes of one report on the wire.")
    client_seconds: float = Field(ge=0, description="Seconds that all clients took together, mean of the runs.")
    server_seconds: float = Field(ge=0, description="Seconds that the server took, mean of the runs.")
    errors: FrequencyErrors
    reason: str | None = Field(default=None, description="Why it was chosen; left out where it was named.")


class FrequencyDocument(Part):
    """The whole of a simulation's `result.json`."""

    schema_: Literal["comine.frequency/1"] = Field(alias="schema")
    software: str = Field(description="Version of comine.")
    n: int = Field(ge=1, description="Users, each with one value.")
    d: int = Field(ge=2, description="Values of the domain.")
    domain: Literal["given", "values seen"] = Field(description="Whether the domain was given or taken from the data.")
    epsilon: float = Field(gt=0, description="The privacy budget that was asked for.")
    runs: int = Field(ge=1, description="Collections of the same values; errors are over all of them.")
    seed: int | None = Field(description="Repeats all random draws; null for the operating system's randomness.")
    confidence: float = Field(gt=0, lt=1, description="Of the interval of each value.")
    top: int = Field(ge=1, description="How many of the most frequent values were looked for.")
    post_processing: str | None = Field(description="The method that made estimates consistent; null for none.")
    mechanisms: list[SimulatedMechanism]
