"""Frequency oracles beside pure-ldp and multi-freq-ldpy, and servers with many reports."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import peak_mb_of, run_process
from benchmarks.settings import ROOT, Settings
from benchmarks.table import Cell, Table
from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.frequency_oracle import FrequencyOracle
from ldp.registry import oracle

SCRIPT = Path(__file__).parent.parent / "peers" / "local_oracles.py"
PEERS = {"pure-ldp": "pure-ldp", "multi-freq-ldpy": "multi-freq"}  # by their names in the heads of columns
EPSILON = 1.0
VALUES = 1024
USERS = 100_000
FUNCTIONS = 1024  # of sketches, as the script of the peers has them
SKETCHES = ("flh", "cms", "hcms")
NAMES = ("grr", "sue", "oue", "she", "the", "blh", "olh", "hr", "ss", *SKETCHES)
ZIPF = 1.2
# Peers take minutes, or gigabytes, for all users: they get as many, and times are scaled by the users.
FEWER = {"blh": 5_000, "olh": 5_000, **dict.fromkeys(("sue", "oue", "the", "she", "ss", "cms"), 20_000)}
TARGETS = {"olh": 300.0, "blh": 300.0, "sue": 40.0, "oue": 40.0, "she": 2.0}
OTHER_TARGET = 20.0
OLH_SERVER_USERS = 1_000_000
OLH_SERVER_TARGET_S = 0.4
MANY = 100_000_000
BATCH = 1 << 20


class Spent(NamedTuple):
    """Processor time in seconds, and the root mean squared error by that of theory."""

    client_s: float
    server_s: float
    error: float


def run(settings: Settings) -> list[Table]:
    """All tables."""
    return [_beside_peers(settings), _large_servers(settings)]


# -- beside peers -----------------------------------------------------------------------------------------------------
def _beside_peers(settings: Settings) -> Table:
    users, d = (1_000, 64) if settings.quick else (USERS, VALUES)
    table = Table(
        f"Frequency oracles: {users:,} users, {d:,} values, ε = {EPSILON:g}, Zipf {ZIPF}; CPU seconds of one core",
        (
            *("oracle", "bytes", "client s", "server s", "RMSE/theory"),
            *(
                f"{peer}: {column}"
                for peer in PEERS.values()
                for column in ("client s", "server s", "RMSE/theory", "×")
            ),
            "target ×",
        ),
        notes=[
            "× compares clients and server together; best of several runs of ours, one run of a peer",
            "multi-freq-ldpy clips its estimates at 0 and scales them, so its error is no measure of its mechanism",
            f"flh, cms and hcms have {FUNCTIONS:,} functions everywhere, cms and hcms 1,024 buckets",
        ],
    )
    if not settings.quick:
        by_users = {number: [n for n in NAMES if FEWER.get(n) == number] for number in sorted(set(FEWER.values()))}
        told = ", ".join(f"{number:,} ({', '.join(names)})" for number, names in by_users.items())
        table.notes.append(f"where they are slow, peers ran with fewer users, and their times are scaled: {told}")
    if settings.ldp_peers_python is None:
        table.notes.append("the peers are skipped; make bench-peers installs them")
    values = zipf(users, d)
    for name in NAMES:
        settings.tell(name)
        found = oracle(name, d, EPSILON, **({"functions": FUNCTIONS} if name in SKETCHES else {}))
        own = _own(found, values, settings.repeats)
        cells: list[Cell] = [name, found.report_bytes, *own]
        for peer in PEERS:
            theirs = _peer(settings, peer, found, values)
            if theirs is None:
                cells += [None] * 4
            else:
                cells += [*theirs, (theirs.client_s + theirs.server_s) / (own.client_s + own.server_s)]
        table.add(*cells, TARGETS.get(name, OTHER_TARGET))
    return table


def zipf(users: int, d: int) -> NDArray[np.int64]:
    """Values of users, drawn by a Zipf law."""
    weights = np.arange(1, d + 1) ** -ZIPF
    return np.random.default_rng(1).choice(d, users, p=weights / weights.sum())


def _own(found: FrequencyOracle, values: NDArray[np.int64], repeats: int) -> Spent:
    spent = []
    for _ in range(repeats):
        start = time.process_time()
        reports = found.privatise(values)
        middle = time.process_time()
        estimate = Aggregator(found).add(reports).estimate()
        end = time.process_time()
        errors = estimate.counts - np.bincount(values, minlength=found.domain.size)
        spent.append((middle - start, end - middle, float(np.sqrt(np.mean(np.square(errors))))))
    clients, servers, rmse = zip(*spent, strict=True)
    return Spent(min(clients), min(servers), rmse[0] / _theory(found, values))


def _theory(found: FrequencyOracle, values: NDArray[np.int64]) -> float:
    counts = np.bincount(values, minlength=found.domain.size).astype(np.float64)
    return float(np.sqrt(found.variance(counts, len(values)).mean()))


def _peer(settings: Settings, peer: str, found: FrequencyOracle, values: NDArray[np.int64]) -> Spent | None:
    if settings.ldp_peers_python is None:
        return None
    users = min(len(values), FEWER.get(found.name, len(values)))
    settings.tell(f"{found.name} in {peer}, {users:,} users")
    command: list[str | Path] = [settings.ldp_peers_python, "-W", "ignore", SCRIPT, peer, found.name]
    options = ["--users", str(users), "--values", str(found.domain.size), "--epsilon", str(found.epsilon)]
    try:
        finished = run_process([*command, *options])
    except RuntimeError as error:
        settings.tell(str(error))
        return None
    told = json.loads(finished.output.strip().splitlines()[-1])
    if "absent" in told:
        return None
    scale = len(values) / users
    theory = _theory(found, zipf(users, found.domain.size))
    return Spent(told["client_s"] * scale, told["server_s"] * scale, told["rmse"] / theory)


# -- many reports -----------------------------------------------------------------------------------------------------
def _large_servers(settings: Settings) -> Table:
    table = Table(
        f"Servers with many reports, {VALUES:,} values, ε = {EPSILON:g}",
        ("oracle", "reports", "CPU s of the server", "target s", "CPU s of the clients", "peak MB"),
        notes=[
            "each in a process of its own; the peak of memory includes Python and numpy, some 60 MB",
            "reports are made and added a million at a time, as they would arrive",
        ],
    )
    scale = 1000 if settings.quick else 1
    for name, reports, target in (
        ("olh", OLH_SERVER_USERS // scale, None if settings.quick else OLH_SERVER_TARGET_S),
        ("grr", MANY // scale, None),
        ("hr", MANY // scale, None),
    ):
        settings.tell(f"{reports:,} reports of {name}")
        told = _in_own_process(name, reports)
        table.add(name, reports, told["server_s"], target, told["client_s"], told["peak_mb"])
    return table


def _in_own_process(name: str, reports: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.privacy.ldp", name, str(reports), str(VALUES), str(EPSILON)]
    finished = run_process(command, cwd=ROOT)
    found: dict[str, float] = json.loads(finished.output.strip().splitlines()[-1])
    return found


def collect(name: str, number: int, d: int, epsilon: float) -> dict[str, float]:
    """Processor seconds of clients and of the server, for reports that come in batches, and the peak of memory."""
    found = oracle(name, d, epsilon)
    server, rng, values = Aggregator(found), Randomness.from_os(), zipf(min(BATCH, number), d)
    client_s = server_s = 0.0
    for start in range(0, number, BATCH):
        began = time.process_time()
        reports = found.privatise(values[: number - start], rng)
        middle = time.process_time()
        server.add(reports)
        client_s, server_s = client_s + middle - began, server_s + time.process_time() - middle
    began = time.process_time()
    server.estimate()
    server_s += time.process_time() - began
    return {"client_s": client_s, "server_s": server_s, "peak_mb": peak_mb_of(os.getpid())}


if __name__ == "__main__":
    _name, _number, _d, _epsilon = sys.argv[1:]
    print(json.dumps(collect(_name, int(_number), int(_d), float(_epsilon))))
