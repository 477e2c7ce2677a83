"""Benchmarks beside named peers measured in the same run: `python -m benchmarks --help`."""
