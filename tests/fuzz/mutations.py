"""Valid files and messages made wrong: in their bytes, and in the values that these stand for."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import strategies as st

# What parsers are known to stumble over.
PIECES: Sequence[bytes] = (
    *(
        b"",
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
        b'"\\ud800"',
        b"\\ud800",
        b"\r",
        b"\n",
        b"\r\n",
        b'"',
        b"'",
    ),
    *(
        b"[" * 100_000,
        b"{" * 50_000,
        b'{"a":' * 50_000,
        b"a." * 2_000,
        b"(" * 5_000,
        b"[[" * 5_000 + b"1" + b"]]" * 5_000,
    ),
    *(
        b"9" * 5_000,
        b"-1",
        b"0",
        b"1e999999999",
        b"1e-999999999",
        b"NaN",
        b"Infinity",
        b"1e99999999999999999999",
        b"true",
    ),
    *(
        b"18446744073709551616",
        b"340282366920938463463374607431768211456",
        b"x" * 70_000,
        "\u202e".encode(),
        b"\x1b[2J",
    ),
    *(
        b"2026-13-45",
        b"9999-12-31T23:59:59Z",
        b"-----BEGIN CERTIFICATE-----",
        b"PAR1",
        b"SQLite format 3\0",
        b"\x1f\x8b",
    ),
)


@st.composite
def mutated(draw: st.DrawFn, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds with up to four changes: of bits, bytes, places, or with a piece of another one put in."""
    data = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        end = draw(st.integers(at, min(len(data), at + 40)))
        match draw(st.integers(0, 6)):
            case 0 if data:
                at = min(at, len(data) - 1)
                data = data[:at] + bytes([data[at] ^ (1 << draw(st.integers(0, 7)))]) + data[at + 1 :]
            case 1:
                data = data[:at] + data[end:]
            case 2:
                data = data[:at]
            case 3:
                data = data[:end] + data[at:]
            case 4:
                data = data[:at] + draw(st.binary(max_size=8)) + data[end:]
            case 5:
                other = draw(st.sampled_from(seeds))
                data = data[:at] + other[draw(st.integers(0, len(other))) :]
            case _:
                data = data[:at] + draw(st.sampled_from(PIECES)) + data[end:]
    return data


@st.composite
def mutated_pem(draw: st.DrawFn, seeds: Sequence[bytes]) -> bytes:
    """Of PEM the text made wrong, or what it stands for."""
    if draw(st.integers(0, 3)) == 0:
        return draw(mutated(seeds))
    first, *lines = draw(st.sampled_from(seeds)).splitlines()
    body = base64.b64encode(draw(mutated([base64.b64decode(b"".join(lines[:-1]))])))
    return b"\n".join([first, *(body[at : at + 64] for at in range(0, len(body), 64)), lines[-1], b""])


@st.composite
def otherwise(draw: st.DrawFn, value: Any) -> Any:
    """A JSON value with something else at one place."""
    if isinstance(value, dict) and value and draw(st.integers(0, 9)):
        key = draw(st.sampled_from(sorted(value)))
        return value | {key: draw(otherwise(value[key]))}
    if isinstance(value, list) and value and draw(st.integers(0, 9)):
        at = draw(st.integers(0, len(value) - 1))
        return [*value[:at], draw(otherwise(value[at])), *value[at + 1 :]]
    return draw(STRANGE)


STRANGE = st.sampled_from(
    [
        *(None, True, -1, 0, 1, 2**31, 2**63, 2**64, 10**400, 1e308, -1e-308, "", "\0", "A" * 10_000, [], {}, [[]]),
        *("\u202e", "2026-13-01", "1e999999999", "-0", "1/0", "NaN", "a.b", ["a"] * 3, {"a": 1}, "\ud800"),
    ]
)

_INTEGERS = {
    FieldDescriptor.TYPE_INT32: st.integers(-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_INT64: st.integers(-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_UINT32: st.integers(0, 2**32 - 1) | st.sampled_from([0, 1, 2**31, 2**32 - 1]),
    FieldDescriptor.TYPE_UINT64: st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2**63, 2**64 - 1]),
    FieldDescriptor.TYPE_SINT64: st.integers(-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_ENUM: st.integers(0, 100),
}


@st.composite
def changed(draw: st.DrawFn, message: Message) -> Message:
    """A message with up to three of its fields, at any depth, changed: a valid one of its type, but for its sense."""
    copy = type(message)()
    copy.CopyFrom(message)
    for _ in range(draw(st.integers(1, 3))):
        _change(draw, copy)
    return copy


def _change(draw: st.DrawFn, message: Message) -> None:
    fields = list(message.DESCRIPTOR.fields)
    if not fields:
        return
    field = draw(st.sampled_from(fields))
    if draw(st.integers(0, 7)) == 0:
        message.ClearField(field.name)
        return
    if field.is_repeated:
        _change_list(draw, message, field)
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        _change(draw, getattr(message, field.name))
    else:
        setattr(message, field.name, draw(_scalar(field, getattr(message, field.name))))


def _change_list(draw: st.DrawFn, message: Message, field: FieldDescriptor) -> None:
    values = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        values.clear()
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        _change(draw, values.add() if not values or draw(st.booleans()) else draw(st.sampled_from(list(values))))
    else:
        values.append(draw(_scalar(field, values[0] if values else None)))


def _scalar(field: FieldDescriptor, value: Any) -> st.SearchStrategy[Any]:
    if field.type in _INTEGERS:
        return _INTEGERS[field.type]
    if field.type == FieldDescriptor.TYPE_BOOL:
        return st.booleans()
    if field.type in (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT):
        return st.floats()
    if field.type == FieldDescriptor.TYPE_STRING:
        texts = st.text(st.characters(codec="utf-8"), max_size=20)
        strange = ["", "\0", "north", "a" * 5_000, "../../etc", "'; DROP TABLE jobs; --", "[" * 50_000, '{"a":' * 9_000]
        return texts | st.sampled_from([*strange, '"\\ud800"', "NaN", "9" * 5_000, "1e999999999"])
    assert field.type == FieldDescriptor.TYPE_BYTES
    whole = mutated([value]) if value else st.binary(max_size=64)
    return whole | st.sampled_from(
        [bytes(32), bytes(16), struct.pack("<Q", 2**64 - 1), b"[" * 60_000, b'"\xed\xa0\x80"']
    )
