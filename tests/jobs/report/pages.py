"""A page taken apart, for tests of what is in it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

_VOID = {"meta", "link", "br", "img", "input", "hr", "base"}


@dataclass
class Page:
    """What a browser would find.

    Attributes:
        elements: Names and attributes.
        text: All text outside scripts and styles.
        raw: The contents of each style and script, by element name.
        data: The JSON of the tables; None where there is none.
        unclosed: Elements that are never closed.
    """

    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    text: str = ""
    raw: list[tuple[str, dict[str, str | None], str]] = field(default_factory=list)
    unclosed: list[str] = field(default_factory=list)

    @property
    def data(self) -> dict[str, Any] | None:
        found = [text for name, attributes, text in self.raw if attributes.get("type") == "application/json"]
        return json.loads(found[0]) if found else None

    @property
    def policy(self) -> str:
        (found,) = (a["content"] for _, a in self.elements if a.get("http-equiv") == "Content-Security-Policy")
        assert found is not None
        return found

    def code(self, name: str) -> list[str]:
        """The contents of the styles, or of the scripts that run."""
        return [text for tag, attributes, text in self.raw if tag == name and "type" not in attributes]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = Page()
        self.open: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.page.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.page.raw.append((tag, dict(attrs), ""))
        if tag not in _VOID:
            self.open.append((tag, dict(attrs)))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.page.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1][0] == tag, f"</{tag}> closes <{self.open[-1][0]}>"
        self.open.pop()
        if tag in ("td", "th", "dt", "dd"):
            self.page.text += " "

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1][0] in ("script", "style"):
            name, attributes, text = self.page.raw[-1]
            self.page.raw[-1] = (name, attributes, text + data)
        else:
            self.page.text += data


def taken_apart(html: str) -> Page:
    """The page; fails where elements are not properly nested."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    reader.page.unclosed = [name for name, _ in reader.open]
    return reader.page
