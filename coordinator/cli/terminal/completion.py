"""What a shell can complete beside commands and options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import typer

_PATIENCE_S: Final = 1.0  # of somebody who has pressed the tabulator


def words(*known: str) -> Callable[[str], list[str]]:
    """Offers, of the few words that an option takes, those that begin as typed."""

    def begun(incomplete: str) -> list[str]:
        return [word for word in known if word.startswith(incomplete)]

    return begun


def job_names(context: typer.Context, incomplete: str) -> list[str]:
    """Names and ids of the coordinator's jobs that begin as typed; a name once, for its latest job."""
    from pathlib import Path

    from coordinator.jobs.records.store import Store
    from coordinator.jobs.status import job_list
    from coordinator.member import read_federation
    from link.errors import ComineError

    try:
        found = job_list(Store.of(read_federation(Path(context.params.get("federation") or "federation.toml")))).jobs
    except ComineError:
        return []
    names = dict.fromkeys(line.name for line in found if " " not in line.name and line.name.isprintable())
    return [each for each in (*names, *(line.job_id[:12] for line in found)) if each.startswith(incomplete)]


def error_codes(incomplete: str) -> list[str]:
    """Error codes that begin as typed."""
    from link.errors import BY_CODE

    return [code for code in sorted(BY_CODE) if code.startswith(incomplete)]


def page_names(incomplete: str) -> list[str]:
    """Pages of the documentation that begin as typed."""
    from coordinator.cli.pages import names

    return [name for name in names() if name.startswith(incomplete)]


def schema_names(incomplete: str) -> list[str]:
    """Published schemas that begin as typed."""
    from jobs.schema import NAMES

    return [name for name in NAMES if name.startswith(incomplete)]


def frequency_oracles(incomplete: str) -> list[str]:
    """Frequency oracles that begin as typed."""
    from ldp.registry import oracle_names

    return [name for name in (*oracle_names(), "auto") if name.startswith(incomplete)]


def post_processings(incomplete: str) -> list[str]:
    """Methods of post-processing that begin as typed."""
    from ldp.consistency import METHODS

    return [name for name in METHODS if name.startswith(incomplete)]


def privacy_models(incomplete: str) -> list[str]:
    """Lists of privacy models, with commas between, that begin as typed."""
    from jobs.kinds.packages import MODELS

    before, comma, last = incomplete.rpartition(",")
    given = before.split(",")
    return [f"{before}{comma}{name}" for name in MODELS if name.startswith(last) and name not in given]


def collection_names(context: typer.Context, incomplete: str) -> list[str]:
    """Collections that begin as typed, of the nodes that say so at once."""
    import asyncio
    from pathlib import Path

    from coordinator.frequency.listing import listed
    from coordinator.member import load_federation
    from link.errors import ComineError

    async def names() -> list[str]:
        known, identity = load_federation(Path(context.params.get("federation") or "federation.toml"))
        async with asyncio.timeout(_PATIENCE_S):
            found = await listed(identity, known.addresses)
        return [collection.name for collection, _ in found.collections]

    try:
        return sorted(name for name in set(asyncio.run(names())) if name.startswith(incomplete))
    except (ComineError, TimeoutError):
        return []


def parties_of_job(context: typer.Context, incomplete: str) -> list[str]:
    """`NAME=` for each party of the job file on the command line that has no data yet."""
    from pathlib import Path

    from jobs.spec.toml import read_toml
    from link.errors import ComineError

    try:
        parties = [str(name) for name in read_toml(Path(context.args[0]))["job"]["parties"]]
    except (ComineError, IndexError, KeyError, TypeError):
        return []
    given = {pair.partition("=")[0] for pair in context.params.get("party") or ()}
    return [f"{name}=" for name in parties if name not in given and f"{name}=".startswith(incomplete)]
