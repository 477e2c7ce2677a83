"""The texts in the product's code, with … in the place of what is put into them: what it can say."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LETTERS = 12  # of a text, with gaps or without, that makes a sentence recognisable


@cache
def packages() -> tuple[Path, ...]:
    """The folders of the product's code."""
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]
    return tuple(ROOT / package for package in named)


@cache
def product_texts() -> tuple[str, ...]:
    """Every text of all packages."""
    return tuple(text for package in packages() for path in package.rglob("*.py") for text in texts_of(path))


@cache
def texts_of(path: Path) -> tuple[str, ...]:
    """Every text of a module."""
    return tuple(_texts(ast.parse(path.read_text())))


def gaps(text: str) -> re.Pattern[str]:
    """What a text can become, with anything in its gaps."""
    return re.compile(".*".join(map(re.escape, text.split("…"))), re.DOTALL)


def is_made_of_a_text(message: str, modules: Iterable[Path] | None = None) -> bool:
    """Whether the message has all fixed pieces of one of the product's texts, in their order.

    Args:
        message: What the product said.
        modules: Those whose texts count; all without, which takes seconds the first time.
    """
    texts = product_texts() if modules is None else tuple(text for path in modules for text in texts_of(path))
    return any(longest in message and gaps(text).search(message) for longest, text in _recognisable(texts))


@cache
def _recognisable(texts: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Texts of enough letters, with their longest pieces."""
    several = (text for text in set(texts) if sum(map(str.isalpha, text)) >= LETTERS)
    return tuple((max(text.split("…"), key=len), text) for text in several)


def _texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
            for part in node.values:
                yield from _texts(part)
        else:
            yield from _texts(node)
