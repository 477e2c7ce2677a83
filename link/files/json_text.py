"""Reads JSON that somebody else wrote: whatever is wrong with it is a ValueError."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def read_json(data: bytes | str, parse_constant: Callable[[str], Any] | None = None) -> Any:
    """The value of a JSON text.

    Unlike `json.loads` it takes neither a nesting that exhausts the stack, nor half of a surrogate pair: a text
    with one can be held, but neither written nor sent.

    Args:
        data: The text; as bytes in UTF-8.
        parse_constant: Makes a value of NaN, Infinity and -Infinity.

    Raises:
        ValueError: It is not JSON, or of these.
    """
    text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
    try:
        found = json.loads(text, parse_constant=parse_constant)
        if "\\u" in text:
            json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("it holds half of a character") from None
    return found
