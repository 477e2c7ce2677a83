#!/usr/bin/env bash
# Generates the protobuf modules beside their .proto files. A test checks that the committed ones are fresh.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
out=${1:-.}
PATH="$(cd "$(dirname "$python")" && pwd):$PATH" "$python" -m grpc_tools.protoc -I . \
  --python_out="$out" --mypy_out="quiet:$out" --grpc_python_out="$out" --mypy_grpc_out="quiet:$out" protos/v1/*.proto
# Files without a service get an empty gRPC module from the generator; they would only be noise.
for stub in "$out"/protos/v1/*_pb2_grpc.py; do
  grep -q '^class .*Stub' "$stub" || rm -f "$stub" "${stub}i"
done
