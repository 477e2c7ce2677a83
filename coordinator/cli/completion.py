"""What a shell can complete beside commands and options."""

from __future__ import annotations

import typer


def error_codes(incomplete: str) -> list[str]:
    """Error codes that begin as typed."""
    from link.errors import BY_CODE

    return [code for code in sorted(BY_CODE) if code.startswith(incomplete)]


def schema_names(incomplete: str) -> list[str]:
    """Published schemas that begin as typed."""
    from jobs.schema import NAMES

    return [name for name in NAMES if name.startswith(incomplete)]


def frequency_oracles(incomplete: str) -> list[str]:
    """Frequency oracles that begin as typed."""
    from ldp.registry import ORACLES

    return [name for name in (*ORACLES, "auto") if name.startswith(incomplete)]


def post_processings(incomplete: str) -> list[str]:
    """Methods of post-processing that begin as typed."""
    from ldp.consistency import METHODS

    return [name for name in METHODS if name.startswith(incomplete)]


def parties_of_job(context: typer.Context, incomplete: str) -> list[str]:
    """`NAME=` for each party of the job file on the command line that has no data yet."""
    import tomllib
    from pathlib import Path

    try:
        parties = tomllib.loads(Path(context.args[0]).read_text("utf-8"))["job"]["parties"]
    except (IndexError, OSError, ValueError, KeyError, TypeError):
        return []
    given = {pair.partition("=")[0] for pair in context.params.get("party") or ()}
    return [f"{name}=" for name in parties if name not in given and f"{name}=".startswith(incomplete)]
