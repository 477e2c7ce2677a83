"""What a node counts and measures.

Names follow Prometheus, with base units, and OpenTelemetry's for calls. Labels are `LABELS` and no others, and their
values come from short lists: members of the federation, tasks, methods and error codes. So no metric can name an item,
an id or a value, nor grow with what callers send.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from link.costs import Costs
from link.errors import ComineError, PeerError
from link.pki.identity import Role
from party.node.interceptors import OK

LABELS: Final = ("peer", "task", "step", "code")
CLIENTS: Final = "clients"  # all of them together, who may be many
OTHERS: Final = "others"
MOST_STEPS: Final = 64  # of all tasks, of those of others, too; what comes later counts as `OTHERS`
_NUMBER: Final = re.compile(r"\d+")
_CALL_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600)
_JOB_S: Final = (0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14_400, 86_400)


@dataclass(frozen=True, slots=True)
class State:
    """What is asked of the node whenever the metrics are read, in a thread of its own.

    Attributes:
        running: Jobs that run.
        waiting: Jobs that wait for their turn.
        undecided: Proposals that await a decision.
        held: Jobs whose results await their release.
        certificate_ends: Unix seconds.
        disk_free: Bytes of the state folder's disk.
        budget_used: The largest share of a limit on jobs that is used up, of all datasets.
    """

    running: Callable[[], float]
    waiting: Callable[[], float]
    undecided: Callable[[], float]
    held: Callable[[], float]
    certificate_ends: Callable[[], float]
    disk_free: Callable[[], float]
    budget_used: Callable[[], float]


class Metrics:
    """The metrics of one node; all methods may be called from any thread.

    Attributes:
        registry: Where they are read.
    """

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._calls = Histogram(
            "rpc_server_call_duration_seconds",
            "Calls of coordinators, clients and peers, by method and outcome.",
            ("peer", "step", "code"),
            buckets=_CALL_S,
            registry=registry,
        )
        self._jobs = Histogram(
            "comine_job_duration_seconds",
            "Joint jobs that have ended, by outcome; 0 for those that never began.",
            ("task", "code"),
            buckets=_JOB_S,
            registry=registry,
        )
        self._steps = Histogram(
            "comine_step_duration_seconds",
            "Steps of joint jobs, as their progress names them.",
            ("task", "step"),
            buckets=_JOB_S,
            registry=registry,
        )
        self._known: set[tuple[str, str]] = set()
        self._sent = Counter("comine_job_sent_bytes", "Bytes sent to peers in jobs.", ("task",), registry=registry)
        self._received = Counter(
            "comine_job_received_bytes", "Bytes received from peers in jobs.", ("task",), registry=registry
        )
        self._lost = Counter(
            "comine_peer_lost",
            "Jobs that have ended because a peer was not reached.",
            ("peer", "code"),
            registry=registry,
        )
        self._called = Gauge(
            "comine_peer_last_call_timestamp_seconds", "When a member last called.", ("peer",), registry=registry
        )

        self._pushed = Counter(
            "comine_push", "Notifications of browsers, by what has become of them.", ("code",), registry=registry
        )

    def show(self, state: State) -> None:
        """Shows the node's state from now on."""
        for name, help_, read in (
            ("comine_jobs_running", "Jobs that run.", state.running),
            ("comine_jobs_waiting", "Jobs that wait for their turn.", state.waiting),
            ("comine_jobs_undecided", "Proposals that await a decision.", state.undecided),
            ("comine_jobs_held", "Jobs whose results await their release.", state.held),
            ("comine_certificate_expiry_timestamp_seconds", "End of the node's certificate.", state.certificate_ends),
            ("comine_state_free_bytes", "Free bytes on the disk of the state folder.", state.disk_free),
            ("comine_budget_used_ratio", "Largest share of a limit on jobs that is used up.", state.budget_used),
        ):
            Gauge(name, help_, registry=self.registry).set_function(read)

    def called(self, role: Role, name: str) -> None:
        """A member with a good certificate has called."""
        self._called.labels(CLIENTS if role == "client" else name).set(time.time())

    def pushed(self, code: str, number: int) -> None:
        """So many notifications of browsers have this outcome."""
        self._pushed.labels(code).inc(number)

    def answered(self, role: Role | None, name: str, method: str, code: str, seconds: float) -> None:
        """A call is over.

        Args:
            role: The caller's; None where its certificate names nobody.
            name: The caller's.
            method: One of the node's.
            code: Of the error, or `OK`.
            seconds: How long it took.
        """
        peer = "" if role is None else CLIENTS if role == "client" else name
        self._calls.labels(peer, method, code).observe(seconds)

    def stepped(self, task: str, step: str, seconds: float) -> None:
        """A step of a job is over.

        Args:
            task: The job's.
            step: As its progress names it; numbers in it, such as the length of itemsets, are left out.
            seconds: How long it took.
        """
        step = _NUMBER.sub("N", step)
        if (task, step) not in self._known:
            if len(self._known) >= MOST_STEPS:
                step = OTHERS
            self._known.add((task, step))
        self._steps.labels(task, step).observe(seconds)

    def ended(self, task: str, error: ComineError | None, costs: Costs) -> None:
        """A job has ended.

        Args:
            task: What it was to do.
            error: Why it ended early; None where it succeeded.
            costs: What it has cost.
        """
        self._jobs.labels(task, OK if error is None else error.code).observe(costs.seconds)
        self._sent.labels(task).inc(costs.bytes_sent)
        self._received.labels(task).inc(costs.bytes_received)
        if isinstance(error, PeerError) and error.party is not None:
            self._lost.labels(error.party, error.code).inc()
