"""Texts as TOML writes them."""

from __future__ import annotations

import json
from collections.abc import Sequence


def quoted(value: str | Sequence[str]) -> str:
    """The text, or list of texts, as TOML writes it."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
