"""Privacy budgets: what jobs may have cost the records of each dataset, what is left of it, and how it came about."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final

from console.lists import part_of
from console.site import Page, Shown, Visit
from jobs.documents.budget import DatasetSpent
from party.config import PartyConfig
from party.policy.budget import Moment, budget, columns_text, course
from party.policy.privacy_budget import NAMES
from party.state.ledger import Ledger
from party.state.node_database import FILE

PATH: Final = "/budgets"


def pages(party_toml: Path) -> tuple[Page, ...]:
    """The pages of a node's file, the list first."""
    return (
        Page(PATH, partial(_list, party_toml), title="Budgets"),
        Page(f"{PATH}/{{dataset}}", partial(_show, party_toml)),
    )


def _list(party_toml: Path, _: Visit) -> Shown:
    with _ledger(party_toml) as (config, ledger):
        found = budget(config, ledger, None, time.time())
    return Shown("budgets.html.j2", {"datasets": found.model_dump(mode="json")["datasets"], "names": NAMES})


def _show(party_toml: Path, visit: Visit) -> Shown:
    name, now = visit.params["dataset"], time.time()
    with _ledger(party_toml) as (config, ledger):
        (found,) = budget(config, ledger, name, now).datasets
        moments = course(config, ledger, name, now)
    jobs = part_of(found.jobs[::-1], visit.query)
    return Shown(
        "budget.html.j2",
        {
            "dataset": found.model_dump(mode="json"),
            "columns": [columns_text(way) for way in found.together.columns],
            "jobs": jobs,
            "names": NAMES,
            "lines": _lines(found, moments),
        },
    )


def _lines(found: DatasetSpent, moments: list[Moment]) -> list[dict[str, Any]]:
    """Of each amount that is limited or was spent."""
    lines = []
    for key, name in NAMES.items():
        points, limit = [[each.at, float(getattr(each.spent, key))] for each in moments], getattr(found.totals, key)
        if len(points) > 1 and (limit is not None or points[-1][1]):
            lines.append({"name": name, "points": points, "limit": None if limit is None else float(Decimal(limit))})
    return lines


@contextmanager
def _ledger(party_toml: Path) -> Iterator[tuple[PartyConfig, Ledger]]:
    config = PartyConfig.load(party_toml)
    database = config.party.state_dir / FILE
    with contextlib.closing(Ledger.open_beside(database, database)) as ledger:
        yield config, ledger
