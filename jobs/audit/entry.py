"""The exact form of an audit log: lines and their chain, and the head that says how far a log goes.

A line is one JSON object with the keys `KEYS` in that order, no blanks, ASCII only, and a newline. Its signature is
over `ENTRY` ‖ the line's bytes up to `,"signature":`; `prev` is the SHA-256 of the line before, without its newline.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from link.files.json_text import read_json

FORMAT: Final = 1
KEYS: Final = ("seq", "time", "event", "fields", "prev", "certificate", "signature")
HEAD_KEYS: Final = ("seq", "time", "entry", "certificate", "signature")
ENTRY: Final = b"comine.audit.entry/1\0"
HEAD: Final = b"comine.audit.head/1\0"
START: Final = "0" * 64  # `prev` of the first line
_SIGNATURE: Final = b',"signature":'
_HEX: Final = re.compile(r"[0-9a-f]{64}")
_TIME: Final = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line.

    Attributes:
        seq: Its number, from 0.
        time: When it was written, in UTC.
        event: What happened; a name of `jobs.audit.catalogue.EVENTS`.
        fields: What is to be known of it.
        prev: SHA-256 of the line before, in hex.
        certificate: SHA-256 of the signer's certificate, in hex; an earlier line holds the certificate itself.
        signature: Over `signed`.
        signed: The bytes that are signed.
        digest: SHA-256 of the whole line, in hex.
    """

    seq: int
    time: dt.datetime
    event: str
    fields: Mapping[str, Any]
    prev: str
    certificate: str
    signature: bytes
    signed: bytes
    digest: str


@dataclass(frozen=True, slots=True)
class Head:
    """How far a log goes.

    Attributes:
        seq: Number of the last line.
        time: Its time.
        entry: SHA-256 of it, in hex.
        certificate: The signer's, in PEM form.
        signature: Over `signed`.
        signed: The bytes that are signed.
    """

    seq: int
    time: dt.datetime
    entry: str
    certificate: bytes
    signature: bytes
    signed: bytes


def unsigned(seq: int, time: dt.datetime, event: str, fields: Mapping[str, Any], prev: str, certificate: str) -> bytes:
    """The bytes of a new line that are to be signed."""
    return ENTRY + _open_end(KEYS, (seq, clock(time), event, fields, prev, certificate))


def unsigned_head(seq: int, time: dt.datetime, entry: str, certificate: bytes) -> bytes:
    """The bytes of a new head that are to be signed."""
    return HEAD + _open_end(HEAD_KEYS, (seq, clock(time), entry, certificate.decode()))


def line(signed: bytes, signature: bytes) -> bytes:
    """A line, or a head, without its newline."""
    body = signed.partition(b"\0")[2]
    return body + _SIGNATURE + _dumps(base64.b64encode(signature).decode()) + b"}"


def read(data: bytes) -> Entry:
    """The entry of one line, without its newline.

    Raises:
        ValueError: The line has another form; the words say where.
    """
    contents = _object(data, KEYS)
    seq, time, event, fields, prev, certificate, signature = contents.values()
    if type(seq) is not int or seq < 0:
        raise ValueError("its number is not one")
    if not isinstance(event, str) or not isinstance(fields, dict):
        raise ValueError("it names no event, or has no fields")
    for digest in (prev, certificate):
        _check_digest(digest)
    signed = ENTRY + data[: data.rindex(_SIGNATURE)]
    return Entry(seq, _time(time), event, fields, prev, certificate, _bytes(signature), signed, digest_of(data))


def read_head(data: bytes) -> Head:
    """The contents of a head file.

    Raises:
        ValueError: It has another form.
    """
    body = data.removesuffix(b"\n")
    if body == data:
        raise ValueError("it is not whole")
    seq, time, entry, certificate, signature = _object(body, HEAD_KEYS).values()
    if type(seq) is not int or seq < 0 or not isinstance(certificate, str):
        raise ValueError("its values have other types")
    _check_digest(entry)
    signed = HEAD + body[: body.rindex(_SIGNATURE)]
    return Head(seq, _time(time), entry, certificate.encode(), _bytes(signature), signed)


def digest_of(data: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


def clock(time: dt.datetime) -> str:
    """A time as it is written: UTC to the millisecond."""
    return f"{time.astimezone(dt.UTC):%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03d}Z"


def _open_end(keys: tuple[str, ...], values: tuple[Any, ...]) -> bytes:
    return _dumps(dict(zip(keys, values, strict=False)))[:-1]


def _dumps(contents: Any) -> bytes:
    return json.dumps(contents, separators=(",", ":"), allow_nan=False).encode("ascii")


def _object(data: bytes, keys: tuple[str, ...]) -> dict[str, Any]:
    """The object whose one canonical form `data` is."""
    try:
        contents = read_json(data)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    if not isinstance(contents, dict) or tuple(contents) != keys:
        raise ValueError(f"it does not have the keys {', '.join(keys)}")
    try:
        if _dumps(contents) != data:
            raise ValueError("it is not in canonical form")
    except RecursionError:
        raise ValueError("it is not in canonical form") from None
    return contents


def _check_digest(value: object) -> None:
    if not isinstance(value, str) or _HEX.fullmatch(value) is None:
        raise ValueError("a digest in it is not 64 hexadecimal digits")


def _time(value: object) -> dt.datetime:
    if not isinstance(value, str) or _TIME.fullmatch(value) is None:
        raise ValueError("its time is not one")
    return dt.datetime.fromisoformat(value)


def _bytes(value: object) -> bytes:
    if isinstance(value, str):
        raw = base64.b64decode(value, validate=True)
        if base64.b64encode(raw).decode() == value:
            return raw
    raise ValueError("its signature is not base64")
