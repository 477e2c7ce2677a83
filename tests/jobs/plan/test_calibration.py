"""The measurement of a machine: something for everything."""

from __future__ import annotations

import asyncio
import math
from dataclasses import astuple

from jobs.plan.calibration import measure, speed_message
from link.executor import ThreadExecutor


def test_every_operation_is_measured() -> None:
    executor = ThreadExecutor(2)
    try:
        speed = asyncio.run(measure(executor))
    finally:
        executor.close()
    assert all(math.isfinite(each) and each >= 0 for each in astuple(speed))
    assert min(speed.multiply_s, speed.byte_s, speed.frame_s, speed.candidate_s, speed.row_s) > 0
    told = speed_message(speed)
    assert [getattr(told, field.name) for field in told.DESCRIPTOR.fields] == list(astuple(speed))
