"""Who is logged in. A browser holds a random token and nothing else; all that it stands for is here."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from console.roles import Person
from crypto.primitives.randomness import Randomness

IDLE_S: Final = 1800.0
LONGEST_S: Final = 43_200.0
MOST: Final = 1000  # sessions; beyond them the one ends that was used least recently
_TOKEN_BYTES: Final = 32


@dataclass(slots=True)
class Session:
    """One of them.

    Attributes:
        person: Who has logged in.
        local: Whether by an account of this console, which may be taken away meanwhile.
        began: When, in seconds.
        used: When it was used last.
    """

    person: Person
    local: bool
    began: float
    used: float


class Sessions:
    """All sessions of a console, in memory alone: a restart ends them. To be used on the event loop only.

    Args:
        now: Seconds that never go back.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._sessions: dict[bytes, Session] = {}

    def begin(self, person: Person, *, local: bool) -> str:
        """Begins a session; its token, which nobody has seen before."""
        now = self._now()
        self._sessions = {key: each for key, each in self._sessions.items() if not self._is_over(each, now)}
        if len(self._sessions) >= MOST:
            del self._sessions[min(self._sessions, key=lambda key: self._sessions[key].used)]
        token = fresh_token()
        self._sessions[_key(token)] = Session(person, local, now, now)
        return token

    def find(self, token: str, *, use: bool = True) -> Session | None:
        """The session of a token; None where there is none, or it is over.

        Args:
            token: As the browser sent it.
            use: Whether a person has done something, and no page has asked by itself.
        """
        now, session = self._now(), self._sessions.get(_key(token))
        if session is None or self._is_over(session, now):
            self.end(token)
            return None
        if use:
            session.used = now
        return session

    def end(self, token: str) -> None:
        """Ends a session, if there is one."""
        self._sessions.pop(_key(token), None)

    def _is_over(self, session: Session, now: float) -> bool:
        return now - session.used >= IDLE_S or now - session.began >= LONGEST_S


def fresh_token() -> str:
    """A token that nobody can guess."""
    return Randomness.from_os().bytes(_TOKEN_BYTES).hex()


def _key(token: str) -> bytes:
    """What is looked up: a digest, so that no time that it takes tells anything of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
