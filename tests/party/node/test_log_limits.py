"""Lines by caller, and lines that nobody reads."""

from __future__ import annotations

import contextlib
import io
import json
import os
import threading
from collections import Counter
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from link.logs import lines as log_lines
from link.logs.limits import A_SECOND, MAX_CALLERS, MOST, SUMMARY_S, LineLimits
from link.logs.lines import LogLines
from party.node.logs import open_log, open_node_log
from tests.clock import Clock


def limited() -> tuple[LineLimits, Clock, Counter[tuple[str, str]]]:
    clock, told = Clock(), Counter[tuple[str, str]]()
    limits = LineLimits(clock)
    limits.report = lambda key, value, number: told.update({(key, value): number})
    return limits, clock, told


@given(
    st.lists(
        st.tuples(
            st.sampled_from([("caller", "a"), ("caller", "b"), ("address", "10.0.0.1"), ("event", "ready")]),
            st.integers(1, 2 * MOST),
            st.floats(0, 30),
        ),
        max_size=8,
    )
)
def test_a_caller_causes_so_many_lines_and_withheld_ones_are_counted(
    bursts: list[tuple[tuple[str, str], int, float]],
) -> None:
    limits, clock, told = limited()
    asked, passed = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for (key, value), number, wait in bursts:
        for _ in range(number):
            asked[key, value] += 1
            with contextlib.suppress(structlog.DropEvent):
                limits(None, "", {"event": "call refused"} | {key: value})
                passed[key, value] += 1
        clock.now += wait
        limits.summarise()
    clock.now += 2 * SUMMARY_S
    limits.summarise()
    for each in asked:
        assert passed[each] + told[each] == asked[each]
        assert passed[each] <= MOST + A_SECOND * clock.now
        assert asked[each] > MOST or told[each] == 0


def test_nobody_can_take_up_the_memory_of_the_limits() -> None:
    limits, clock, _ = limited()
    for number in range(3 * MAX_CALLERS):
        with contextlib.suppress(structlog.DropEvent):
            limits(None, "", {"event": "call refused", "address": str(number)})
    assert len(limits.callers) <= MAX_CALLERS + 1
    clock.now += MOST / A_SECOND
    limits.summarise()
    clock.now += MOST / A_SECOND
    limits.summarise()
    assert limits.callers == {}


def test_a_summary_is_a_line_of_its_own() -> None:
    stream = io.StringIO()
    limits = LineLimits()
    log = open_log("north", stream, limits)
    limits.report = lambda key, value, number: log.warning("lines withheld", lines=number, **{key: value})
    for _ in range(MOST + 7):
        log.warning("call refused", call="Describe", caller="phone")
    log.warning("call refused", call="Describe", caller="another")
    limits.summarise()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert Counter(line.get("caller") for line in lines) == {"phone": MOST + 1, "another": 1}
    assert {key: lines[-1][key] for key in ("event", "caller", "lines")} == {
        "event": "lines withheld",
        "caller": "phone",
        "lines": 7,
    }


def _read(descriptor: int) -> list[dict[str, Any]]:
    with os.fdopen(descriptor) as file:
        return [json.loads(line) for line in file]


def test_nobody_waits_for_a_reader_and_lost_lines_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lines, "MAX_LINES", 50)
    reading, writing = os.pipe()
    lines = LogLines(writing)
    log = open_node_log("north", lines)
    number = 5000
    for each in range(number):
        log.warning("call refused", caller=f"caller-{each % 100}", call="Describe")
    found: list[dict[str, Any]] = []
    reader = threading.Thread(target=lambda: found.extend(_read(reading)))
    reader.start()
    lines.finish(60)
    os.close(writing)
    reader.join()
    lost = sum(line["lines"] for line in found if line["event"] == "lines lost")
    assert lost > 0
    assert sum(line["event"] == "call refused" for line in found) + lost == number


def test_the_end_waits_for_a_reader_but_a_moment() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing, bytes(1 << 16))
    os.set_blocking(writing, True)
    lines = LogLines(writing)
    open_node_log("north", lines).info("ready")
    lines.finish(0.1)
    os.set_blocking(reading, False)
    os.close(reading)  # which ends the thread's write


def test_lines_are_whole_where_others_have_made_the_descriptor_one_that_does_not_wait() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    lines = LogLines(writing)
    number = 2000  # of more bytes than a pipe takes
    for each in range(number):
        lines.write(json.dumps({"caller": f"caller-{each}", "call": "C" * 90}) + "\n")
    found: list[dict[str, Any]] = []
    reader = threading.Thread(target=lambda: found.extend(_read(reading)))
    reader.start()
    lines.finish(60)
    os.close(writing)
    reader.join()
    assert [line["caller"] for line in found] == [f"caller-{each}" for each in range(number)]


def test_a_reader_that_has_gone_stops_nothing() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    lines = LogLines(writing)
    log = open_node_log("north", lines)
    for _ in range(10):
        log.info("ready")
    lines.finish(60)
    os.close(writing)
