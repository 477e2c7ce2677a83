"""What a page is made of, without a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from console.pages import templates
from console.roles import Person, Role
from console.site import Page, Shown, Visit
from party.console import site


def content(pages: tuple[Page, ...], path: str, query: dict[str, str], role: Role = "viewer", **params: str) -> Any:
    """What a page is made of, after it has been made."""
    (page,) = [each for each in pages if each.path == path]
    answer = page.answer(Visit(Person("vera", role), params, query, {}))
    assert isinstance(answer, Shown)
    shared = {"site": "north", "pages": [], "person": Person("vera", role), "path": ""}
    folder = Path(site.__file__).parent / "templates"
    text = templates([folder]).get_template(answer.template).render({**shared, **answer.content})
    assert "<b>" not in text
    return answer.content
