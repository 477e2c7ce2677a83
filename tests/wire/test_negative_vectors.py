"""What an implementation must refuse: frames of seeded runs, changed as the vectors in `tests/vectors/negative` say."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from google.protobuf.message import Message
from google.protobuf.symbol_database import Default

from link.transcripts.transcript import header_of, mark_of
from protos.v1.link_pb2 import Frame
from tests.errors import fails
from tests.repository.test_docs import PROTOCOL_PAGES
from tests.wire import jobs
from tests.wire.protocols import PROTOCOLS

FOLDER: Final = Path(__file__).parents[1] / "vectors" / "negative"
ALL: Final = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}
FILES: Final = {name: contents for name, contents in ALL.items() if "run" in contents}
VECTORS: Final = [(name, vector) for name, contents in FILES.items() for vector in contents["vectors"]]
OTHER_SEED: Final = 2
OF_JOBS: Final = "job "  # before the name of a run of `jobs`

Change = Callable[[bytes, Any], bytes]
OF_BYTES: Final[dict[str, Change]] = {
    "set": lambda data, to: bytes.fromhex(to),
    "cut": lambda data, number: data[: len(data) - number],
    "append": lambda data, more: data + bytes.fromhex(more),
    "grow": lambda data, number: data + bytes(number),
    "fill": lambda data, octet: bytes.fromhex(octet) * len(data),
    "put": lambda data, at: data[: at[0]] + bytes.fromhex(at[1]) + data[at[0] + len(at[1]) // 2 :],
    "flip": lambda data, bit: data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :],
    "rotate": lambda data, number: data[number:] + data[:number],
    "reverse": lambda data, size: b"".join(data[i : i + size] for i in reversed(range(0, len(data), size))),
}


def kind_of(frame: Frame) -> str:
    return frame.type.rpartition(".")[2]


def message_of(frame: Frame) -> Message:
    kind: type[Message] = Default().GetSymbol(frame.type)
    return kind.FromString(frame.body)


def is_meant(frame: Frame, which: dict[str, Any]) -> bool:
    return (
        (frame.sender, kind_of(frame)) == (which["from"], which["type"])
        and frame.receiver == which.get("to", frame.receiver)
        and which.get("lane", "") in frame.lane
    )


@cache
def sent(run: str, seed: int) -> list[Frame]:
    return PROTOCOLS[run].frames(seed)


def of_another_run(run: str, which: dict[str, Any]) -> Frame:
    """The same frame of a run from another seed."""
    alike = [frame for frame in sent(run, OTHER_SEED) if is_meant(frame, which)]
    return alike[which.get("nth", 0)]


def changed(vector: dict[str, Any], frame: Frame, other: Frame | None) -> Frame:
    """The frame as the vector has it, given the same of another run where it needs that."""
    copy = Frame()
    copy.CopyFrom(frame)
    for change in vector["change"]:
        change = dict(change)
        match change.pop("of"):
            case "another run":
                assert other is not None
                copy.body = other.body
            case "another session":
                assert other is not None
                copy.session = other.session
            case "frame":
                for name, value in change.items():
                    setattr(copy, name, bytes.fromhex(value) if isinstance(getattr(copy, name), bytes) else value)
            case "body":
                ((name, value),) = change.items()
                copy.body = OF_BYTES[name](copy.body, value)
            case field:
                message = message_of(copy)
                ((name, value),) = change.items()
                old = getattr(message, field)
                setattr(message, field, OF_BYTES[name](old, value) if isinstance(old, bytes) else value)
                copy.body = message.SerializeToString()
    if not vector.get("unmarked"):
        copy.mark = mark_of(header_of(copy))
    return copy


def test_every_protocol_and_message_has_some() -> None:
    kinds = {kind_of(frame) for run in PROTOCOLS.values() for frame in run.frames() if frame.lane != "hello"}
    assert {vector["frame"]["type"] for _, vector in VECTORS} >= kinds
    runs = {*PROTOCOLS, *(OF_JOBS + name for name in jobs.JOBS)}
    assert {vector.get("run") or FILES[name]["run"] for name, vector in VECTORS} <= runs
    others = {"architecture", "joint-itemsets", "shuffle"}
    assert {Path(contents["page"]).stem for contents in ALL.values()} == {*PROTOCOL_PAGES.values()} | others


@pytest.mark.turn(4)
@pytest.mark.parametrize(("file", "vector"), VECTORS, ids=[f"{name}: {each['name']}" for name, each in VECTORS])
def test_a_negative_vector_is_refused(file: str, vector: dict[str, Any]) -> None:
    run = vector.get("run") or FILES[file]["run"]
    seen: list[Frame] = []
    foreign = any(change["of"].startswith("another ") for change in vector["change"])
    other = of_another_run(run, vector["frame"]) if foreign else None

    def rewrite(frame: Frame) -> Frame:
        if frame.lane == "hello" or not is_meant(frame, vector["frame"]):
            return frame
        seen.append(frame)
        if len(seen) != vector["frame"].get("nth", 0) + 1:
            return frame
        return changed(vector, frame, other)

    ends = jobs.ends(run.removeprefix(OF_JOBS), rewrite) if run.startswith(OF_JOBS) else PROTOCOLS[run].ends(rewrite)
    assert len(seen) > vector["frame"].get("nth", 0), "no such frame"
    for party, (code, blamed) in vector["refused"].items():
        with fails(code) as caught:
            raise ends[party] or AssertionError(f"{party} went on")
        assert (caught.value.party, caught.value.reporter) == (blamed, None)
