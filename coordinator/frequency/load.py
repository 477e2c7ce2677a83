"""A load on a collection: many simulated clients whose values are known, and estimates asked for meanwhile."""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from client.connection import Connection
from client.fleet import Fleet
from coordinator.demo.local_process import peak_bytes, process_at
from coordinator.frequency.service import FrequencyNode, check_open
from jobs.collections.estimates import COUNTS, Estimates, mechanism_of_round
from ldp.domain import Domain
from ldp.frequency_oracle import FrequencyOracle
from link.errors import ConfigurationError, UsageError
from link.runtime.process_executor import ProcessExecutor
from protos.v1.frequency_pb2 import Collection, FrequencyRequest

_MOST: Final = {"reports": 10**8, "batch": 10**6, "connections": 64}
_PAUSE_S: Final = 0.05  # between an estimate and the next question


@dataclass(frozen=True, slots=True)
class Load:
    """How much is sent.

    Attributes:
        reports: By as many clients.
        batch: Reports of a message.
        connections: Each from a process of its own.

    Raises:
        UsageError: One of them is not at least 1, or more than a machine can send.
    """

    reports: int = 1_000_000
    batch: int = 8192
    connections: int = 1

    def __post_init__(self) -> None:
        for option in ("reports", "batch", "connections"):
            least, most = 1, _MOST[option]
            if not least <= getattr(self, option) <= most:
                raise UsageError(f"--{option} is between {least} and {most:,}, not {getattr(self, option)}")


class Gateway(NamedTuple):
    """Who sends, and where to: plain values, which processes can hand on.

    Attributes:
        party: Whose node.
        address: HOST:PORT.
        ca: The authority's certificate.
        certificate: The gateway's.
        key: Its private key.
    """

    party: str
    address: str
    ca: Path
    certificate: Path
    key: Path


class Part(NamedTuple):
    """What one connection has to send.

    Attributes:
        gateway: Who sends, and where to.
        name: Of the collection.
        values: One client's each.
        batch: Reports of a message.
    """

    gateway: Gateway
    name: str
    values: NDArray[Any]
    batch: int


class Sent(NamedTuple):
    """What one connection did; times are those of the machine's monotonic clock."""

    counted: int
    refused: int
    sentences: tuple[str, ...]
    began: float
    ended: float


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What came of a load.

    Attributes:
        node: Whose.
        counted: Reports that the node acknowledged as counted.
        refused: Reports that it did not count.
        sentences: Why not.
        seconds: From the first report to the last acknowledgement.
        latencies: Seconds of each estimate of all values while reports came.
        peak_bytes: The most memory of the node until now; None where its process is not to be seen.
        rmse: Root of the mean squared error of the counts; None where the collection had reports before.
        theory_rmse: The same by the mechanism's exact variance at the true counts.
    """

    node: str
    counted: int
    refused: int
    sentences: tuple[str, ...]
    seconds: float
    latencies: NDArray[np.float64]
    peak_bytes: int | None
    rmse: float | None
    theory_rmse: float | None

    @property
    def rate(self) -> float:
        """Reports acknowledged a second."""
        return self.counted / self.seconds

    def latency(self, share: float) -> float | None:
        """A quantile of the latencies in seconds; None where no estimate was made."""
        return float(np.quantile(self.latencies, share)) if len(self.latencies) else None


def true_counts(reports: int, values: int) -> NDArray[np.int64]:
    """How many clients have each value: Zipf's law with exponent 1, rounded so that the sum is right."""
    weights = 1 / np.arange(1, values + 1)
    exact = reports * weights / weights.sum()
    counts: NDArray[np.int64] = np.floor(exact).astype(np.int64)
    counts[np.argsort(counts - exact, kind="stable")[: reports - int(counts.sum())]] += 1
    return counts


def send(part: Part) -> Sent:
    """Sends the report of one client for each value, in a process of its own."""
    (party, address, ca, certificate, key), name, values, batch = part
    with Connection.open(party, address, ca=ca, certificate=certificate, key=key) as connection:
        fleet = Fleet(len(values))
        connection.describe(name)  # so that the connection stands
        began = time.monotonic()
        done = fleet.report(connection, name, values, batch=batch)
        ended = time.monotonic()
    return Sent(done.acknowledged, len(values) - done.acknowledged, done.sentences, began, ended)


