"""What a page is made of, as a browser sees it, and a text that would be more than text."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Final

HOSTILE: Final = "<img src=x onerror=alert(1)>\"'&{{7*7}}</script><b>"
"""It would run a script in a text, in an attribute, in a script or in a template."""


class _Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.wrong: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.text += given.values()
        if tag in ("img", "b", "object", "embed", "base", "style"):
            self.wrong.append(f"<{tag}>")
        if tag == "script" and "src" not in given and given.get("type") != "application/json":
            self.wrong.append("<script>")
        self.wrong += [name for name in given if name.startswith("on") or name == "style"]
        for name in ("href", "src", "action", "formaction", "hx-get", "hx-post"):
            if (name in given and not given[name].startswith(("/", "#"))) or given.get(name, "").startswith("//"):
                self.wrong.append(f"{name}={given[name]}")

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def check_markup(page: str) -> bool:
    """Fails where a page has more than its own templates' markup; whether it shows `HOSTILE`, as text."""
    seen = _Seen()
    seen.feed(page)
    assert seen.wrong == [], page
    return any(HOSTILE in text for text in seen.text)
