"""Bytes as browsers and push services write them: base64url without padding (RFC 7515)."""

from __future__ import annotations

import base64
import re
from typing import Final

_WRITTEN: Final = re.compile(r"[A-Za-z0-9_-]*")


def written(data: bytes) -> str:
    """Bytes as text."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def read(text: str) -> bytes:
    """The bytes of a text.

    Raises:
        ValueError: It is none of this form.
    """
    text = text.rstrip("=")
    if not _WRITTEN.fullmatch(text):
        raise ValueError("no base64url")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
