"""The collector's end of a route: it checks what the shufflers state, and opens the innermost layer."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from crypto.primitives.sealed import Rows
from ldp.shuffling.batch import digest
from ldp.shuffling.onion import peel
from ldp.shuffling.route import Route
from ldp.shuffling.statement import check_chain
from link.errors import MalformedMessage
from link.pki.trust import Trust
from protos.v1.shuffle_pb2 import BatchStatement, SignedStatement

_KNOWN_BYTES: Final = 16  # by which a sealed report is known again


@dataclass(frozen=True)
class Collected:
    """A batch, opened.

    Attributes:
        reports: Shape (n, `route.size`), in an order that says nothing of who sent which.
        unreadable: Reports that could not be opened, and are not among these.
        replayed: Reports that were there twice, and are among these once.
        statements: What each shuffler did with the batch, the first first.
    """

    reports: Rows
    unreadable: int
    replayed: int
    statements: list[BatchStatement]


@dataclass
class Collecting:
    """Opens the batches of one route, one after another, and knows reports of earlier ones again.

    Args:
        route: The route.
        private_key: Of the collector.
        trust: Whom the collector believes.
    """

    route: Route
    private_key: bytes = field(repr=False)
    trust: Trust
    _seen: set[bytes] = field(default_factory=set, repr=False)

    def open(self, batch: int, sealed: Rows, signed: Sequence[SignedStatement]) -> Collected:
        """Opens a batch.

        Args:
            batch: Its number.
            sealed: Shape (n, `route.sealed_size(k)`), as it came from the last of k shufflers.
            signed: Their statements.

        Raises:
            IdentityError: A statement is not signed by its shuffler.
            ProtocolViolation: Counts or digests do not agree; the sentence names the shuffler.
        """
        hops = len(self.route.shufflers)
        statements = check_chain(signed, self.route, batch, len(sealed), digest(sealed), self.trust)
        if len(statements) < hops:
            raise MalformedMessage(
                f"batch {batch} of the route '{self.route.name}' has not passed all its shufflers",
                party=self.route.shufflers[-1],
            )
        fresh = np.zeros(len(sealed), np.bool_)
        for i, report in enumerate(sealed):
            key = hashlib.blake2b(report, digest_size=_KNOWN_BYTES).digest()
            fresh[i] = key not in self._seen
            self._seen.add(key)
        reports, readable = peel(sealed[fresh], self.route, hops, self.private_key)
        return Collected(reports[readable], int(np.count_nonzero(~readable)), int(np.count_nonzero(~fresh)), statements)
