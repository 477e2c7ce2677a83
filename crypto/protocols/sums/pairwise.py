"""Key agreement of every pair of parties: the source of masks that cancel and of draws that two parties share.

Once per session every party sends one fresh X25519 public key to every other party over the mutually authenticated
streams; each pair then holds a secret that no third party knows.

Rounds: 1. Output: `PairwiseSecrets`, private to the party.

Adversary: semi-honest. The keys are unauthenticated by themselves; that a key is its sender's is the streams' claim
(mutual TLS, sender checked per frame). Collusion: the secret of a pair is unknown to all others together.
Forward secrecy: private keys live for the call, secrets for the session, and nothing is written to disk.
Leakage: none; public keys are uniform and independent of all data.

Source: Diffie and Hellman 1976 on Curve25519 (RFC 7748, section 6.1); HKDF-SHA256 (RFC 5869); as the key agreement of
Bonawitz et al., "Practical Secure Aggregation for Privacy-Preserving Machine Learning", CCS 2017, section 4.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, Never

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from crypto.primitives.hashing import derive_key, encode_labels
from crypto.primitives.randomness import Randomness
from crypto.primitives.shares.masks import Words, add_masks
from link.errors import InternalError, ProtocolViolation
from link.session import Session
from protos.v1.secure_sum_pb2 import AgreementKey

KEY_BYTES: Final = 32
LANE: Final = "pairwise"


class PairwiseSecrets:
    """One secret per peer, for one session.

    Nothing is ever drawn from a secret but under a context, and every context serves once. All parties ask for the
    contexts of a lane in the same order, so they arrive at the same ones.

    Attributes:
        me: This party.
    """

    __slots__ = ("_asked", "_fresh", "_secrets", "_session_id", "me")

    def __init__(self, session_id: bytes, me: str, secrets: Mapping[str, bytes]) -> None:
        self._session_id, self.me, self._secrets = session_id, me, dict(secrets)
        self._asked: dict[tuple[str, str], int] = defaultdict(int)
        self._fresh: set[tuple[str, bytes]] = set()

    @property
    def peers(self) -> tuple[str, ...]:
        """The parties with whom this one shares a secret."""
        return tuple(self._secrets)

    def context(self, session: Session, purpose: str) -> bytes:
        """A fresh name to draw under: session id, lane, purpose, and how often it was asked for before.

        Args:
            session: The lane on which the drawn bytes will be used.
            purpose: What for; separates the draws of one lane.

        Raises:
            InternalError: The secrets were agreed upon in another session.
        """
        if session.id != self._session_id:
            raise InternalError("pairwise secrets were used in another session than the one that agreed upon them")
        seq = self._asked[session.path, purpose]
        self._asked[session.path, purpose] += 1
        context = encode_labels(self._session_id, session.path, purpose, seq)
        self._fresh.update((peer, context) for peer in self._secrets)
        return context

    def mask(self, values: Words, context: bytes) -> Words:
        """A copy of `values` under one mask per peer; over all parties the masks cancel in the ring of its words.

        Safe off the event loop for different contexts.

        Args:
            values: Shape (m,), unsigned, equal m and type at all parties; left as it is.
            context: From `context`, the same at all parties.

        Returns:
            Shape (m,): uniform to anyone who lacks the secret with at least one peer.

        Raises:
            InternalError: The context has been spent, or did not come from `context`.
        """
        for peer in self._secrets:
            self._spend(peer, context)
        masked = values.copy()
        add_masks(masked, self._secrets, self.me, context)
        return masked

    def stream(self, peer: str, context: bytes) -> Randomness:
        """A random stream that `peer` draws too and nobody else can.

        Raises:
            InternalError: The context has been spent with this peer, or did not come from `context`.
        """
        self._spend(peer, context)
        return Randomness.from_key(derive_key(self._secrets[peer], "pairwise-stream", context))

    def _spend(self, peer: str, context: bytes) -> None:
        try:
            self._fresh.remove((peer, context))  # at once, so that two threads cannot both spend it
        except KeyError:
            raise InternalError(
                "pairwise masks were asked for under a context that is spent or was never issued; "
                "two vectors under one mask would show the difference of the data"
            ) from None

    def __reduce_ex__(self, protocol: object) -> Never:
        raise TypeError("pairwise secrets are never copied or pickled: a copy would repeat their masks")

    def __repr__(self) -> str:
        return f"<PairwiseSecrets of {self.me} with {len(self._secrets)} peers>"


async def agree(session: Session) -> PairwiseSecrets:
    """Agrees upon a fresh secret with every peer; called once per session, the result is passed on.

    Raises:
        ProtocolViolation: A peer's key is of small order, so that the secret would be no secret.
        MalformedMessage: A peer's key has not 32 bytes.
    """
    lane = session.lane(LANE)
    private = X25519PrivateKey.from_private_bytes(lane.randomness("x25519").bytes(KEY_BYTES))
    mine = private.public_key().public_bytes_raw()

    await lane.broadcast(AgreementKey(public_key=mine))  # -> 1
    keys = await lane.gather(AgreementKey, _check)  # <- 1

    secrets = {}
    for peer, message in keys.items():
        try:
            shared = private.exchange(X25519PublicKey.from_public_bytes(message.public_key))
        except ValueError:  # the library refuses the all-zero result, as RFC 7748 section 6.1 advises
            raise ProtocolViolation(
                f"{peer} sent a key of small order, with which any secret would be zero; its node must be checked",
                party=peer,
            ) from None
        ends = sorted(((session.me, mine), (peer, message.public_key)))
        secrets[peer] = derive_key(shared, LANE, session.id, *ends[0], *ends[1])
    return PairwiseSecrets(session.id, session.me, secrets)


def _check(message: AgreementKey) -> None:
    if len(message.public_key) != KEY_BYTES:
        raise ValueError(f"a public key has {KEY_BYTES} bytes, not {len(message.public_key)}")
