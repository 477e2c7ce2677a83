"""Whom the node knows, and until when certificates hold: what `comine party peers` shows."""

from __future__ import annotations

import datetime as dt
from functools import partial
from pathlib import Path
from typing import Final

from console.site import Page, Shown, Visit
from party.desk import at_desk
from party.examination import SOON_DAYS

PATH: Final = "/peers"


def pages(party_toml: Path) -> tuple[Page, ...]:
    """The page of a node's file."""
    return (Page(PATH, partial(_show, party_toml), title="Peers"),)


def _show(party_toml: Path, _: Visit) -> Shown:
    with at_desk(party_toml) as desk:
        contents = desk.peers()
    now = dt.datetime.now(dt.UTC)
    held = (contents["certificate"], contents["authority"], *contents["coordinators"])
    days = {each["fingerprint"]: (dt.datetime.fromisoformat(each["valid_until"]) - now).days for each in held}
    return Shown("peers.html.j2", {"peers": contents, "days": days, "soon": SOON_DAYS})
