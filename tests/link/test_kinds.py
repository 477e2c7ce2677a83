"""Every field that travels between parties says what it shows."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import pytest

import protos.v1
from protos.v1 import common_pb2

ENVELOPES = {"comine.v1.Frame", "comine.v1.Resume", "comine.v1.Acknowledge", "comine.v1.Envelope"}


def _files() -> list[Any]:
    names = [m.name for m in pkgutil.iter_modules(protos.v1.__path__) if m.name.endswith("_pb2")]
    return [importlib.import_module(f"protos.v1.{name}").DESCRIPTOR for name in names]


def _between_parties() -> list[Any]:
    """All message types but the envelopes of the link itself, the files of other services and what those import."""
    others = [file for file in _files() if any(name != "Link" for name in file.services_by_name)]
    apart = {file.name for other in others for file in (other, *other.dependencies)}
    messages = [m for file in _files() if file.name not in apart for m in file.message_types_by_name.values()]
    return [m for m in messages if m.full_name not in ENVELOPES]


def test_there_is_something_to_look_at():
    assert {"comine.v1.Hello", "comine.v1.Opening", "comine.v1.SignedReceipt"} <= {
        m.full_name for m in _between_parties()
    }


@pytest.mark.parametrize("message", _between_parties(), ids=lambda m: m.full_name)
def test_every_field_has_a_kind(message):
    for field in message.fields:
        if field.message_type is None:
            assert field.GetOptions().Extensions[common_pb2.kind] != common_pb2.KIND_UNSPECIFIED, field.full_name


def test_openings_alone_open():
    opened = {
        m.full_name
        for m in _between_parties()
        if any(f.GetOptions().Extensions[common_pb2.kind] == common_pb2.OPENED for f in m.fields)
    }
    assert opened == {"comine.v1.Opening"}
