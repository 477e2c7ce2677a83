"""A job specification as the `job.toml` that gives it again."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any, Final

from jobs.spec.job import JobSpec

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_FLOAT: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_UNSEEN: Final = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def job_file(spec: JobSpec, *, whole: bool = False) -> str:
    """The specification in TOML; read again it has the same digest.

    Args:
        spec: The job.
        whole: Whether a public catalogue is in it, too; otherwise the file that `universe` names must lie beside it.
    """
    contents = spec.model_dump(by_alias=True, exclude_none=True)
    catalogue = None if whole else contents.get("itemsets", {}).pop("catalogue", None)
    parts = []
    if catalogue is not None:
        parts.append(f"# `universe` is the file of the public catalogue: {len(catalogue):,} items, one a line.\n")
    for section, values in contents.items():
        if values:
            lines = [f"{_key(key)} = {_value(value)}\n" for key, value in values.items()]
            parts.append(f"[{_key(section)}]\n{''.join(lines)}")
    return "\n".join(parts)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)


def _value(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case Decimal():
            written = str(value)
            return written if _FLOAT.fullmatch(written) and not written.lstrip("-").isdigit() else f'"{written}"'
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case dict():
            return f"{{{', '.join(f'{_key(key)} = {_value(each)}' for key, each in value.items())}}}"
        case _:
            # The escapes of JSON are escapes of TOML too.
            return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04X}", json.dumps(str(value), ensure_ascii=False))
