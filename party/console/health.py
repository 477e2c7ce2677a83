"""How the node fares: whether it is ready, what `comine party check` finds of it, and its metrics."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from console.site import Page, Shown, Visit
from jobs.support import metrics
from link.version import software_version
from party.config import PartyConfig
from party.desk import at_desk
from party.examination import examine_node

PATH: Final = "/health"


def pages(party_toml: Path) -> tuple[Page, ...]:
    """The page of a node's file."""
    return (Page(PATH, partial(_show, party_toml), title="Health"),)


def _show(party_toml: Path, _: Visit) -> Shown:
    config = PartyConfig.load(party_toml)
    with at_desk(party_toml) as desk:
        runs = desk.runs
    return Shown(
        "health.html.j2",
        {
            "runs": runs,
            "findings": examine_node(party_toml).findings,
            "has_metrics": config.metrics is not None,
            "metrics": None if config.metrics is None else metrics(config.metrics),
            "software": software_version(),
        },
    )
