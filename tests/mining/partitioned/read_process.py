"""`python read_process.py TABLE SHORT`: reads a table; prints by how many bytes its resident memory grew at the most.

A short table of the same format is read before, so that all modules are in memory. Memory is taken as nodes take it:
Arrow's own allocator keeps what it frees for a while, more or less of it by machine.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mining.data.loading import load_table
from party.node.memory import return_freed_arrays


def status(field: str) -> int:
    """Bytes that the system states of this process."""
    found = re.search(rf"{field}:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def main() -> None:
    return_freed_arrays()
    path, short = map(Path, sys.argv[1:])
    load_table(short, short.suffix[1:], id_columns=["id"])
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = status("VmRSS")
    table = load_table(path, path.suffix[1:], id_columns=["id"])
    print(status("VmHWM") - before if table.n_rows else 0)


if __name__ == "__main__":
    main()
