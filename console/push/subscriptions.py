"""Who is told by notifications in which browser, and the key by which push services know this console: `push.json`.

The file is read whenever it is used, as that of the accounts is: a console and a node that run beside each other both
go by what it says now, and only its owner may read it.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from console.accounts import Accounts
from console.push import vapid
from console.push.base64url import read
from console.push.services import Place, place_of
from console.turns import taking_turns
from crypto.primitives.push_encryption import SECRET_BYTES, read_point
from jobs.audit.console_events import NotificationsBegun, NotificationsEnded
from jobs.audit.events import Event
from link.errors import ConfigurationError, UsageError
from link.files.private_file import replace_private

FILE: Final = "push.json"
MOST_OF_ONE: Final = 10  # browsers of a person
MOST: Final = 500
OF_A_PROVIDER_S: Final = 30 * 86_400.0
"""How long a browser is told whose owner has no account here: their provider says of nobody that they are gone."""


@dataclass(frozen=True)
class Subscription:
    """One browser of a person.

    Attributes:
        person: Whose it is.
        account: The mark of their account when they asked for it; empty of who logs in by a provider.
        endpoint: Where its notifications are handed over. It leads to this one browser, so no page shows it.
        key: The browser's public key.
        secret: The browser's secret, without which nobody can write to it.
        since: Unix seconds.
    """

    person: str
    account: str
    endpoint: str
    key: str
    secret: str
    since: float

    @property
    def id(self) -> str:
        """Its name in addresses of pages, which tells nothing of the endpoint."""
        return hashlib.sha256(self.endpoint.encode()).hexdigest()

    @property
    def until(self) -> float | None:
        """When it ends by itself, in Unix seconds."""
        return None if self.account else self.since + OF_A_PROVIDER_S


@dataclass(frozen=True)
class _Kept:
    key: str
    subscriptions: tuple[Subscription, ...]


_KEPT: Final = TypeAdapter(_Kept)


class Subscriptions:
    """The file; all methods may be called from any thread.

    Args:
        path: The file. Where there is none, nobody has subscribed.
        accounts: Of the console; who has lost theirs, or got another password or role, is told nothing any more.
        services: Hosts of push services beside the known ones.
        record: Writes into the audit log what people do, before it is done.
        now: Unix seconds.
    """

    def __init__(
        self,
        path: Path,
        accounts: Accounts,
        services: Sequence[str] = (),
        record: Callable[[Event], None] = lambda event: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._path, self._accounts, self._services, self._record, self._now = path, accounts, services, record, now

    def key(self) -> EllipticCurvePrivateKey:
        """The console's key pair, which is made where there is none.

        Raises:
            ComineError: The file cannot be read or written.
        """
        kept = self._read()
        if kept is None:
            with self._changing():
                pass  # which makes one
            kept = self._read()
        assert kept is not None
        return vapid.key_of(kept.key)

    def all(self) -> list[Subscription]:
        """Those that count now."""
        kept = self._read()
        return [] if kept is None else self._that_count(kept.subscriptions)

    def of(self, person: str) -> list[Subscription]:
        """Those of a person, the oldest first."""
        return [each for each in self.all() if each.person == person]

    def place_of(self, subscription: Subscription) -> Place:
        """Where a subscription's notifications are handed over."""
        return place_of(subscription.endpoint, self._services)

    def add(self, person: str, endpoint: str, key: str, secret: str) -> None:
        """Tells one browser of a person from now on; one browser tells the person alone who asked for it last.

        Args:
            person: Who asks for it.
            endpoint: As the browser has it from its push service.
            key: The browser's public key, as base64url.
            secret: The browser's secret, as base64url.

        Raises:
            UsageError: The push service is not known, the subscription is not whole, or there are too many.
            ComineError: The file, or the audit log, cannot be read or written.
        """
        place = place_of(endpoint, self._services)
        if not _is_whole(key, secret):
            raise UsageError("the browser did not say how to write to it; ask it once more")
        with self._changing() as subscriptions:
            others = [each for each in subscriptions if each.endpoint != endpoint]
            if sum(each.person == person for each in others) >= MOST_OF_ONE:
                raise UsageError(f"{MOST_OF_ONE} browsers of {person} are told already; remove one of them first")
            if len(others) >= MOST:
                raise UsageError(f"{MOST} browsers are told already; somebody has to remove one first")
            mark = self._accounts.marks().get(person, "")
            self._record(NotificationsBegun(by=person, service=place.host))
            subscriptions[:] = [*others, Subscription(person, mark, endpoint, key, secret, self._now())]

    def remove(self, person: str, id_: str) -> None:
        """Tells a browser of a person no more.

        Raises:
            UsageError: The person has none of that name.
            ComineError: The file, or the audit log, cannot be read or written.
        """
        with self._changing() as subscriptions:
            found = next((each for each in subscriptions if (each.person, each.id) == (person, id_)), None)
            if found is None:
                raise UsageError("no such browser of yours is told; the page shows which are")
            self._record(NotificationsEnded(by=person, service=self.place_of(found).host))
            subscriptions.remove(found)

    def forget(self, gone: Sequence[Subscription]) -> None:
        """Forgets subscriptions of which their push service says that they have ended."""
        with self._changing() as subscriptions:
            subscriptions[:] = [each for each in subscriptions if each not in gone]

    def _that_count(self, subscriptions: Sequence[Subscription]) -> list[Subscription]:
        marks, now = self._accounts.marks(), self._now()
        return [
            each
            for each in subscriptions
            if each.account == marks.get(each.person, "")
            and (each.until is None or now < each.until)
            and self._is_allowed(each)
            and _is_whole(each.key, each.secret)
        ]

    def _is_allowed(self, subscription: Subscription) -> bool:
        """Whether its push service is one that the console still believes in."""
        try:
            self.place_of(subscription)
        except UsageError:
            return False
        return True

    @contextmanager
    def _changing(self) -> Iterator[list[Subscription]]:
        """Those that count, to be written again, with a key where there was none."""
        with taking_turns(self._path):
            kept = self._read() or _Kept(vapid.new_key(), ())
            subscriptions = self._that_count(kept.subscriptions)
            yield subscriptions
            replace_private(self._path, _KEPT.dump_json(_Kept(kept.key, tuple(subscriptions)), indent=2))

    def _read(self) -> _Kept | None:
        try:
            kept = _KEPT.validate_python(json.loads(self._path.read_bytes()))
            vapid.key_of(kept.key)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ConfigurationError(f"{self._path} cannot be read ({error.strerror}); see to its owner") from None
        except (ValueError, ValidationError):
            raise ConfigurationError(
                f"{self._path} does not hold subscriptions; put a copy of it back, or remove it, and people "
                "subscribe anew"
            ) from None
        return kept


def _is_whole(key: str, secret: str) -> bool:
    """Whether a browser can be written to by these."""
    try:
        read_point(read(key))
        return len(read(secret)) == SECRET_BYTES
    except ValueError:
        return False
