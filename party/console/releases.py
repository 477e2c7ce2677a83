"""What the anonymisation service has let leave: releases of tables, and audited queries, as the audit log has them."""

from __future__ import annotations

import contextlib
from functools import partial
from pathlib import Path
from typing import Any, Final

from console.lists import PART, ListPart, number_of
from console.site import Page, Shown, Visit
from jobs.audit.events import Event
from jobs.audit.place import of_party
from jobs.audit.reading import LogLines
from jobs.audit.service_events import JointReleaseBegan, QueryDecided, QueryRefused, ReleaseRefused, TableReleased
from party.config import PartyConfig
from party.data.shared_sources import alike
from party.services.anonymization.releases import FILE as RELEASES
from party.services.anonymization.releases import Releases
from party.state.node_database import FILE

RELEASES_PATH: Final = "/releases"
QUERIES_PATH: Final = "/queries"
_RELEASES: Final = (TableReleased, JointReleaseBegan, ReleaseRefused)
_QUERIES: Final = (QueryDecided, QueryRefused)


def pages(party_toml: Path) -> tuple[Page, ...]:
    """The pages of a node's file."""
    return (
        Page(RELEASES_PATH, partial(_releases, party_toml), title="Releases"),
        Page(QUERIES_PATH, partial(_queries, party_toml), title="Queries"),
    )


def _releases(party_toml: Path, visit: Visit) -> Shown:
    config = PartyConfig.load(party_toml)
    return Shown("releases.html.j2", _entries(party_toml, _RELEASES, visit) | {"datasets": _counted(config)})


def _queries(party_toml: Path, visit: Visit) -> Shown:
    config = PartyConfig.load(party_toml)
    rules = [(each.name, each.queries) for each in config.dataset if each.queries is not None]
    return Shown("queries.html.j2", _entries(party_toml, _QUERIES, visit) | {"datasets": rules})


def _entries(party_toml: Path, events: tuple[type[Event], ...], visit: Visit) -> dict[str, Any]:
    """A part of the entries of some events, the newest first."""
    lines = LogLines(of_party(party_toml)[0], events={each.event for each in events})
    number, parts = number_of(len(lines), visit.query)
    rows = lines.part((number - 1) * PART, PART).entries[::-1]
    return {"entries": ListPart(rows, number, parts, len(lines))}


def _counted(config: PartyConfig) -> list[dict[str, Any]]:
    """Of each dataset that may be released what was made of its rows, and how much that may be."""
    database, state = config.party.state_dir / FILE, config.party.state_dir
    found = []
    with contextlib.closing(
        Releases.open_beside(database, state / RELEASES, config.party.name, alike(config.dataset))
    ) as releases:
        for each in config.dataset:
            policy, own = config.policy_of(each.name), each.anonymization
            joint = each.kind == "table" and "anonymize" in policy.tasks
            if own is None and not joint:
                continue
            made = releases.counted(each.name)
            found.append(
                {
                    "name": each.name,
                    "releases": made.releases,
                    "failures": made.failures,
                    "joint": policy.max_releases if joint else None,
                    "joint_failures": policy.max_failed_releases if joint else None,
                    "own": None if own is None else own.max_releases,
                    "own_failures": None if own is None else own.max_failures,
                }
            )
    return found
