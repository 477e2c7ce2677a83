"""`report.html`: one page about a job that needs nothing but itself, for people.

Nothing is loaded: styles, scripts, libraries and data are in the page, and its content security policy lets only these
run, by their SHA-256. What came from files or parties is text: the templates escape it, and the scripts never make
HTML of it.
"""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from markupsafe import Markup

from jobs.report import render
from jobs.report.content import content
from jobs.report.tables import embedded, tables

if TYPE_CHECKING:
    from jobs.findings import Result

_FOLDER: Final = Path(__file__).parent
_STYLES: Final = ("vendor/libraries.min.css", "assets/report.css")
_SCRIPTS: Final = ("vendor/libraries.min.js",)
_OWN_SCRIPTS: Final = tuple(f"assets/{name}.js" for name in ("data", "table", "theme", "scatter", "pairs", "main"))


class _Block(NamedTuple):
    """What stands inside a style or script element, and its digest as a content security policy names it."""

    text: Markup
    source: str


def report(result: Result, *, written: datetime | None = None) -> str:
    """The page.

    Args:
        result: What it tells.
        written: The time that it names as its own; now, if None.
    """
    data = tables(result)
    style = _block(_STYLES)
    scripts = () if data is None else (_block(_SCRIPTS), _block(_OWN_SCRIPTS))
    return render.render(
        "report.html.j2",
        **content(result, written or datetime.now(UTC)),
        policy=_policy(style, scripts),
        style=style.text,
        scripts=[script.text for script in scripts],
        data=None if data is None else Markup(embedded(data)),  # noqa: S704 - `embedded` leaves no markup in it
    )


def prepare() -> None:
    """Loads what every page needs, for whoever has time before there is a result."""
    render.prepare()
    for files in (_STYLES, _SCRIPTS, _OWN_SCRIPTS):
        _block(files)


def _policy(style: _Block, scripts: tuple[_Block, ...]) -> str:
    allowed = " ".join(script.source for script in scripts) or "'none'"
    return f"default-src 'none'; style-src {style.source}; script-src {allowed}; base-uri 'none'; form-action 'none'"


@cache
def _block(files: tuple[str, ...]) -> _Block:
    text = "\n" + "\n".join((_FOLDER / name).read_text(encoding="utf-8").strip() for name in files) + "\n"
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return _Block(Markup(text), f"'sha256-{digest}'")  # noqa: S704 - the project's own files
