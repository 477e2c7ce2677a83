"""The published JSON Schemas: `job.json` for job files, `result.json` for results.

They are made from the models; a test holds them equal. `python -m jobs.schema` writes them anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
NAMES: Final = ("job", "result")


def published(name: str) -> str:
    """The text of a published schema."""
    return (FOLDER / f"{name}.json").read_text(encoding="utf-8")


def generate(name: str) -> str:
    """The schema as the models give it now."""
    from jobs.document import ResultDocument, schema
    from jobs.spec import JobSpec

    contents = schema(JobSpec if name == "job" else ResultDocument, name)
    return json.dumps(contents, indent=2, ensure_ascii=False) + "\n"
