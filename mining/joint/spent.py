"""What a job has cost each record of its ε and δ."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Spent:
    """What one record has spent.

    Attributes:
        model: Of the job: local, shuffle, distributed or blended.
        local_epsilon: ε of the record's report towards anyone who sees it alone, at most; None without reports.
        epsilon: ε towards anyone who sees the result.
        delta: δ of that.
        n: Reports of parties that collude with nobody, which hide it, at least; None where nothing but noise does.
        bound: By which theorem, in a few words such as "privacy blanket".
    """

    model: str
    local_epsilon: float | None
    epsilon: float
    delta: float
    n: int | None
    bound: str
