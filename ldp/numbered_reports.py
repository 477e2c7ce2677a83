"""Frequency oracles whose reports are one number each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ldp.frequency_oracle import FrequencyOracle
from ldp.mechanism import Tally
from ldp.reports import Field, Reports


class NumberedReports(FrequencyOracle):
    """An oracle that reports one of K numbers; its tally is how often each was reported."""

    @property
    def numbers(self) -> int:
        """K, how many numbers a report may name: one for each value, unless the oracle has others."""
        return self.domain.size

    @property
    def layout(self) -> tuple[Field, ...]:
        """A number below K."""
        return (Field(np.min_scalar_type(self.numbers - 1).name),)

    def _valid(self, reports: Reports) -> bool:
        return bool(np.all(reports.fields[0] < self.numbers))

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """One count a number."""
        return (self.numbers,)

    def tally(self, reports: Reports) -> Tally:
        """How often each number is reported."""
        return np.bincount(reports.fields[0], minlength=self.numbers).astype(np.int64, copy=False)

    def outcomes(self, reports: Reports) -> NDArray[np.int64]:
        """The numbers reported."""
        return reports.fields[0].astype(np.int64)
