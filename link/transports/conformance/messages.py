"""Message types of the checks' own, built without a .proto file."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from protos.v1 import common_pb2

_BYTES = descriptor_pb2.FieldDescriptorProto.TYPE_BYTES
_UINT64 = descriptor_pb2.FieldDescriptorProto.TYPE_UINT64


def _build() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="link/transports/conformance/messages.proto",
        package="comine.conformance",
        syntax="proto3",
        dependency=["protos/v1/common.proto"],
    )
    shapes = {
        "Note": [("number", _UINT64, common_pb2.PUBLIC), ("data", _BYTES, common_pb2.PUBLIC)],
        "Chunk": [("data", _BYTES, common_pb2.MASKED)],
        "Leak": [("value", _UINT64, common_pb2.OPENED)],
    }
    for name, fields in shapes.items():
        message = file.message_type.add(name=name)
        for number, (field, type_, kind) in enumerate(fields, 1):
            added = message.field.add(
                name=field, number=number, type=type_, label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL
            )
            added.options.Extensions[common_pb2.kind] = kind
    pool = descriptor_pool.Default()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"comine.conformance.{name}"))
        for name in shapes
    }


_classes = _build()
Note: Any = _classes["Note"]
Chunk: Any = _classes["Chunk"]
Leak: Any = _classes["Leak"]
