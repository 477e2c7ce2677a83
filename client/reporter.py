"""One user's device: it perturbs values itself, and reveals no more than its budget allows."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from client.budget import DAY_S, Budget
from client.connection import Connection
from client.description import Description, Round, outruns
from client.drawing import Drawn, Turn, drawn, slid
from client.joining import first_steps
from client.labels import domain_of, fetched
from client.outcome import Delivery, LedgerState, Outcome, Status, reason
from client.pseudonym import pseudonym
from client.store import ClientStore, Kept, Part, Waiting
from crypto.primitives.randomness import Randomness
from ldp.domain import Domain
from ldp.longitudinal.memoised import MemoisedMechanism
from ldp.mechanism import Mechanism
from ldp.streams.ledger import WindowLedger
from link.errors import (
    ComineError,
    ConfigurationError,
    InputDataError,
    MalformedMessage,
    PolicyDenied,
    ProtocolViolation,
)
from protos.v1.frequency_pb2 import COUNTED, DUPLICATE, EARLY, LATE, BatchReceipt, ReportBatch, ReportStatus

MOST_WAITING: Final = 10_000
KEPT_S: Final = 90 * DAY_S
"""So long a report waits in the outbox at most."""

_NO_NODE_TIME: Final = (
    "by this device's clock earlier reports are past, and its budget allows another; but no node has announced that "
    "time yet: deliver, or follow, first"
)
_REPORTED, _NOT_SELECTED, _DRAWN = "reported", "not selected", "drawn"


class CollectionKey(NamedTuple):
    """A collection, as its users name it.

    Attributes:
        node: The party whose node collects.
        name: The collection's, there.
    """

    node: str
    name: str

    def __str__(self) -> str:
        return f"{self.node}/{self.name}"


class FrequencyClient:
    """A device. All it knows is in its folder; two processes may use one folder at once.

    Args:
        store: The folder's database.
        clock: The time in Unix seconds.

    Attributes:
        store: As above.
        clock: As above.
    """

    def __init__(self, store: ClientStore, clock: Callable[[], float] = time.time) -> None:
        self.store, self.clock = store, clock
        self._domains: dict[bytes, Domain] = {}
        self._mechanisms: dict[tuple[bytes, int, bytes], Mechanism[Any]] = {}

    @classmethod
    def open(cls, folder: Path, *, budget: Budget | None = None, clock: Callable[[], float] = time.time) -> Self:
        """Opens a device's folder, and makes it where it is not there.

        Args:
            folder: Only its owner may open what it holds.
            budget: The limits from now on; by default those that the folder has, at first `Budget()`.
            clock: The time in Unix seconds.

        Raises:
            ConfigurationError: What is in the folder is damaged, or of another version.
            ResourceError: It cannot be read or written.
        """
        store = ClientStore.open(Path(folder))
        try:
            with store.transaction():
                if budget is not None or store.fact("budget") is None:
                    store.put_fact("budget", (budget or Budget()).to_bytes())
            return cls(store, clock)
        except BaseException:
            store.close()
            raise

    def close(self) -> None:
        """Ends the use of the folder."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def budget(self) -> Budget:
        """The limits of this device."""
        return Budget.from_bytes(self.store.fact("budget") or b"")

    def spent(self) -> Fraction:
        """What was charged within the budget's span until now."""
        with self.store.transaction():
            return self._spent(self.store.advance(self.clock()))

    def _spent(self, at: float) -> Fraction:
        """What counts at a time: a charge is past by the device's clock and by the time that nodes have announced."""
        return self.store.spent(self._node_time(at) - self.budget.span_s)

    def _node_time(self, at: float) -> float:
        """The latest time that a node has announced; that of the device, which it never exceeds, where none has."""
        heard = self.store.fact("heard")
        return at if heard is None else float(heard)

    def _keep_node_time(self, node_time: float) -> None:
        """Keeps a node's time; one that is ahead of the device's clock is worth no more than that."""
        if node_time > 0:
            heard = min(node_time, self.clock())
            self.store.put_fact("heard", repr(max(heard, self._node_time(heard))).encode())

    def waiting(self) -> int:
        """How many reports are in the outbox."""
        return self.store.size()

    # -- what services announce ---------------------------------------------------------------------------------------
    def follow(self, connection: Connection, name: str) -> CollectionKey:
        """Fetches what a node announces of a collection, and keeps it for reports that are made offline.

        Raises:
            ProtocolViolation: The node announces something else than before, or asks for more than it may.
            ComineError: It cannot be reached, or has no such collection.
        """
        key = CollectionKey(connection.party, name)
        data = connection.describe(name).SerializeToString()
        found = Description.read(data, *key)
        self._check_labels(connection, found)
        with self.store.transaction():
            self._check_unchanged(found, -1, found.digest)
            for each in found.rounds:
                self._check_unchanged(found, each.number, each.digest)
                self._mechanism(found, each)
            self.store.put_collection(*key, Kept(found.id, data))
            self._keep_node_time(found.now)
        return key

    def _check_labels(self, connection: Connection, found: Description) -> None:
        if found.domain_digest and self.store.labels(found.domain_digest) is None:
            lines = fetched(connection, found)
            with self.store.transaction():
                self.store.put_labels(found.domain_digest, lines)

    def _check_unchanged(self, found: Description, number: int, digest: bytes) -> None:
        before = self.store.announced(found.id, number)
        if before is None:
            self.store.put_announced(found.id, number, digest)
        elif before != digest:
            what = "its terms" if number < 0 else f"round {number}"
            raise ProtocolViolation(
                f"{found.node} has changed {what} of the collection '{found.name}' after it was announced; this device "
                "goes on with what it knew",
                party=found.node,
            )

    def _mechanism(self, found: Description, asked: Round) -> Mechanism[Any]:
        key = (found.id, asked.number, asked.digest)
        if key not in self._mechanisms:
            made = found.mechanism(asked, self._domain(found))
            self._mechanisms.clear()  # a device reports by few of them, and one may be large
            self._mechanisms[key] = made
        return self._mechanisms[key]

    def _domain(self, found: Description) -> Domain | None:
        digest = found.domain_digest
        if not digest:
            return None
        if digest not in self._domains:
            lines = self.store.labels(digest)
            if lines is None:
                raise ConfigurationError(f"the folder has lost the labels of '{found.name}'; follow it again")
            self._domains = {digest: domain_of(lines, found)}
        return self._domains[digest]

    # -- reporting ----------------------------------------------------------------------------------------------------
    def report(self, collection: CollectionKey, value: Any, *, unknown: str | None = None) -> Outcome:
        """Perturbs a value and puts the report into the outbox, with nothing but what the folder holds.

        The report, its charge and the note that this period is over for the device are on the disk together before this
        returns, so the report can only be sent as it was drawn, however often it is sent.

        Args:
            collection: As `follow` gave it.
            value: A label; a whole number of a domain without labels; a number for a mean; a text.
            unknown: The label for all texts that the domain has not.

        Returns:
            Whether a report was made, or why not.

        Raises:
            InputDataError: The value is not one that the collection takes.
            ConfigurationError: The collection is not followed.
            ResourceError: The folder cannot be written.
        """
        store = self.store
        with store.transaction():
            found = self._known(collection)
            now = self.clock()
            at = store.advance(now)
            asked = found.open_round(now)
            if asked is None:
                why = "is closed" if found.closed else "has no round now that this device knows of"
                return Outcome(Status.NO_ROUND, f"the collection {collection} {why}")
            part = store.part(found.id, asked.period)
            if part is not None and part != Part(_DRAWN, asked.number):
                return _decided(collection, part, asked)
            if found.too_early(asked) or self._hastens(found, asked, at):
                return Outcome(Status.REFUSED, f"{found.node} claims a step of '{found.name}' that has not begun yet")
            try:
                mechanism = self._mechanism(found, asked)
            except MalformedMessage as error:
                return Outcome(Status.REFUSED, error.message)
            try:
                made = self._drawn(found, asked, mechanism, _known_value(mechanism, value, unknown), at)
            except PolicyDenied as error:
                return Outcome(Status.REFUSED, error.message)
            try:
                ledger = self._ledger(found, asked)
                if ledger is not None:
                    ledger.spend(asked.step, made.charge)
            except (PolicyDenied, InputDataError) as error:
                waits = found.divides_clients and isinstance(error, PolicyDenied)
                return Outcome(Status.REFUSED, _waiting(collection, found) if waits else error.message)
            if store.size() >= MOST_WAITING:
                return Outcome(Status.FULL, f"{MOST_WAITING:,} reports wait already; deliver them first")
            part = part or self._part(found, asked)
            if part != Part(_DRAWN, asked.number):
                store.put_part(found.id, asked.period, part)
                return _decided(collection, part, asked)
            self._keep(found, asked, mechanism, made, ledger, at)
            return Outcome(Status.REPORTED, f"a report to {collection} waits in the outbox", made.charge)

    def _drawn(self, found: Description, asked: Round, mechanism: Mechanism[Any], value: Any, at: float) -> Drawn:
        """A report that the device's budget allows.

        Where answers wait for their turn, one that the budget does not allow waits, too: by falling silent, a device
        would reveal that its value is new.

        Raises:
            PolicyDenied: The budget does not allow it.
        """
        budget, memo = self.budget, self.store.memo(found.id, mechanism.fingerprint)
        turn = _turn(found, asked)
        made = drawn(mechanism, value, memo, Randomness.from_os(), turn)
        spent = self._spent(at)
        refusal = budget.refusal(mechanism.name, made.charge, spent)
        if refusal is not None and turn is not None and memo is not None and made.charge:
            made = drawn(mechanism, value, memo, Randomness.from_os(), turn._replace(anew=False))
            refusal = budget.refusal(mechanism.name, made.charge, spent)
        if refusal is not None:
            by_clock = budget.refusal(mechanism.name, made.charge, self.store.spent(at - budget.span_s))
            raise PolicyDenied(_NO_NODE_TIME if by_clock is None else refusal)
        return made

    def ledger_state(self, collection: CollectionKey) -> LedgerState | None:
        """What the ledger of a collection says at the round that is open; None where it has no ledger of its own.

        Raises:
            ConfigurationError: The collection is not followed.
            ComineError: What the folder holds of it is damaged.
        """
        with self.store.transaction():
            found = self._known(collection)
            asked = found.open_round(self.clock())
            turn = None if asked is None else _turn(found, asked)
            if asked is None:
                return None
            if turn is not None:
                mechanism = self._mechanism(found, asked)
                assert isinstance(mechanism, MemoisedMechanism)
                memo = self.store.memo(found.id, mechanism.fingerprint)
                ledger = slid(mechanism, memo, turn).ledger
            elif found.ledger is not None:
                kept = self.store.ledger(found.id)
                ledger = WindowLedger(*found.ledger) if kept is None else WindowLedger.from_bytes(kept)
            else:
                return None
            return LedgerState(asked.step, ledger.spent(asked.step), ledger.epsilon, ledger.w)

    def _known(self, collection: CollectionKey) -> Description:
        kept = self.store.kept(*collection)
        if kept is None:
            raise ConfigurationError(
                f"this device does not know the collection {CollectionKey(*collection)}; follow it first, with a "
                "connection to its node"
            )
        return Description.read(kept.description, *collection)

    def _ledger(self, found: Description, asked: Round) -> WindowLedger | None:
        """The ledger of the collection; a new one is kept at once, so that the device joins once."""
        span = found.ledger
        if span is None:
            return None
        kept = self.store.ledger(found.id)
        if kept is not None:
            return WindowLedger.from_bytes(kept)
        ledger = WindowLedger(*span)
        if found.divides_clients:
            (first,) = first_steps(asked.step, span.steps, 1, Randomness.from_os()).tolist()
            if first > asked.step:
                ledger.spend(first - span.steps, found.epsilon)  # as if it had reported then
        self.store.put_ledger(found.id, ledger.to_bytes())
        return ledger

    def _hastens(self, found: Description, asked: Round, at: float) -> bool:
        """Whether steps that a ledger counts outrun this device's clock, so that w of them are over too soon."""
        ahead = found.ahead(asked, at)
        if ahead is None:
            return False
        fact = f"steps of {found.id.hex()}"
        before = self.store.fact(fact)
        least = ahead if before is None else min(ahead, float(before))
        self.store.put_fact(fact, repr(least).encode())
        return outruns(ahead, least)

    def _part(self, found: Description, asked: Round) -> Part:
        """Draws, without regard to any value, whether the device takes part, and in which round of a search."""
        rng = Randomness.from_os()
        if found.search is not None:
            groups = found.search.groups
            return Part(_DRAWN, asked.number - asked.number % groups + rng.below(groups))
        share = asked.share
        selected = rng.below(share.denominator) < share.numerator
        return Part(_DRAWN if selected else _NOT_SELECTED, asked.number)

    def _keep(
        self,
        found: Description,
        asked: Round,
        mechanism: Mechanism[Any],
        made: Drawn,
        ledger: WindowLedger | None,
        at: float,
    ) -> None:
        store = self.store
        if made.charge:
            store.charge(at, found.id, made.charge, self._node_time(at))
        if made.memo is not None:
            store.put_memo(found.id, mechanism.fingerprint, made.memo)
        if ledger is not None:
            store.put_ledger(found.id, ledger.to_bytes())
        store.put_part(found.id, asked.period, Part(_REPORTED, asked.number))
        name = pseudonym(store.secret, found.id, asked.period)
        store.put_report(found.node, Waiting(0, found.name, asked.number, name, made.report.to_bytes()), at)

    # -- delivery -----------------------------------------------------------------------------------------------------
    def deliver(self, connection: Connection) -> Delivery:
        """Sends what the outbox holds for a node, then fetches what it announces now of the collections followed there.

        A report leaves the outbox once the node has said what became of it; if the answer is lost, the very same report
        is sent again and the node recognises it.

        Raises:
            ProtocolViolation: The node broke the rules.
            ComineError: It cannot be reached; what has no answer stays in the outbox.
        """
        store, node = self.store, connection.party
        with store.transaction():
            expired = store.drop_old_reports(store.advance(self.clock()) - KEPT_S)
        rows = store.waiting(node)
        tally = dict.fromkeys(("counted", "duplicate", "late", "refused", "waiting"), 0)
        sentences: dict[str, None] = {}
        batches = (
            ReportBatch(collection=row.collection, round=row.round, pseudonyms=row.pseudonym, reports=row.report)
            for row in rows
        )
        for receipt in connection.submit(batches):
            fate = _fate(_status(receipt))
            tally[fate] += 1
            if fate == "refused":
                sentences[reason(_status(receipt), receipt.message)] = None
            if fate != "waiting":
                with store.transaction():
                    store.drop_report(rows[receipt.sequence].id)
        self._refresh(connection)
        return Delivery(**tally, expired=expired, sentences=tuple(sentences))

    def _refresh(self, connection: Connection) -> None:
        """Fetches all descriptions of a node; an error of one does not keep the others from being fetched."""
        failed: list[ComineError] = []
        for name in self.store.names(connection.party):
            try:
                self.follow(connection, name)
            except ComineError as error:
                failed.append(error)
        if failed:
            raise failed[0]


