"""How pages look: templates, in which every text is escaped as it goes in, and how they write numbers and times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from jobs.report.tables import embedded
from link.files.quantities import size

STATIC_FILES: Final = Path(__file__).parent / "static"
SHORT: Final = 12  # digits of an id
_OWN: Final = Path(__file__).parent / "templates"


def templates(folders: Sequence[Path]) -> Environment:
    """The console's own templates, and those of the pages that are in folders."""
    environment = Environment(
        loader=ChoiceLoader([FileSystemLoader(folder) for folder in (*folders, _OWN)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(size=size, short=short, minute=minute, visible=visible, embedded=_embedded)
    return environment


def short(digits: str) -> str:
    """The first digits of an id."""
    return digits[:SHORT]


def minute(clock: str | None) -> str:
    """A time as `--json` writes it, as people read it; empty where there is none."""
    return "" if clock is None else f"{clock[:16].replace('T', ' ')} UTC"


def visible(value: Any) -> str:
    """A text without what would turn the direction of what follows, or hide in it."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in str(value))


def _embedded(data: Any) -> Markup:
    """Data for a page's scripts."""
    return Markup(embedded(data))  # noqa: S704 - `embedded` leaves no markup in it
