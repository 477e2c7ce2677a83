"""Who has dialled a relay, and proved it; which parties wait for callers, and which callers wait for parties."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from websockets.asyncio.server import ServerConnection

from crypto.primitives.randomness import Randomness
from link.errors import IdentityError
from link.pki.identity import Member, Role
from link.relay.handshake import TOKEN_BYTES, check_hello
from protos.v1.relay_pb2 import RELAY_REASON_ABSENT, RELAY_REASON_IDENTITY, RELAY_REASON_TOKEN, RelayHello
from relay.config import RelayConfig
from relay.limits import Refused, Use

TOKEN_S: Final = 8.0  # for which a token is good
MOST_WAITING: Final = 256  # callers that a party has not answered yet


@dataclass(frozen=True, slots=True)
class Caller:
    """Who holds a connection.

    Attributes:
        federation: The name of its federation.
        authority: What names the federation: SHA-256 of its authority's certificate.
        role: Its role.
        name: Its name.
    """

    federation: str
    authority: bytes
    role: Role
    name: str

    @property
    def shown(self) -> str:
        """For the log."""
        return f"{self.role}/{self.name}"


@dataclass(frozen=True, slots=True)
class Listening:
    """A party that waits for callers."""

    connection: ServerConnection
    member: Member


@dataclass(frozen=True, slots=True)
class Meeting:
    """A caller that waits for a party.

    Attributes:
        party: Who alone may come.
        until: When it is too late.
        arrived: The party's connection.
    """

    party: Caller
    until: float
    arrived: asyncio.Future[ServerConnection]


class Members:
    """The members of all federations that a relay serves.

    Args:
        config: Of the relay.

    Raises:
        ConfigurationError: A federation's files cannot be read.
        IdentityError: They do not fit each other.

    Attributes:
        listening: The parties that wait for callers.
    """

    def __init__(self, config: RelayConfig) -> None:
        self._name, self._limits = config.relay.name, config.limits
        self._trust = config.trusts()
        self.listening: dict[Caller, Listening] = {}
        self._meetings: dict[bytes, Meeting] = {}
        self._uses: dict[Caller, Use] = {}

    def renew(self, config: RelayConfig) -> list[ServerConnection]:
        """Goes by other federations and limits; what is open stays.

        Args:
            config: The relay's file, read anew.

        Returns:
            The connections of parties that may no longer wait for callers.

        Raises:
            ConfigurationError: A federation's files cannot be read.
            IdentityError: They do not fit each other.
        """
        self._trust, self._limits = config.trusts(), config.limits
        for use in self._uses.values():
            use.limits = config.limits
        gone = []
        for party, waits in list(self.listening.items()):
            name, trust = self._trust.get(party.authority, ("", None))
            if trust is None or name != party.federation:
                gone.append(waits.connection)
            else:
                self.listening[party] = replace(waits, member=replace(waits.member, trust=trust))
        return gone

    def caller(self, hello: RelayHello, nonce: bytes) -> Caller:
        """Who sent a hello.

        Raises:
            Refused: It has not proved who it is, or may not do what it wants.
        """
        name, trust = self._trust.get(hello.authority, ("", None))
        if trust is None:
            raise Refused(RELAY_REASON_IDENTITY)
        try:
            role = check_hello(hello, trust, self._name, nonce)
        except IdentityError as error:
            raise Refused(RELAY_REASON_IDENTITY) from error
        return Caller(name, hello.authority, role, hello.name)

    def party(self, caller: Caller, name: str) -> Caller:
        """The party of the caller's own federation that has a name, if it waits for callers.

        Raises:
            Refused: It does not; of another federation's parties the same is said as of names that nobody has.
        """
        party = Caller(caller.federation, caller.authority, "party", name)
        waits = self.listening.get(party)
        if waits is None:
            raise Refused(RELAY_REASON_ABSENT)
        try:
            waits.member.check()
        except IdentityError as error:  # it has expired or was revoked since
            raise Refused(RELAY_REASON_ABSENT) from error
        return party

    def listen(self, caller: Caller, connection: ServerConnection, certificate: bytes) -> Listening | None:
        """Lets a party wait for callers; returns its earlier connection, whose place the new one takes."""
        before = self.listening.get(caller)
        member = Member.of(self._trust[caller.authority][1], certificate, caller.role, caller.name)
        self.listening[caller] = Listening(connection, member)
        return before

    def leave(self, caller: Caller, connection: ServerConnection) -> bool:
        """A party's connection has ended; whether it was the one that counted."""
        found = self.listening.get(caller)
        if found is None or found.connection is not connection:
            return False
        del self.listening[caller]
        return True

    @contextmanager
    def meeting(self, party: Caller) -> Iterator[tuple[bytes, asyncio.Future[ServerConnection]]]:
        """A token with which the party takes a connection, and where that then is.

        Raises:
            Refused: Too many callers wait for the party.
        """
        if sum(meeting.party == party for meeting in self._meetings.values()) >= MOST_WAITING:
            raise Refused(RELAY_REASON_ABSENT)
        token = Randomness.from_os().bytes(TOKEN_BYTES)
        arrived: asyncio.Future[ServerConnection] = asyncio.get_running_loop().create_future()
        self._meetings[token] = Meeting(party, time.monotonic() + TOKEN_S, arrived)
        try:
            yield token, arrived
        finally:
            self._meetings.pop(token, None)

    def arrive(self, party: Caller, token: bytes, connection: ServerConnection) -> None:
        """A party comes with a token, which is good once.

        Raises:
            Refused: Nobody waits for this party under it.
        """
        meeting = self._meetings.get(token)
        if meeting is None or meeting.party != party or time.monotonic() > meeting.until or meeting.arrived.done():
            raise Refused(RELAY_REASON_TOKEN)
        del self._meetings[token]
        meeting.arrived.set_result(connection)

    def use(self, caller: Caller) -> Use:
        """What a member uses."""
        if caller not in self._uses:
            for other in [other for other, use in self._uses.items() if use.idle]:
                del self._uses[other]
            self._uses[caller] = Use(self._limits)
        return self._uses[caller]