async def load_test(node: FrequencyNode, collection: Collection, gateway: Gateway, load: Load) -> Measured:
    """Sends reports and asks for estimates until all are acknowledged.

    Raises:
        ConfigurationError: The collection's values are not known, or it goes on in rounds that would end meanwhile.
        PolicyDenied: It is closed.
        ResourceError: A process that sends cannot be started, or was ended by the system.
        ComineError: As the first connection that failed has reported.
    """
    check_open(collection)
    spec, domain = node.spec(collection), await node.domain(collection)
    if domain is None or spec.window is not None:
        raise ConfigurationError(
            f"a load test needs a collection with a known domain and without [window], so that all reports are of one "
            f"round; '{collection.name}' is none"
        )
    fresh = collection.counters.counted == 0
    counts = true_counts(load.reports, domain.size)
    known = np.arange(domain.size) if domain.labels is None else np.array(domain.labels)
    values = np.repeat(known, counts)
    connections = min(load.connections, load.reports)
    parts = [Part(gateway, collection.name, values[place::connections], load.batch) for place in range(connections)]
    pool = ProcessExecutor(connections)
    sending = asyncio.ensure_future(pool.map(send, parts))
    try:
        latencies = await _latencies(node, collection.name, sending)
        sent = await sending
    finally:
        pool.close()
        sending.cancel()  # where an estimate has failed
        await asyncio.gather(sending, return_exceptions=True)
    process = process_at(gateway.address)
    began, ended = min(each.began for each in sent), max(each.ended for each in sent)
    counted = sum(each.counted for each in sent)
    errors: tuple[float | None, float | None] = (None, None)
    if fresh and counted == load.reports:
        errors = _errors(await node.estimate(FrequencyRequest(collection=collection.name)), domain, counts)
    return Measured(
        gateway.party,
        counted,
        sum(each.refused for each in sent),
        tuple(dict.fromkeys(sentence for each in sent for sentence in each.sentences)),
        ended - began,
        np.array([took for asked, took in latencies if began <= asked <= ended]),
        None if process is None else peak_bytes(process),
        *errors,
    )


async def _latencies(node: FrequencyNode, name: str, until: asyncio.Future[Any]) -> list[tuple[float, float]]:
    """When each estimate was asked for, and how long it took, until the future is done."""
    found: list[tuple[float, float]] = []
    while not until.done():
        asked = time.monotonic()
        try:
            await node.estimate(FrequencyRequest(collection=name))
        except ConfigurationError:  # there are no reports yet
            pass
        else:
            found.append((asked, time.monotonic() - asked))
        await asyncio.wait([until], timeout=_PAUSE_S)
    return found


def _errors(estimates: Estimates, domain: Domain, counts: NDArray[np.int64]) -> tuple[float | None, float | None]:
    mechanism = mechanism_of_round(estimates, domain)
    if estimates.kind != COUNTS or not isinstance(mechanism, FrequencyOracle):
        return None, None
    theory = mechanism.variance(counts.astype(np.float64), int(counts.sum()))
    return math.sqrt(np.square(estimates.counts - counts).mean()), math.sqrt(theory.mean())


def as_data(measured: Measured, name: str, load: Load) -> dict[str, Any]:
    """What was measured as JSON, `comine.frequency-load/1`."""
    return {
        "schema": "comine.frequency-load/1",
        "collection": name,
        "reports": load.reports,
        "batch": load.batch,
        "connections": load.connections,
        "counted": measured.counted,
        "refused": measured.refused,
        "seconds": measured.seconds,
        "reports_per_second": measured.rate,
        "estimates": len(measured.latencies),
        "latency_seconds": {
            name: measured.latency(share) for name, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0))
        },
        "node_peak_bytes": measured.peak_bytes,
        "rmse": measured.rmse,
        "theory_rmse": measured.theory_rmse,
    }


def figures(measured: Measured) -> list[tuple[str, str]]:
    """What was measured, for people."""

    def ms(seconds: float | None) -> str:
        return "none was made" if seconds is None else f"{1000 * seconds:.1f} ms"

    found = [
        ("reports counted", f"{measured.counted:,}"),
        ("reports refused", f"{measured.refused:,}"),
        ("acknowledged a second", f"{measured.rate:,.0f}"),
        ("estimates meanwhile", f"{len(measured.latencies):,}"),
        ("their latency, median", ms(measured.latency(0.5))),
        ("their latency, 99 %", ms(measured.latency(0.99))),
        ("their latency, longest", ms(measured.latency(1.0))),
    ]
    if measured.peak_bytes is not None:
        found.append(("the node's peak memory", f"{measured.peak_bytes / 1e6:,.0f} MB"))
    if measured.rmse is not None and measured.theory_rmse is not None:
        found.append(("error of a count", f"{measured.rmse:,.1f} (theory {measured.theory_rmse:,.1f})"))
    return found
