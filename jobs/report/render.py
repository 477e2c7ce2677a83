"""The templates of the report; every text is escaped as it goes in."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket

from jobs.report import text

_FOLDER: Final = Path(__file__).parent
_SHOWN: Final = ("visible", "number", "percent", "measure", "size", "seconds")


class _BesideTheCode(FileSystemBytecodeCache):
    """Compiled templates where Python keeps compiled modules, on the same terms; it spares each process 50 ms."""

    def dump_bytecode(self, bucket: Bucket) -> None:
        if not sys.dont_write_bytecode:
            with suppress(OSError):
                super().dump_bytecode(bucket)


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
    environment = Environment(
        loader=FileSystemLoader(_FOLDER / "templates"),
        bytecode_cache=_BesideTheCode(str(_FOLDER / "__pycache__")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    functions = {name: getattr(text, name) for name in _SHOWN}
    environment.filters.update(functions)
    environment.globals.update(functions)
    return environment
