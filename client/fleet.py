"""Many clients at once: behind a gateway that collects what devices cannot send themselves, or simulated.

The operator of a fleet sees its clients' values and secrets; the service does not.
What a fleet knows is in memory only: a process that is started again begins new clients, with new pseudonyms. Clients
that are known by ids (`Fleet.of`) have the same pseudonyms and coins in every process, and a record on the disk of what
they have reported and spent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from client.budget import Budget
from client.connection import IN_FLIGHT, Connection
from client.description import Description, Round, outruns
from client.fleet_state.coins import Clients, FleetCoins, digests
from client.fleet_state.ledger import FleetLedger, unit_of
from client.fleet_state.memo import FleetMemo, keeps_answers
from client.fleet_state.past import Before, FleetPast
from client.fleet_state.record import Leaving
from client.fleet_state.sliding import FleetSliding
from client.gateway import GatewaySecret
from client.joining import first_steps
from client.labels import domain_of, fetched
from client.outcome import reason
from client.pseudonym import PSEUDONYM_BYTES, SECRET_BYTES, pseudonyms
from crypto.primitives.randomness import KEY_BYTES, Randomness
from ldp.domain import Domain
from ldp.mechanism import Mechanism
from ldp.reports import Reports
from link.errors import ConfigurationError, InputDataError, MalformedMessage
from protos.v1.frequency_pb2 import COUNTED, DUPLICATE, EARLY, LATE, BatchReceipt, ReportBatch

BATCH: Final = 8192
MAX_BATCH_BYTES: Final = 4_000_000  # services take 4 MiB
_STATUSES: Final = 256  # that fit a byte
_TAKEN: Final = (COUNTED, DUPLICATE, LATE, EARLY)  # or counted apart from those that are refused
_UNKNOWN: Final = -1  # before a client joins
_KEPT_PERIODS: Final = 16  # of which it is remembered who has reported; they only go on


@dataclass(frozen=True, slots=True)
class FleetDelivery:
    """What became of the reports of a fleet.

    Attributes:
        round: In which they were made; None where none was open, or they are from earlier.
        counted: Reports that the service took.
        duplicate: Those that it had taken before: the receipt of an earlier try was lost.
        late: Those that came after the end of their round.
        early: Those that came before its beginning, by the service's clock.
        refused: Those that it does not take for another reason.
        not_selected: Clients who took no part by their own coin, or wait since they have just joined a stream.
        already: Clients who had reported in the period.
        changed: Clients who had reported something else in the period, in this round or another; nothing was sent.
        over_budget: Clients whose budget or ledger did not allow a report.
        sentences: Why the service does not take reports.
    """

    round: int | None = None
    counted: int = 0
    duplicate: int = 0
    late: int = 0
    early: int = 0
    refused: int = 0
    not_selected: int = 0
    already: int = 0
    changed: int = 0
    over_budget: int = 0
    sentences: tuple[str, ...] = ()

    @property
    def acknowledged(self) -> int:
        """Reports that the service has, now or since an earlier try."""
        return self.counted + self.duplicate


class Fleet:
    """Clients 0 … n − 1, each with a secret, kept answers and ledgers of its own.

    Args:
        clients: n.
        seed: Makes all draws repeatable, for simulations ONLY; by default the operating system's randomness.
        budget: The limits of each client; none by default, as fits simulations.
        clock: The time in Unix seconds.
    """

    def __init__(
        self,
        clients: int,
        *,
        seed: int | bytes | None = None,
        budget: Budget | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if clients < 1:
            raise ConfigurationError("a fleet has one client at least")
        self.clients = clients
        rng = Randomness.from_os() if seed is None else Randomness.from_seed(seed).derive("fleet of clients")
        secrets = rng.derive("secrets").bytes(SECRET_BYTES * clients)
        self._secrets = np.frombuffer(secrets, np.uint8).reshape(clients, SECRET_BYTES)
        self._coins = FleetCoins(rng.derive("coins").bytes(KEY_BYTES), self._secrets)
        self._budget, self._clock, self._latest = budget, clock, 0.0
        self._spent = (
            None if budget is None else FleetLedger(clients, budget.span_s, budget.epsilon, unit_of(budget.epsilon))
        )
        self._steps: dict[bytes, FleetLedger] = {}
        self._ahead: dict[bytes, float] = {}
        self._first: dict[bytes, NDArray[np.int64]] = {}
        self._memos: dict[tuple[bytes, bytes], FleetMemo] = {}
        self._sliding: dict[bytes, FleetSliding] = {}
        self._reported: dict[tuple[bytes, int], NDArray[np.bool_]] = {}
        self._drawn: dict[tuple[bytes, int], NDArray[np.int64]] = {}
        self._domains: dict[bytes, Domain] = {}
        self._outbox: list[ReportBatch] = []
        self._past: FleetPast | None = None

    @classmethod
    def of(
        cls,
        ids: Sequence[str],
        gateway: GatewaySecret,
        *,
        budget: Budget | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """The clients of a gateway that it knows by ids: in every process, an id has the same pseudonyms.

        Where a client's value is reported again in a round, the very same report is sent, in whatever batch and by
        whichever process. Another value of the client in the period, or by another mechanism, would reveal more of it,
        and is not sent. What clients have reported and spent is in the secret's record before it leaves.

        Args:
            ids: Of clients 0 … n − 1, none twice.
            gateway: The gateway's secret. One from no file has no record, and is for simulations ONLY: what clients
                have reported is forgotten with the fleet.
            budget: The limits of each client; by default those of a device, `Budget()`, and none where there is no
                record.
            clock: The time in Unix seconds.

        Raises:
            InputDataError: An id comes twice.
        """
        limits = Budget() if budget is None and gateway.record is not None else budget
        fleet = cls(len(ids), budget=limits, clock=clock)
        fleet._secrets = gateway.clients(ids)
        fleet._coins = FleetCoins(gateway.secret, fleet._secrets)
        if gateway.record is not None:
            fleet._past = FleetPast(gateway.record, fleet._secrets)
        return fleet

    def report(
        self,
        connection: Connection,
        name: str,
        values: ArrayLike,
        *,
        who: Clients | None = None,
        batch: int = BATCH,
        in_flight: int = IN_FLIGHT,
        tell: Callable[[int], None] | None = None,
    ) -> FleetDelivery:
        """Perturbs and sends one value of each client that has not reported in this period.

        Where this raises, what was perturbed and has no receipt is kept for `deliver`, and those clients whose values
        were not perturbed yet may report again.

        Args:
            connection: To the node, as a gateway of the collection.
            name: The collection's.
            values: Shape (n,): the clients' values.
            who: The clients whose they are; by default all.
            batch: Reports in a batch at most; long reports go in smaller ones.
            in_flight: Batches on their way at once.
            tell: Called with how many reports have a receipt, whenever there are more.

        Raises:
            InputDataError: There is not one value for each client, or one is outside the domain.
            MalformedMessage: The node claims a step of continual release before its time.
            ConfigurationError: The record of clients with ids is gone or damaged.
            ComineError: The node cannot be reached, or broke the rules.
        """
        with self._recalled():
            return self._report(connection, name, values, who, batch, in_flight, tell)

    def _report(
        self,
        connection: Connection,
        name: str,
        values: ArrayLike,
        who: Clients | None,
        batch: int,
        in_flight: int,
        tell: Callable[[int], None] | None,
    ) -> FleetDelivery:
        clients = np.arange(self.clients) if who is None else np.asarray(who, dtype=np.int64)
        given = _array(values)
        if len(np.unique(clients)) != len(clients) or (
            len(clients) and not 0 <= clients.min() <= clients.max() < self.clients
        ):
            raise InputDataError(f"clients are numbered 0 to {self.clients - 1:,}, and each reports one value")
        if given.shape != clients.shape:
            raise InputDataError(f"{len(clients):,} clients need a value each, and {given.size:,} values were given")
        found = Description.read(connection.describe(name).SerializeToString(), connection.party, name)
        asked = found.open_round(self._now())
        if asked is None:
            return FleetDelivery()
        mechanism = found.mechanism(asked, self._domain(connection, found))
        self._check_step(found, asked)
        reported = self._reported_in(found, asked)
        fresh = np.flatnonzero(~reported[clients])
        joined = self._joined(found, asked, clients[fresh])
        selected = fresh[self._selected(found, asked)[clients[fresh]] & joined]
        memo = self._memo(found, mechanism)
        task = _Task(found, asked, mechanism, memo, self._slides(found, memo), reported)
        before = self._before(task, clients[selected], given[selected])
        new = selected[~(before.again | before.changed)]
        allowed = new[self._allowed(task, clients[new], given[new])]
        # What a client with answers that wait has reported depends on what it had to report then: it is not made again.
        again = selected[before.again] if task.sliding is None else selected[:0]
        going = np.union1d(allowed, again)
        batches = self._batches(task, clients[going], given[going], np.isin(going, allowed), batch)
        return replace(
            self._send(connection, batches, in_flight, tell),
            round=asked.number,
            already=len(clients) - len(fresh) + int(np.count_nonzero(before.again)) - len(again),
            changed=int(np.count_nonzero(before.changed)),
            not_selected=len(fresh) - len(selected),
            over_budget=len(new) - len(allowed),
        )

    def deliver(self, connection: Connection, in_flight: int = IN_FLIGHT) -> FleetDelivery:
        """Sends again what had no receipt, bit for bit.

        Raises:
            ComineError: The node cannot be reached, or broke the rules.
        """
        waiting, self._outbox = self._outbox, []
        return self._send(connection, iter(waiting), in_flight, None)

    @property
    def waiting(self) -> int:
        """Reports that have no receipt."""
        return sum(len(each.pseudonyms) for each in self._outbox) // PSEUDONYM_BYTES

    def _batches(
        self, task: _Task, clients: Clients, values: NDArray[Any], new: NDArray[np.bool_], size: int
    ) -> Iterator[ReportBatch]:
        """Perturbs batch by batch, each when there is room for it on the way; what is not new spends nothing."""
        size = min(size, max(1, MAX_BATCH_BYTES // (task.mechanism.report_bytes + PSEUDONYM_BYTES)))
        for start in range(0, len(clients), size):
            those = clients[start : start + size]
            reports, charged = self._perturbed(task, those, values[start : start + size])
            charge, fresh = task.charge, those[new[start : start + size]]
            charged = np.intersect1d(charged, fresh)
            if self._past is not None:
                leaving = Leaving(task.found.id, task.asked.period, task.asked.step, self._latest)
                self._past.put(leaving, charge, charged, np.setdiff1d(fresh, charged))
            if task.found.ledger is not None:
                self._steps[task.found.id].spend(charged, charge)
            if self._spent is not None:
                self._spent.spend(charged, charge)
            task.reported[those] = True
            names = pseudonyms(self._secrets[those], task.found.id, task.asked.period)
            yield ReportBatch(
                collection=task.found.name,
                round=task.asked.number,
                pseudonyms=names.tobytes(),
                reports=reports.to_bytes(),
            )

    def _perturbed(self, task: _Task, clients: Clients, values: NDArray[Any]) -> tuple[Reports, Clients]:
        """The reports of some clients, and those of them who spend something by it."""
        mechanism, memo = task.mechanism, task.memo
        if memo is None:
            terms = ("reports", task.found.id, task.asked.number, mechanism.fingerprint)
            return mechanism.privatise(values, self._coins.streams(clients, *terms, about=digests(values))), clients
        keys = memo.keys(clients, values)
        if task.sliding is not None:
            keys = task.sliding.turn(task.asked.step, clients, keys, self._within_budget(task, clients))
        new = clients[memo.is_new(keys)]
        fields = zip(memo.report(keys, task.asked.number), mechanism.layout, strict=True)
        return Reports(mechanism.fingerprint, tuple(np.asarray(each, part.dtype) for each, part in fields)), new

    def _send(
        self, connection: Connection, batches: Iterator[ReportBatch], in_flight: int, tell: Callable[[int], None] | None
    ) -> FleetDelivery:
        sent: list[ReportBatch | None] = []

        def remembered() -> Iterator[ReportBatch]:
            for each in batches:
                sent.append(each)
                yield each

        counts = np.zeros(_STATUSES, dtype=np.int64)
        sentences: dict[str, None] = {}
        try:
            for receipt in connection.submit(remembered(), in_flight):
                done = sent[receipt.sequence]
                assert done is not None  # one receipt for each
                sent[receipt.sequence] = None
                ended = _counts(receipt, len(done.pseudonyms) // PSEUDONYM_BYTES)
                counts += ended
                for status in np.flatnonzero(ended).tolist():
                    if receipt.message or status not in _TAKEN:
                        sentences[reason(status, receipt.message)] = None
                if tell is not None:
                    tell(int(counts.sum()))
        finally:
            self._outbox += [each for each in sent if each is not None]
        counted, duplicate, late, early = (int(counts[status]) for status in (COUNTED, DUPLICATE, LATE, EARLY))
        refused = int(counts.sum()) - counted - duplicate - late - early
        return FleetDelivery(None, counted, duplicate, late, early, refused, sentences=tuple(sentences))

    # -- what was before ----------------------------------------------------------------------------------------------
    @contextmanager
    def _recalled(self) -> Generator[None]:
        """With the record of clients that have one, and ledgers that know what other processes have written there."""
        if self._past is None:
            yield
            return
        with self._past.held() as others_have_reported:
            if others_have_reported:
                self._steps.clear()
                self._sliding.clear()
                if self._budget is not None:
                    budget = self._budget
                    empty = FleetLedger(self.clients, budget.span_s, budget.epsilon, unit_of(budget.epsilon))
                    self._spent = self._past.recall(empty, after=self._now() - budget.span_s)
            yield

    def _before(self, task: _Task, clients: Clients, values: NDArray[Any]) -> Before:
        if self._past is None:
            return Before(*np.zeros((2, len(clients)), np.bool_))
        terms = task.asked.number.to_bytes(8, "big") + task.mechanism.fingerprint
        return self._past.compare(task.found.id, task.asked.period, terms, clients, values)

    # -- who takes part -----------------------------------------------------------------------------------------------
    def _now(self) -> float:
        """Never back, so that budgets are not forgotten."""
        self._latest = max(self._latest, self._clock())
        return self._latest

    def _check_step(self, found: Description, asked: Round) -> None:
        """Refuses a step of continual release that is claimed too soon, as a device does (`FrequencyClient.report`)."""
        ahead = found.ahead(asked, self._latest)
        if ahead is None:
            return
        least = self._ahead[found.id] = min(ahead, self._ahead.get(found.id, ahead))
        if self._past is not None:
            least = self._past.record.ahead(found.id, least)
        if found.too_early(asked) or outruns(ahead, least):
            raise MalformedMessage(
                f"{found.node} claims a step of '{found.name}' that has not begun yet", party=found.node
            )

    def _reported_in(self, found: Description, asked: Round) -> NDArray[np.bool_]:
        key = (found.id, asked.period)
        latest = max((period for which, period in self._reported if which == found.id), default=asked.period)
        if self._past is not None:
            latest = max(latest, self._past.record.latest(found.id) or 0)
            self._past.record.forget(found.id, latest - _KEPT_PERIODS, self._latest)
        if asked.period <= latest - _KEPT_PERIODS:
            return np.ones(self.clients, dtype=np.bool_)  # nobody remembers, so nobody reports
        for old in [each for each in self._reported if each[0] == found.id and each[1] <= latest - _KEPT_PERIODS]:
            del self._reported[old]
            self._drawn.pop(old, None)
        return self._reported.setdefault(key, np.zeros(self.clients, dtype=np.bool_))

    def _selected(self, found: Description, asked: Round) -> NDArray[np.bool_]:
        """Which clients take part in the round, drawn once for a period, whatever their values are."""
        key = (found.id, asked.period)
        rng = self._coins.streams(self._coins.everybody, "part", found.id, asked.period)
        if found.search is not None:
            if key not in self._drawn:
                self._drawn[key] = found.search.assign(self.clients, rng)
            return np.asarray(self._drawn[key] == asked.number % found.search.groups)
        if asked.share == 1:
            return np.ones(self.clients, dtype=np.bool_)
        if key not in self._drawn:
            self._drawn[key] = rng.integers(asked.share.denominator, self.clients).astype(np.int64)
        return np.asarray(self._drawn[key] < asked.share.numerator)

    def _joined(self, found: Description, asked: Round, clients: Clients) -> NDArray[np.bool_]:
        """Whose wait is over, where who joins a running stream waits before the first report; shape of `clients`."""
        if found.protected is None or not found.divides_clients:
            return np.ones(len(clients), dtype=np.bool_)
        first = self._first.setdefault(found.id, np.full(self.clients, _UNKNOWN))
        new = clients[first[clients] == _UNKNOWN]
        rng = self._coins.streams(new, "joining", found.id, asked.step)
        first[new] = first_steps(asked.step, found.protected, len(new), rng)
        return np.asarray(first[clients] <= asked.step)

    def _allowed(self, task: _Task, clients: Clients, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Whose ledger of the collection, and whose budget, leaves room for a report."""
        found, asked, charge = task.found, task.asked, task.charge
        allowed = np.ones(len(clients), dtype=np.bool_)
        if found.ledger is not None:
            if found.id not in self._steps:
                self._steps[found.id] = self._with_steps(found, FleetLedger(self.clients, *found.ledger))
            allowed &= self._steps[found.id].allows(asked.step, clients, charge)
        within = self._within_budget(task, clients)
        if task.memo is not None:
            keys = task.memo.keys(clients, values)
            if task.sliding is not None:
                within = task.sliding.may_report(asked.step, clients, keys, within)
            else:
                within |= ~task.memo.is_new(keys)
        return allowed & within

    def _with_steps(self, found: Description, empty: FleetLedger) -> FleetLedger:
        """A ledger of steps with what its clients have spent in other processes."""
        return empty if self._past is None else self._past.recall(empty, collection=found.id)

    def _within_budget(self, task: _Task, clients: Clients) -> NDArray[np.bool_]:
        """Whose budget leaves room for a report that is charged; shape of `clients`."""
        if self._budget is None or self._spent is None:
            return np.ones(len(clients), dtype=np.bool_)
        if self._budget.refusal(task.mechanism.name, task.charge, Fraction(0)) is not None:
            return np.zeros(len(clients), dtype=np.bool_)
        return self._spent.allows(self._latest, clients, task.charge)

    def _memo(self, found: Description, mechanism: Mechanism[Any]) -> FleetMemo | None:
        if not keeps_answers(mechanism):
            return None
        key = (found.id, mechanism.fingerprint)
        if key not in self._memos:
            self._memos[key] = FleetMemo(mechanism, self._coins, found.id)
        return self._memos[key]

    def _slides(self, found: Description, memo: FleetMemo | None) -> FleetSliding | None:
        if found.memo is None or memo is None:
            return None
        if found.id not in self._sliding:
            self._sliding[found.id] = FleetSliding(self.clients, memo, found.memo)
            self._with_steps(found, self._sliding[found.id].ledger)
        return self._sliding[found.id]

    def _domain(self, connection: Connection, found: Description) -> Domain | None:
        digest = found.domain_digest
        if digest and digest not in self._domains:
            self._domains[digest] = domain_of(fetched(connection, found), found)
        return self._domains.get(digest)


