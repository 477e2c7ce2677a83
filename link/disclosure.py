"""What may become public while a job runs: declared beforehand per label, enforced where a share leaves.

`Session.open` is the only way by which a share, a decryption or a bit is opened, and it asks a `Ledger` first.
What no ledger can enforce: what a modified node sends, sizes and timing, and what several jobs reveal together.
"""

from __future__ import annotations

import hmac
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal

from google.protobuf.message import Message

from link.errors import UndeclaredDisclosure
from protos.v1 import common_pb2


@dataclass(frozen=True, slots=True)
class Declared:
    """One label of a statement.

    Attributes:
        label: Name of the opened thing, as in the audit log.
        recipients: Parties that may learn it.
        what: Its type in words, for people.
        maximum: The most values that one party may send under the label to any one recipient.
        when: The step of the job at which it is opened, for people.
    """

    label: str
    recipients: frozenset[str]
    what: str
    maximum: int
    when: str


@dataclass(frozen=True, slots=True)
class Learned:
    """One line of a disclosure statement: something that follows for somebody from a protocol's messages.

    Attributes:
        who: Parties (or "coordinator") that learn it.
        kind: What sort of thing it is.
        what: It, in one short plain part of a sentence. Where it rounds, it says more than is disclosed, never less.
        detail: The same in its exact form, with all numbers and bounds; empty where `what` is exact.
        brief: The same in the words of a job's summary; empty where the summary leaves it to the statement.
    """

    who: tuple[str, ...]
    kind: Literal["result", "size", "count", "membership"]
    what: str
    detail: str = ""
    brief: str = ""

    @property
    def exact(self) -> str:
        """It in its exact form."""
        return self.detail or self.what

    def main(self, brief: str = "") -> Learned:
        """The same line as one that summaries name, in its own words or in fewer, which state no less."""
        return replace(self, brief=brief or self.what)

    def of(self, subject: str) -> Learned:
        """The same line about one of several runs of a protocol in a job."""
        detail = f"of {subject}: {self.detail}" if self.detail else ""
        return replace(self, what=f"of {subject}: {self.what}", detail=detail)


@dataclass(frozen=True, slots=True)
class Opened:
    """A line of the record: what left for whom.

    The keyed MAC, `opening_mac`, can be checked in a dispute; a plain digest of a small value would be the value.
    """

    label: str
    recipients: tuple[str, ...]
    number: int
    size_bytes: int
    mac: bytes


def session_key(secret: bytes, session: bytes) -> bytes:
    """The key of one session's MACs: who keeps `secret` can make it again in a dispute."""
    return hmac.digest(secret, b"comine.openings/1\0" + session, "sha256")


def opening_mac(key: bytes, number: int, label: str, values: bytes | memoryview) -> bytes:
    """The MAC of the opening with this number in a session; equal values opened twice have different MACs."""
    mac = _begun_mac(key, number, label)
    mac.update(values)
    return mac.digest()


def _begun_mac(key: bytes, number: int, label: str) -> hmac.HMAC:
    return hmac.new(key, b"%d\0%s\0" % (number, label.encode()), "sha256")


@dataclass(frozen=True, slots=True)
class Leaving:
    """A line of a record while its values leave: it says at any time what has left.

    Attributes:
        record: Whose line it is.
        place: Where it is there.
        mac: Of the values so far.
    """

    record: list[Opened]
    place: int
    mac: hmac.HMAC

    def add(self, values: bytes | memoryview) -> None:
        """Enters what leaves next."""
        self.mac.update(values)
        line = self.record[self.place]
        self.record[self.place] = replace(line, size_bytes=line.size_bytes + len(values), mac=self.mac.digest())


@dataclass(slots=True)
class Ledger:
    """Counts what leaves under each label and refuses what the statement does not declare.

    Attributes:
        declared: The statement's labels.
        key: Keys the MACs of the record; the session's own as soon as its id is known.
        record: What has left, in order.
    """

    declared: dict[str, Declared]
    key: bytes
    record: list[Opened] = field(default_factory=list)
    _sent: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))

    @classmethod
    def of(cls, declared: Iterable[Declared], key: bytes) -> Ledger:
        """A ledger for the labels of one statement; `key` keys the MACs of the record."""
        return cls({d.label: d for d in declared}, key)

    def issue(self, label: str, values: bytes | memoryview, number: int, to: Iterable[str]) -> None:
        """Allows `number` values to leave for each of `to`, or raises; as `begin`, of values that are all there."""
        self.begin(label, number, to).add(values)

    def begin(self, label: str, number: int, to: Iterable[str]) -> Leaving:
        """Allows `number` values to leave for each of `to`, piece by piece, or raises.

        Raises:
            UndeclaredDisclosure: The label is not in the statement, a receiver may not learn it, or there are too many.
        """
        line = self.declared.get(label)
        if line is None:
            raise UndeclaredDisclosure(
                f"this node refused to open '{label}', which the job's statement does not declare"
            )
        receivers = tuple(to)
        for receiver in receivers:
            if receiver not in line.recipients:
                raise UndeclaredDisclosure(
                    f"this node refused to open '{label}' to {receiver}, who may not learn it by the job's statement"
                )
            if self._sent[label, receiver] + number > line.maximum:
                raise UndeclaredDisclosure(
                    f"this node refused to open more than {line.maximum} values of '{label}' to {receiver}, "
                    "the most that the job's statement declares"
                )
        for receiver in receivers:
            self._sent[label, receiver] += number
        leaving = Leaving(self.record, len(self.record), _begun_mac(self.key, len(self.record), label))
        self.record.append(Opened(label, receivers, number, 0, leaving.mac.digest()))
        return leaving

    def expect(self, label: str, sender: str) -> None:
        """Raises `UndeclaredDisclosure` where a peer opens something that the statement does not declare."""
        if label not in self.declared:
            raise UndeclaredDisclosure(f"{sender} opened '{label}', which the job's statement does not declare")


@cache
def kinds(message: Callable[[], Message]) -> frozenset[int]:
    """The kinds of all fields of a message type, those of nested messages included."""

    def walk(descriptor: Any, seen: frozenset[str]) -> Iterable[int]:
        for member in descriptor.fields:
            nested = member.message_type
            if nested is None:
                yield member.GetOptions().Extensions[common_pb2.kind]
            elif nested.full_name not in seen:
                yield from walk(nested, seen | {nested.full_name})

    descriptor = message().DESCRIPTOR
    return frozenset(walk(descriptor, frozenset({descriptor.full_name})))


def opens(message: Callable[[], Message]) -> bool:
    """Whether a message type has a field that only `Session.open` may fill."""
    return common_pb2.OPENED in kinds(message)
