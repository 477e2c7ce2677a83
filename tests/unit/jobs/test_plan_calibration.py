"""The measurement of a machine: something for everything, on any number of rows."""

from __future__ import annotations

import asyncio
import math
from dataclasses import astuple

import pytest

from jobs.plan.calibration import measure
from jobs.plan.publication import told_speed
from link.executor import ThreadExecutor


@pytest.mark.parametrize("n_rows", [0, 1, 1000, 10_000_000])
def test_every_operation_is_measured(n_rows: int) -> None:
    executor = ThreadExecutor(2)
    try:
        speed = asyncio.run(measure(executor, n_rows))
    finally:
        executor.close()
    assert all(math.isfinite(each) and each >= 0 for each in astuple(speed))
    assert min(speed.multiply_s, speed.embed_s, speed.byte_s, speed.frame_s, speed.candidate_s, speed.row_s) > 0
    told = told_speed(speed)
    assert [getattr(told, field.name) for field in told.DESCRIPTOR.fields] == list(astuple(speed))
