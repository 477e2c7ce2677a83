"""What the anonymisation service has let leave: releases of tables, with what is kept of each, and audited queries."""

from __future__ import annotations

import contextlib
import datetime as dt
from functools import partial
from pathlib import Path
from typing import Any, Final

from console.lists import PART, ListPart, number_of
from console.site import Document, Page, Shown, Visit
from jobs.audit.events import Event
from jobs.audit.place import of_party
from jobs.audit.reading import LogLines
from jobs.audit.service_events import JointReleaseBegan, QueryDecided, QueryRefused, ReleaseRefused, TableReleased
from link.errors import UsageError
from party.config import PartyConfig
from party.console.datasets import reading
from party.console.release_pictures import lattice_of, points_of
from party.data.shared_sources import alike
from party.services.anonymization.kept import KeptRelease, KeptReleases
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
        Page(f"{RELEASES_PATH}/{{certificate}}", partial(_release, party_toml)),
        Page(f"{RELEASES_PATH}/{{certificate}}/report", partial(_report, party_toml), role="approver"),
        Page(f"{RELEASES_PATH}/{{certificate}}/rows", partial(_rows, party_toml), role="approver", acts=True),
        Page(QUERIES_PATH, partial(_queries, party_toml), title="Queries"),
    )


def _releases(party_toml: Path, visit: Visit) -> Shown:
    config = PartyConfig.load(party_toml)
    kept = {each.certificate.digest for each in KeptReleases(config.party.state_dir).all()}
    content = _entries(party_toml, _RELEASES, visit) | {"datasets": _counted(config), "kept": kept}
    return Shown("releases.html.j2", content)


def _release(party_toml: Path, visit: Visit) -> Shown:
    config = PartyConfig.load(party_toml)
    return Shown("release.html.j2", _told(config, _found(config, visit)))


def _report(party_toml: Path, visit: Visit) -> Document:
    config = PartyConfig.load(party_toml)
    report = KeptReleases(config.party.state_dir).report(_found(config, visit).certificate.digest)
    if report is None:
        raise UsageError("there is no report of this release: of rows in blocks none is made")
    return Document(report)


def _rows(party_toml: Path, visit: Visit) -> Shown:
    """Some rows before and after; by a form alone, so that no address leads to them."""
    config = PartyConfig.load(party_toml)
    release = _found(config, visit)
    dataset = config.datasets.get(release.dataset)
    if dataset is None:
        raise UsageError(f"{config.party.name} has the dataset '{release.dataset}' no more")
    with reading():
        before = release.originals(dataset)
    assert release.sample is not None
    pairs = list(zip(before, release.sample.after, strict=True))
    return Shown("release.html.j2", _told(config, release) | {"pairs": pairs, "columns": release.sample.columns})


def _told(config: PartyConfig, release: KeptRelease) -> dict[str, Any]:
    kept, certificate = KeptReleases(config.party.state_dir), release.certificate
    node, heights = certificate.node or {}, certificate.heights or {}
    points = list(points_of([each.certificate for each in kept.all() if each.dataset == release.dataset], certificate))
    return {
        "release": release,
        "certificate": certificate,
        "at": dt.datetime.fromtimestamp(release.at, dt.UTC).isoformat(),
        "lattice": lattice_of(certificate),
        "levels": [(name, level, heights.get(name, level)) for name, level in node.items()],
        "points": points if len(points) > 1 else [],
        "has_report": kept.report(certificate.digest) is not None,
        "pairs": None,
    }


def _found(config: PartyConfig, visit: Visit) -> KeptRelease:
    found = KeptReleases(config.party.state_dir).find(visit.params["certificate"])
    if found is None:
        raise UsageError(
            f"{config.party.name} keeps no release with such a certificate, or not any more; take one of the list"
        )
    return found


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