def _turn(found: Description, asked: Round) -> Turn | None:
    """How new answers wait in a round; None where they do not."""
    return None if found.memo is None else Turn(*found.memo, asked.step)


def _known_value(mechanism: Mechanism[Any], value: Any, unknown: str | None) -> Any:
    """The value, or the label for all others where the domain has not the value's."""
    domain = getattr(mechanism, "domain", None)
    if unknown is None or not isinstance(domain, Domain) or domain.labels is None:
        return value
    try:
        domain.codes([value])
    except InputDataError:
        return unknown
    return value


def _waiting(collection: CollectionKey, found: Description) -> str:
    return (
        f"this device has reported to {collection}, or begun to take part, within its last {found.protected} steps; it "
        "waits until they are past"
    )


def _decided(collection: CollectionKey, part: Part, asked: Round) -> Outcome:
    if part.what == _NOT_SELECTED:
        return Outcome(Status.NOT_SELECTED, f"this device's coin keeps it out of round {asked.number} of {collection}")
    if part.what == _DRAWN:
        return Outcome(
            Status.OTHER_ROUND,
            f"this device takes part in round {part.round} of {collection}, and round {asked.number} is open",
        )
    return Outcome(Status.ALREADY, f"this device has reported to {collection} in period {asked.period}")


def _status(receipt: BatchReceipt) -> ReportStatus.ValueType:
    number = receipt.statuses[0] if receipt.statuses else receipt.status
    if number not in ReportStatus.values():
        raise ProtocolViolation("the node sent a status of reports that this version does not know; update the app")
    return ReportStatus.ValueType(number)


def _fate(status: ReportStatus.ValueType) -> str:
    return {COUNTED: "counted", DUPLICATE: "duplicate", LATE: "late", EARLY: "waiting"}.get(status, "refused")
