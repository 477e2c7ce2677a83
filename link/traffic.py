"""What goes over the wire, worked out from sizes alone: a protocol told again without its data.

Every protocol has a cost function beside it that enters the frames which it will send. What they come to is exact where
the sizes are; a test holds each against real runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from google.protobuf.message import Message

from link.core import CHUNK_BYTES, FRAME_OVERHEAD_BYTES, HELLO_LANE
from link.receipts import LANE as RECEIPTS
from link.transcript import folded
from link.version import WIRE_VERSION
from protos.v1.link_pb2 import ChainHead, Hello, Opening, Proof, Receipt, SignedReceipt

_ID_BYTES: Final = 32  # of jobs, sessions, specifications and chain heads
_NONCE_BYTES: Final = 16
_SIGNATURE_BYTES: Final = 71  # ECDSA over P-256 in DER: 70 to 72


class Traffic:
    """The frames of one session, counted by sender, receiver and lane.

    Attributes:
        parties: In the order of the job.
        rounds: The longest chain of messages that wait for each other; protocols add theirs.
    """

    def __init__(self, parties: Sequence[str]) -> None:
        self.parties, self.rounds = tuple(parties), 0
        self._sent: dict[tuple[str, str], int] = defaultdict(int)
        self._lanes: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))

    def others(self, party: str) -> tuple[str, ...]:
        """All parties but this one."""
        return tuple(name for name in self.parties if name != party)

    def bytes_sent(self, party: str) -> int:
        """Bytes of all frames that the party sends."""
        return sum(self._sent[party, peer] for peer in self.others(party))

    def bytes_received(self, party: str) -> int:
        """Bytes of all frames that the party gets."""
        return sum(self._sent[peer, party] for peer in self.others(party))

    def frames(self, party: str) -> int:
        """Frames that the party sends or gets."""
        pairs = [pair for peer in self.others(party) for pair in ((party, peer), (peer, party))]
        return sum(sum(self._lanes[pair].values()) for pair in pairs)

    def send(
        self, sender: str, receiver: str, lane: str, kind: type[Message], body_bytes: int, frames: int = 1
    ) -> None:
        """One frame, or several of the same size."""
        names = len(sender) + len(receiver) + len(lane) + len(kind.DESCRIPTOR.full_name)
        self._sent[sender, receiver] += frames * (body_bytes + _ID_BYTES + names + FRAME_OVERHEAD_BYTES)
        self._lanes[sender, receiver][lane] += frames

    def broadcast(self, sender: str, lane: str, message: Message) -> None:
        """One message to every other party."""
        for receiver in self.others(sender):
            self.send(sender, receiver, lane, type(message), message.ByteSize())

    def send_array(
        self, sender: str, receiver: str, lane: str, kind: type[Message], size: int, arrays: int = 1
    ) -> None:
        """An array of `size` bytes, as `Session.send_array` cuts it, or several of the same size."""
        for chunk, frames in pieces_of(size, CHUNK_BYTES):
            self.send(sender, receiver, lane, kind, field_bytes(chunk), arrays * frames)

    def open(self, sender: str, receivers: Iterable[str], lane: str, label: str, number: int, size: int) -> None:
        """`number` values of `size` bytes together, as `Session.open` sends them."""
        header = Opening(label=label, number=number).ByteSize()
        for receiver in receivers:
            if receiver != sender:
                for chunk, frames in pieces_of(size, CHUNK_BYTES):
                    self.send(sender, receiver, lane, Opening, header + field_bytes(chunk), frames)


def greeting(traffic: Traffic, suite: str, certificate_bytes: dict[str, int]) -> None:
    """The greetings at the begin of a session; they count as no round of it.

    Args:
        traffic: Where they are entered.
        suite: Name of the cryptographic parameter set.
        certificate_bytes: By party, the size of its certificate in PEM form; empty where nobody proves anything.
    """
    for party in traffic.parties:
        hello = Hello(
            job_id=bytes(_ID_BYTES),
            attempt=1,
            nonce=bytes(_NONCE_BYTES),
            spec_digest=bytes(_ID_BYTES),
            parties=traffic.parties,
            version=WIRE_VERSION,
            suite=suite,
        )
        if certificate_bytes:
            proof = Proof(signature=bytes(_SIGNATURE_BYTES), certificate=bytes(certificate_bytes[party]))
            hello.proof.CopyFrom(proof)
        traffic.broadcast(party, HELLO_LANE, hello)


def receipts(traffic: Traffic, suite: str, certificate_bytes: dict[str, int]) -> None:
    """The exchange of receipts at the end of a session: 1 round. All else must have been entered.

    Args:
        traffic: Where they are entered.
        suite: Name of the cryptographic parameter set.
        certificate_bytes: By party, the size of its certificate in PEM form.
    """
    heads = {
        (sender, receiver): folded(
            [
                ChainHead(lane=lane, frames=frames, head=bytes(_ID_BYTES))
                for lane, frames in traffic._lanes[sender, receiver].items()
            ]
        )
        for sender in traffic.parties
        for receiver in traffic.others(sender)
    }
    for sender, receiver in heads:
        receipt = Receipt(
            session=bytes(_ID_BYTES),
            sender=sender,
            peer=receiver,
            sent=heads[sender, receiver],
            received=heads[receiver, sender],
            version=WIRE_VERSION,
            suite=suite,
        )
        signed = SignedReceipt(
            receipt=receipt.SerializeToString(),
            signature=bytes(_SIGNATURE_BYTES),
            certificate=bytes(certificate_bytes[sender]),
        )
        traffic.send(sender, receiver, f"/{RECEIPTS}", SignedReceipt, signed.ByteSize())
    traffic.rounds += 1


def pieces_of(size: int, most: int) -> list[tuple[int, int]]:
    """Sizes of the pieces into which an array is cut, and how many there are of each: at least one, perhaps empty."""
    whole, rest = divmod(size, most)
    return [(most, whole)] * bool(whole) + [(rest, 1)] * bool(rest or not whole)


def field_bytes(size: int) -> int:
    """Bytes of a field of so many bytes: tag, length and content; nothing for an empty one."""
    return 1 + max(1, -(-size.bit_length() // 7)) + size if size else 0
