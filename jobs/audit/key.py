"""The secret that keys the MACs of what a party opened; each session's key is made of it, again in a dispute."""

from __future__ import annotations

import contextlib
import hmac
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from crypto.primitives.randomness import Randomness
from link.disclosure import opening_mac, session_key
from link.errors import ConfigurationError, ResourceError

KEY_BYTES: Final = 32
_RESULT: Final = b"comine.audit.result/1\0"


@dataclass(frozen=True, slots=True)
class AuditKey:
    """The contents of `audit.key`.

    Attributes:
        secret: `KEY_BYTES` random bytes; never shown, never sent.
    """

    secret: bytes = field(repr=False)

    @classmethod
    def open(cls, path: Path) -> AuditKey:
        """Reads the key file; makes it first where there is none.

        Raises:
            ConfigurationError: The file is not a key, or others can read it.
            ResourceError: It cannot be read or made.
        """
        try:
            if not path.exists():
                _make(path)
            if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise ConfigurationError(f"{path} holds a secret that other users may open; run: chmod 600 {path}")
            return cls.read(path)
        except OSError as error:
            raise ResourceError(f"the audit key {path} cannot be used ({error.strerror}); check state_dir") from None

    @classmethod
    def read(cls, path: Path) -> AuditKey:
        """Reads a key file that must be there."""
        try:
            secret = bytes.fromhex(path.read_text(encoding="ascii").strip())
        except ValueError:
            secret = b""
        if len(secret) != KEY_BYTES:
            raise ConfigurationError(
                f"{path} is not an audit key of {KEY_BYTES} bytes in hexadecimal; restore it from a backup, or move it "
                "away: a new one is made, and openings before it can no longer be proved"
            )
        return cls(secret)

    def opening_mac(self, session: bytes, number: int, label: str, values: bytes) -> bytes:
        """The MAC that the log of this party must hold if it opened these values.

        Args:
            session: The session's id.
            number: Which opening of the session, from 0, as in the log.
            label: Its label.
            values: The bytes that were opened.
        """
        return opening_mac(session_key(self.secret, session), number, label, values)

    def result_mac(self, session: bytes, digest: bytes) -> bytes:
        """As the function `result_mac`, with this party's key of a session."""
        return result_mac(session_key(self.secret, session), digest)


def result_mac(key: bytes, digest: bytes) -> bytes:
    """The MAC of a result's digest; a plain digest would let readers of the log try results until one fits.

    Args:
        key: Of the session, as `link.disclosure.session_key` makes it.
        digest: Of the packed result, as `jobs.kinds.packed_itemsets.digest` gives it.
    """
    return hmac.digest(key, _RESULT + digest, "sha256")


def _make(path: Path) -> None:
    """Writes a new key whole or not at all; another process that makes one at the same time may win."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(handle, Randomness.from_os().bytes(KEY_BYTES).hex().encode() + b"\n")
        os.fsync(handle)
    finally:
        os.close(handle)
    try:
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
