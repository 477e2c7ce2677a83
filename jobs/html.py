"""HTML fragments in which every text is escaped: only `Markup` passes as it is, and only this module makes it."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Content = str | int | float | Iterable["Content"]


def escaped(content: Content) -> Markup:
    """Any content as HTML; sequences are joined."""
    if isinstance(content, Markup):
        return content
    if isinstance(content, str):
        return Markup(html.escape(content))
    if isinstance(content, int | float):
        return Markup(content)
    return Markup("".join(map(escaped, content)))


def tag(name: str, *content: Content, **attributes: str | int | float) -> Markup:
    """An element; underscores in attribute names become hyphens, one at the end is dropped (`class_`)."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"' for key, value in attributes.items()
    )
    return Markup(f"<{name}{written}>{escaped(content)}</{name}>")


def table(heads: Sequence[str], rows: Iterable[Sequence[Content]]) -> Markup:
    """A table; numbers, and the heads of columns that hold nothing else, are aligned to the right."""

    def cell(name: str, content: Content, number: bool) -> Markup:
        return tag(name, content, class_="n") if number else tag(name, content)

    lines = list(rows)
    numbers = [bool(lines) and all(_number(line[column]) for line in lines) for column in range(len(heads))]
    head = tag("tr", [cell("th", text, number) for text, number in zip(heads, numbers, strict=True)])
    body = [tag("tr", [cell("td", content, _number(content)) for content in line]) for line in lines]
    return tag("table", tag("thead", head), tag("tbody", body))


def _number(content: Content) -> bool:
    return isinstance(content, str) and content[:1].isdigit() and content.replace(",", "").replace(".", "").isdigit()
