"""Whether what a party has told everybody was the same to all: an echo of it, with abort.

Every party tells all others a digest of what it has heard of each. Two that have heard different things both end the
job; nobody goes on with what another one was told otherwise, unless one of the two deviates itself.

Rounds: 1. Bytes: 32 for each party that told something, to each other one.
Output: whether all is well, or an error. Whoever hears that a peer was told something else by a third party knows that
    one of these two deviates; of what it has told itself it knows that it is the peer.
Adversary: malicious, any number of parties.
Leakage: none; all have what digests are of.

Source: Goldwasser and Lindell, "Secure Multi-Party Computation without Agreement", Journal of Cryptology 18(3), 2005,
section 3 (broadcast with abort, by echoes).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from crypto.primitives.hashing import encode_labels
from crypto.protocols.replicated.crosschecks import DIGEST_BYTES, contradiction
from link.disclosure import Declared
from link.errors import ProtocolViolation
from link.session import Session

LABEL: Final = "echoes"


async def compare_heard(session: Session, heard: Mapping[str, bytes], what: str) -> None:
    """Compares what parties have told all others; every party of the job calls this.

    Args:
        session: The lane to use, fresh for this call.
        heard: By party, the same ones in the same order at all, what it told everybody, or has told itself.
        what: It is about, for an error.

    Raises:
        ProtocolViolation: A party was told something else, or says so.
        UndeclaredDisclosure: The statement does not have the line of `declared`; nothing has left.
    """
    lanes = encode_labels("told everybody", session.id, session.path)
    own = np.array(
        [list(hashlib.sha256(lanes + encode_labels(party, said)).digest()) for party, said in heard.items()], np.uint8
    )
    await session.open(LABEL, own)
    for peer in session.others:
        theirs = await session.receive_opened(peer, LABEL, np.uint8, (len(heard), DIGEST_BYTES))
        for party, same in zip(heard, (own == theirs).all(axis=1), strict=True):
            if same:
                continue
            if party in (peer, session.me):
                raise ProtocolViolation(
                    f"{peer} says that {party} has told it something else of {what}; its node must be checked",
                    party=peer,
                )
            raise contradiction(party, peer, what)


def declared(parties: Sequence[str], messages: int) -> Declared:
    """The statement's line for all echoes of a job.

    Args:
        parties: All parties of the job.
        messages: How many messages all calls compare together.
    """
    what = "digests of what parties have told all others, which must be the same"
    return Declared(LABEL, frozenset(parties), what, messages, "after names, and at the end of the alignment")
