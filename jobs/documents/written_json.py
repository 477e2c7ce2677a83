"""JSON as comine writes it: indented, in UTF-8."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def json_text(contents: Any) -> str:
    """A JSON value as text, with a newline at its end."""
    return json.dumps(contents, indent=2, ensure_ascii=False) + "\n"


def write_json(path: Path, contents: Any) -> None:
    """Writes a JSON value into a file."""
    path.write_text(json_text(contents), encoding="utf-8")
