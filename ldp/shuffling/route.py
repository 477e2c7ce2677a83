"""Routes: which shufflers reports pass, for whom, and in batches of at least how many."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final

from crypto.primitives.hashing import encode_labels
from crypto.primitives.sealed import KEY_BYTES, OVERHEAD
from link.errors import ConfigurationError, IdentityError
from link.files.json_text import read_json
from link.pki.identity import SCHEME, check_name, name_in

ID_BYTES: Final = 16
MAX_SHUFFLERS: Final = 8
MAX_REPORT_BYTES: Final = 1 << 16
MAX_BATCH: Final = 1 << 31
VERSION: Final = 1
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")


@dataclass(frozen=True)
class Route:
    """A route. Members are written as in certificates: `client/phone`, `party/north`, `coordinator/analyst`.

    Attributes:
        name: By which it is called.
        id: 16 random bytes, which make it different from every other one.
        shufflers: Names of parties, in the order in which reports pass them.
        collector: The member that opens the innermost layer.
        collector_key: Its public key for this route, 32 bytes.
        size: Bytes of every report, before it is sealed.
        minimum: Reports that a batch has at least, each from another client, when it leaves a shuffler.
        maximum: Reports that a batch has at most; beyond, none is taken until it has left.
        every: Seconds between the times at which a batch may leave; 0: only when the creator asks for it.
        senders: Who may put one report into a batch; None: every client.
        gateways: Who may put in more, since they speak for as many different clients; pairs of member and number.

    Raises:
        ConfigurationError: One of these cannot be.
    """

    name: str
    id: bytes
    shufflers: tuple[str, ...]
    collector: str
    collector_key: bytes
    size: int
    minimum: int
    maximum: int = 1 << 20
    every: float = 0.0
    senders: tuple[str, ...] | None = None
    gateways: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        if _NAME.fullmatch(self.name) is None:
            raise ConfigurationError(
                "a route's name has 1 to 63 of the characters a-z 0-9 - _ . and begins and ends with a letter or digit"
            )
        if len(self.id) != ID_BYTES or len(self.collector_key) != KEY_BYTES:
            raise ConfigurationError(f"a route's id has {ID_BYTES} bytes, and its collector's key {KEY_BYTES}")
        for shuffler in self.shufflers:
            check_name(shuffler)
        if not 1 <= len(self.shufflers) <= MAX_SHUFFLERS or len(set(self.shufflers)) < len(self.shufflers):
            raise ConfigurationError(f"a route has 1 to {MAX_SHUFFLERS} shufflers, and none of them twice")
        for member in (self.collector, *(self.senders or ()), *(name for name, _ in self.gateways)):
            _check_member(member)
        if len(dict(self.gateways)) < len(self.gateways) or not all(_is_count(n, 1) for _, n in self.gateways):
            raise ConfigurationError(
                f"a route names each gateway once, with the number of its clients, 1 to {MAX_BATCH}"
            )
        if not (_is_count(self.size, 1) and self.size <= MAX_REPORT_BYTES):
            raise ConfigurationError(f"a route's reports have 1 to {MAX_REPORT_BYTES} bytes, not {self.size}")
        if not (_is_count(self.minimum, 2) and _is_count(self.maximum, self.minimum)):
            raise ConfigurationError(
                "a route's batches have a minimum of 2 reports or more, and a maximum not below it"
            )
        if not (math.isfinite(self.every) and (self.every == 0 or self.every >= 1)):
            raise ConfigurationError("a route's batches leave every second at most, or only when asked for (every = 0)")

    def document(self) -> bytes:
        """The route as canonical JSON."""
        content = {**asdict(self), "id": self.id.hex(), "collector_key": self.collector_key.hex()}
        content |= {"every": float(self.every), "version": VERSION}
        return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the document: to it all layers and statements are bound."""
        return hashlib.sha256(self.document()).digest()

    def sealed_size(self, hop: int) -> int:
        """Bytes of a report as it comes to the shuffler number `hop`, from 0; to the collector after the last one."""
        return self.size + OVERHEAD * (len(self.shufflers) - hop + 1)

    def context(self, hop: int) -> bytes:
        """What a layer is for: this version, this route, this hop."""
        return encode_labels("comine shuffled report", VERSION, self.digest, hop)

    def share(self, sender: str) -> int:
        """How many reports a member may put into one batch."""
        own = sender.startswith("client/") if self.senders is None else sender in self.senders
        return dict(self.gateways).get(sender, int(own))


def _is_count(value: object, least: int) -> bool:
    return type(value) is int and least <= value <= MAX_BATCH


def _check_member(member: str) -> None:
    try:
        name_in([f"{SCHEME}{member}"])
    except IdentityError:
        raise ConfigurationError(
            f"'{str(member)[:80]}' cannot be a member of a route; write its role and name, such as client/phone"
        ) from None


def route_of(document: bytes) -> Route:
    """The route of a document.

    Raises:
        ConfigurationError: It is not one that `Route.document` writes.
    """
    wrong = ConfigurationError("this is no document of a route that this version of comine knows")
    try:
        content: dict[str, Any] = read_json(document)
        version = content.pop("version")
        route = Route(
            **{
                **content,
                "id": bytes.fromhex(content["id"]),
                "collector_key": bytes.fromhex(content["collector_key"]),
                "shufflers": tuple(content["shufflers"]),
                "senders": None if content["senders"] is None else tuple(content["senders"]),
                "gateways": tuple((member, number) for member, number in content["gateways"]),
            }
        )
        if version != VERSION or route.document() != document:
            raise wrong
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        raise wrong from None
    return route
