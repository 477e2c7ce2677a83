"""What a gateway that knows its clients by ids keeps of them: one secret, from which those of all clients follow.

A client's secret is HMAC-SHA-256(gateway's secret, id). So a client has the same pseudonym in a period whichever
process of the gateway reports for it, and is counted once. Its coins are the same too (`client.fleet_state.coins`), so
a value that is reported again is the same bits. What was reported by a secret from a file is in a record beside it
(`client.fleet_state.record`), so that nothing else is reported.
"""

from __future__ import annotations

import hmac
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from client.fleet_state.record import FleetRecord
from client.pseudonym import SECRET_BYTES
from crypto.primitives.randomness import Randomness
from link.errors import ConfigurationError, InputDataError, ResourceError

_SHOWN: Final = 40  # characters of an id in an error


@dataclass(frozen=True, slots=True, repr=False)
class GatewaySecret:
    """32 bytes that never leave the gateway: anyone who has them and an id knows that client's pseudonyms.

    Attributes:
        secret: The bytes.
        record: Of what was reported by it; None of a secret from no file, for simulations.
    """

    secret: bytes
    record: Path | None = None

    @classmethod
    def open(cls, path: Path) -> Self:
        """Reads the file of a secret; makes it and its record where there is none. Only its owner may read them.

        Raises:
            ConfigurationError: The file is no secret, or others can read it.
            ResourceError: It cannot be read or made.
        """
        record = path.with_name(f"{path.name}.db")
        if not path.exists() and path.parent.is_dir():
            FleetRecord.open_file(record).close()  # first: a secret without it would look as if it had lost it
        try:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
                file.write(f"{Randomness.from_os().bytes(SECRET_BYTES).hex()}\n")
                file.flush()
                os.fsync(file.fileno())
        except FileExistsError:
            pass
        except OSError as error:
            raise ResourceError(f"{path} cannot be made ({error.strerror}); name another file") from None
        try:
            if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise ConfigurationError(f"{path} can be read by others; run: chmod 600 {path}")
            secret = bytes.fromhex(path.read_text(encoding="ascii"))
        except OSError as error:
            raise ResourceError(f"{path} cannot be read ({error.strerror})") from None
        except ValueError:
            secret = b""
        if len(secret) != SECRET_BYTES:
            raise ConfigurationError(f"{path} is not a gateway's secret, 64 hexadecimal digits; name another file")
        return cls(secret, record)

    def clients(self, ids: Sequence[str]) -> NDArray[np.uint8]:
        """The secrets of clients, shape (n, 32).

        Raises:
            InputDataError: An id comes twice.
        """
        if len(set(ids)) < len(ids):
            seen: set[str] = set()
            twice = next(each for each in ids if each in seen or seen.add(each))  # type: ignore[func-returns-value]
            raise InputDataError(f"the client {twice[:_SHOWN]!r} comes twice; each reports one value")
        found = b"".join(hmac.digest(self.secret, each.encode(), "sha256") for each in ids)
        return np.frombuffer(found, np.uint8).reshape(len(ids), SECRET_BYTES)
