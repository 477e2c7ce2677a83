from __future__ import annotations

import ast
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import console.log
from jobs.audit.events import Event
from jobs.audit.service_events import CollectionLost, RouteLost
from link.errors import PolicyDenied
from link.logs.structured import LibraryLines, OnlyAllowed
from party.node.logs import EVENTS, KINDS, open_log


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json_with_party_event_level_and_time() -> None:
    stream = io.StringIO()
    open_log("north", stream).info("job started", job="ab" * 32, task="itemsets", caller="analyst")
    (line,) = lines(stream)
    assert line.pop("time").endswith("Z")
    assert line == {
        "party": "north",
        "event": "job started",
        "level": "info",
        "job": "ab" * 32,
        "task": "itemsets",
        "caller": "analyst",
    }


@given(
    key=st.text(min_size=1).filter(lambda key: key not in KINDS and key not in ("error", "withheld", "party")),
    value=st.text() | st.integers() | st.lists(st.text()),
)
def test_unknown_keys_never_reach_the_log(key: str, value: object) -> None:
    stream = io.StringIO()
    open_log("north", stream).bind(**{key: value}).info("ready")
    (line,) = lines(stream)
    assert key not in line
    assert line["withheld"] == [key]


@pytest.mark.parametrize(
    "values",
    [
        {"rounds": "milk"},
        {"rounds": ["milk"]},
        {"job": "milk"},
        {"code": "milk"},
        {"dataset": "milk\nbread"},
        {"dataset": {"milk": 1}},
        {"seconds": True},
        {"error": "milk"},
    ],
)
def test_a_known_key_holds_only_its_kind(values: dict[str, Any]) -> None:
    stream = io.StringIO()
    open_log("north", stream).info("ready", **values)
    assert "milk" not in stream.getvalue()
    assert lines(stream)[0]["withheld"] == list(values)


def test_events_are_fixed_words() -> None:
    stream = io.StringIO()
    open_log("north", stream).info("found milk and bread")
    assert "milk" not in stream.getvalue()
    assert "ready" in EVENTS


def test_an_unforeseen_error_shows_its_type_and_place_but_not_its_words() -> None:
    stream = io.StringIO()
    try:
        {}["milk"]
    except KeyError as error:
        open_log("north", stream).error("job failed", error=error)
    (line,) = lines(stream)
    assert "milk" not in stream.getvalue()
    assert (line["type"], line["code"]) == ("KeyError", "E700")
    assert "test_logs.py" in line["places"][-1]


def test_an_error_raised_on_purpose_shows_its_sentence() -> None:
    stream = io.StringIO()
    open_log("north", stream).warning(
        "job failed", error=PolicyDenied("the policy says no; leave out hiv*", party="south")
    )
    (line,) = lines(stream)
    assert (line["code"], line["sentence"], line["error_party"]) == ("E300", "the policy says no", "south")


@pytest.fixture
def library() -> Iterator[logging.Logger]:
    logger = logging.getLogger("some.library")
    yield logger
    logger.handlers.clear()


def test_what_libraries_say_is_told_without_their_words(library: logging.Logger) -> None:
    stream = io.StringIO()
    library.addHandler(LibraryLines(open_log("north", stream)))
    library.propagate = False
    library.error("milk %s", "bread")
    try:
        raise ValueError("milk")
    except ValueError:
        library.exception("butter")
    first, second = lines(stream)
    assert first["library"] == "some.library"
    assert second["type"] == "ValueError"
    assert all(word not in stream.getvalue() for word in ("milk", "bread", "butter"))


def test_a_log_that_nobody_reads_any_more_stops_no_job() -> None:
    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

        def flush(self) -> None:
            raise OSError

    open_log("north", Broken()).info("ready")


def test_every_event_and_key_that_comine_logs_is_known() -> None:
    """A line that names what it withheld is a mistake of the code that wrote it."""
    keys, events = set(), set[Any]()
    for path in (Path(__file__).parents[3] / "party").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            logs = ast.unparse(node.func.value).lower().endswith(("log", "lines"))
            if logs and node.func.attr in ("info", "warning", "error"):
                keys |= {keyword.arg for keyword in node.keywords if keyword.arg is not None}
                events |= {each.value for each in node.args[:1] if isinstance(each, ast.Constant)}
    assert len(keys) > 15
    assert {"job started", "result held"} <= events <= EVENTS | console.log.EVENTS
    assert keys <= KINDS.keys() | {"error"}


def test_the_start_of_a_job_withholds_nothing() -> None:
    stream = io.StringIO()
    open_log("north", stream).info("job started", job="ab" * 32, task="itemsets", caller="analyst", attempt=1)
    (line,) = lines(stream)
    assert line["attempt"] == 1
    assert "withheld" not in line


@pytest.mark.parametrize("event", [CollectionLost(collection="weekly"), RouteLost(route="weekly")])
def test_what_a_database_has_lost_is_told_in_words_and_by_name(event: Event) -> None:
    assert OnlyAllowed(KINDS)(None, "", {"event": event.event.replace("-", " "), **event.fields()}) == {
        "event": event.event.replace("-", " "),
        event.event.partition("-")[0]: "weekly",
    }
