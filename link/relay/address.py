"""How a party is reached that only a relay connects: `relay:HOST:PORT`, in the place of HOST:PORT.

The text goes wherever an address goes. `shown` is what people read of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlencode

_SCHEME: Final = "relay:"


@dataclass(frozen=True, slots=True)
class RelayAddress:
    """Where a relay is, and how it is known.

    Attributes:
        place: HOST:PORT.
        name: What it calls itself; its host, where absent.
        ca: A file with the authorities that may have issued its certificate; where absent, those of the system, and the
            federation's own.
    """

    place: str
    name: str | None = None
    ca: Path | None = None

    @classmethod
    def parse(cls, address: str) -> RelayAddress | None:
        """The relay in an address; None of an address that is HOST:PORT."""
        if not address.startswith(_SCHEME):
            return None
        place, _, options = address.removeprefix(_SCHEME).partition("?")
        given = dict(parse_qsl(options))
        return cls(place, given.get("name"), Path(given["ca"]) if "ca" in given else None)

    @property
    def text(self) -> str:
        """The address of a party that is reached through it."""
        options = {"name": self.name, "ca": None if self.ca is None else str(self.ca)}
        given = urlencode({key: value for key, value in options.items() if value is not None})
        return f"{_SCHEME}{self.place}" + (f"?{given}" if given else "")

    @property
    def host(self) -> str:
        """The host alone."""
        return self.place.rpartition(":")[0].strip("[]")

    @property
    def called(self) -> str:
        """What the relay must call itself."""
        return self.host if self.name is None else self.name

    def __str__(self) -> str:
        return f"the relay {self.place}"


def shown(address: str) -> str:
    """An address as sentences say it."""
    relay = RelayAddress.parse(address)
    return address if relay is None else str(relay)
