"""`report.html`: one page about a job that needs nothing but itself, for people.

Nothing is loaded: styles, scripts, libraries and data are in the page, and its content security policy lets only these
run, by their SHA-256. What came from files or parties is text: the templates escape it, and the scripts never make
HTML of it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from jobs.report import render
from jobs.report.content import content
from jobs.report.tables import embedded
from jobs.results.record import ResultRecord

_FOLDER: Final = Path(__file__).parent
PALETTE: Final = _FOLDER / "assets" / "palette.css"
"""Colours, by day and by night, of all pages."""
LIBRARIES: Final = _FOLDER / "vendor"
"""The folder of what draws charts."""
_STYLES: Final = ("vendor/libraries.min.css", "assets/palette.css", "assets/report.css")
_SCRIPTS: Final = ("vendor/libraries.min.js",)
_OF_JOBS: Final = ("itemsets", "table", "theme", "estimates", "intervals", "scatter", "network", "pairs", "main")


class _Block(NamedTuple):
    """What stands inside a style or script element, and its digest as a content security policy names it."""

    text: Markup
    source: str


def report(result: ResultRecord, *, written: datetime | None = None) -> str:
    """The page.

    Args:
        result: What it shows.
        written: The time that it names as its own; now, if None.
    """
    return page("report.html.j2", content(result, written or datetime.now(UTC)), page_data(result), _OF_JOBS)


def page_data(result: ResultRecord) -> dict[str, Any] | None:
    """What the page's scripts show; None where there is nothing for them."""
    shown = None if result.finding is None else result.finding.page_data(result.spec)
    return None if shown is None else {"rows": result.n_rows, **shown}


def page(template: str, content: Mapping[str, Any], data: Mapping[str, Any] | None, scripts: Sequence[str]) -> str:
    """A page of a template, with all that it needs in it.

    Args:
        template: Its file among the templates.
        content: What the template names.
        data: What the page's scripts show; None where no script is to run.
        scripts: Names of the project's own scripts, in their order; `page` and the libraries come first.
    """
    style = _block(_STYLES)
    blocks = () if data is None else (_block(_SCRIPTS), _block(_own(scripts)))
    return render.render(
        template,
        **content,
        policy=_policy(style, blocks),
        style=style.text,
        scripts=[block.text for block in blocks],
        data=None if data is None else Markup(embedded(data)),  # noqa: S704 - `embedded` leaves no markup in it
    )


def prepare() -> None:
    """Loads what every page needs, for a caller that has time before there is a result."""
    render.prepare()
    for files in (_STYLES, _SCRIPTS, _own(_OF_JOBS)):
        _block(files)


def _own(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"assets/{name}.js" for name in ("page", *names))


def _policy(style: _Block, scripts: tuple[_Block, ...]) -> str:
    allowed = " ".join(script.source for script in scripts) or "'none'"
    return f"default-src 'none'; style-src {style.source}; script-src {allowed}; base-uri 'none'; form-action 'none'"


@cache
def _block(files: tuple[str, ...]) -> _Block:
    text = "\n" + "\n".join((_FOLDER / name).read_text(encoding="utf-8").strip() for name in files) + "\n"
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return _Block(Markup(text), f"'sha256-{digest}'")  # noqa: S704 - the project's own files