@dataclass(frozen=True, slots=True)
class _Task:
    """What a fleet reports to.

    Attributes:
        found: The collection.
        asked: Its round.
        mechanism: Of the round.
        memo: The clients' kept answers; None where nothing is kept.
        sliding: Which of them a client reports, where new ones wait; else None.
        reported: Shape (all clients,): who has reported in the period.
    """

    found: Description
    asked: Round
    mechanism: Mechanism[Any]
    memo: FleetMemo | None
    sliding: FleetSliding | None
    reported: NDArray[np.bool_]

    @property
    def charge(self) -> Fraction:
        """What a report spends that is not based on an answer that was kept before."""
        return Fraction(self.mechanism.epsilon) if self.memo is None else self.memo.charge


def _array(values: ArrayLike) -> NDArray[Any]:
    """Values as an array, texts as objects: numpy's own texts lose zero characters at their ends."""
    if isinstance(values, np.ndarray):
        return values
    listed: NDArray[Any] = np.asarray(values, dtype=object)
    return listed if any(isinstance(each, str) for each in listed.ravel()[:1]) else np.asarray(values)


def _counts(receipt: BatchReceipt, size: int) -> NDArray[np.int64]:
    """How many reports of a batch have each status."""
    if receipt.statuses:
        return np.bincount(np.frombuffer(receipt.statuses, np.uint8), minlength=_STATUSES)
    counts = np.zeros(_STATUSES, dtype=np.int64)
    counts[min(receipt.status, _STATUSES - 1)] = size
    return counts
