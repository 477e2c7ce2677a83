"""The templates of the report; every text is escaped as it goes in."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jobs.report import text
from link.files.quantities import size

if TYPE_CHECKING:
    from jinja2 import Environment

_FOLDER: Final = Path(__file__).parent
_SHOWN: Final = ("visible", "number", "percent", "measure", "seconds")


def prepare() -> None:
    """Loads all templates, so that the first page need not."""
    for name in _environment().list_templates():
        _environment().get_template(name)


def render(name: str, **content: Any) -> str:
    """A template filled in.

    Args:
        name: Its file among the templates.
        content: What it names.
    """
    return _environment().get_template(name).render(content)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # which no job waits for before its result

    environment = Environment(
        loader=FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    functions = {"size": size} | {name: getattr(text, name) for name in _SHOWN}
    environment.filters.update(functions)
    environment.globals.update(functions)
    return environment
