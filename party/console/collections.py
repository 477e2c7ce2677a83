"""Collections of the frequency service: what each is, its rounds, and their estimates with intervals."""

from __future__ import annotations

import datetime as dt
from functools import partial
from pathlib import Path
from typing import Any, Final

from console.lists import part_of
from console.site import Page, Shown, Visit
from jobs.collections.estimates import largest_first
from jobs.collections.page import TOP, told
from jobs.collections.reading import collection_as_data, refused, spends
from link.errors import UsageError
from party.config import PartyConfig
from party.services.frequency.beside import collections_of

PATH: Final = "/collections"


def pages(party_toml: Path) -> tuple[Page, ...]:
    """The pages of a node's file, the list first."""
    return (
        Page(PATH, partial(_list, party_toml), title="Collections"),
        Page(f"{PATH}/{{collection}}", partial(_show, party_toml)),
        Page(f"{PATH}/{{collection}}/rounds", partial(_rounds, party_toml)),
    )


def _list(party_toml: Path, visit: Visit) -> Shown:
    config = PartyConfig.load(party_toml)
    with collections_of(config) as kept:
        found = [] if kept is None else kept.collections()
    rows = [
        collection_as_data(collection, spec) | {"spends": spends(spec), "refused": refused(collection.counters)}
        for collection, spec in found
    ]
    return Shown(
        "collections.html.j2", {"collections": part_of(rows, visit.query), "serves": config.frequency is not None}
    )


def _show(party_toml: Path, visit: Visit) -> Shown:
    config, name = PartyConfig.load(party_toml), visit.params["collection"]
    with collections_of(config) as kept:
        if kept is None:
            raise _nothing(config)
        reading, ended = kept.reading(name, _number(visit)), kept.ended(name)
    if reading is None:
        return Shown("collection.html.j2", {"name": name, "data": None, "ended": len(ended)})
    content, data = told(reading, dt.datetime.now(dt.UTC), TOP)
    values = part_of(largest_first(reading.rows), visit.query)
    more = {"name": name, "data": data, "values": values, "ended": len(ended), "earlier": len(reading.earlier)}
    return Shown("collection.html.j2", content | more)


def _rounds(party_toml: Path, visit: Visit) -> Shown:
    config, name = PartyConfig.load(party_toml), visit.params["collection"]
    with collections_of(config) as kept:
        if kept is None:
            raise _nothing(config)
        ended = part_of(kept.ended(name), visit.query)
    rows: list[dict[str, Any]] = [
        {
            "number": each.stored.number,
            "opens": _clock(each.stored.opens),
            "ended": _clock(each.stored.ended or 0),
            "purpose": each.stored.purpose,
            "reports": each.stored.counters.counted,
            "shown": each.shown,
        }
        for each in ended.rows
    ]
    return Shown("rounds.html.j2", {"name": name, "rounds": ended._replace(rows=rows)})


def _number(visit: Visit) -> int | None:
    asked = visit.query.get("round", "")
    if not asked:
        return None
    if not asked.isdecimal() or len(asked) > 18:  # more than any has
        raise UsageError("a round is named by its number")
    return int(asked)


def _clock(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat()


def _nothing(config: PartyConfig) -> UsageError:
    return UsageError(f"{config.party.name} collects no reports of clients")
