"""Benchmarks beside named peers measured in the same run: `python -m benchmarks --help`."""

import os

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # read when grpc is first imported
