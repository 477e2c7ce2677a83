"""Clocks of functions and processes, and the memory of a running process."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Finished:
    """A process that has ended well.

    Attributes:
        seconds: Wall time from start to end.
        output: Its standard output.
    """

    seconds: float
    output: str


def best(function: Callable[[], object], repeats: int) -> float:
    """Seconds of the fastest of some runs: the one that other work on the machine disturbed least."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def run_process(
    command: Sequence[str | Path], *, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> Finished:
    """Runs a process to its end.

    Raises:
        RuntimeError: It ended with another exit code than 0; the message holds its last words.
    """
    start = time.perf_counter()
    process = subprocess.Popen(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    output, errors = process.communicate()
    seconds = time.perf_counter() - start
    if process.returncode:
        last = errors.strip().splitlines()[-1:] or ["no message"]
        raise RuntimeError(f"{' '.join(map(str, command[:4]))} … ended with {process.returncode}: {last[0]}")
    return Finished(seconds, output)


def peak_mb_of(pid: int) -> float:
    """Peak resident memory of a running process, in megabytes (Linux)."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    if found is None:
        raise RuntimeError(f"/proc/{pid}/status does not tell the peak of memory")
    return int(found[1]) * 1024 / 1e6


def core_seconds_of(pid: int) -> float:
    """Seconds of all cores that a running process has used, with its children that have ended (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))
