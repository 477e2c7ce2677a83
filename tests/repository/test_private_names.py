"""Tests reach things as everybody does: a private name of another module is neither used nor patched in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
MAYBE = re.compile(r"(?<!\w)_[^\W_]|\._\b")  # most files have no such name, and need no parser
OF_LIBRARIES = {  # where these have no other name
    *("_asdict", "_fields", "_replace"),  # of named tuples
    "_hypothesis_internal_use_settings",
    "_get_local_constants",  # of hypothesis, which looks through all that is loaded
    "_exit",  # of os
    *("_get_running_loop", "_set_running_loop", "_run", "_context", "_log_destroy_pending"),  # of asyncio, for loops
    "_repr_html_",  # by which notebooks show an object
}


def foreign(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Lines with private names that the file itself does not define."""
    found, own = list[tuple[int, str]](), set(OF_LIBRARIES)
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                own.add(name)
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                own.add(name)
            case ast.AnnAssign(target=ast.Name(id=name)):  # of a dataclass
                own.add(name)
            case ast.Attribute(attr=name):
                found.append((node.lineno, name))
            case ast.ImportFrom(names=names):
                found += [(node.lineno, each.name) for each in names]
            case ast.Call(func=ast.Name(id="getattr" | "setattr") | ast.Attribute(attr="setattr" | "delattr")):
                texts = [each.value for each in node.args if isinstance(each, ast.Constant)]
                found += [(node.lineno, part) for text in texts for part in str(text).split(".")]
    return ((line, name) for line, name in found if name[:1] == "_" != name[1:2] and name not in own)


def test_no_private_name_of_another_module_is_used() -> None:
    assert not [
        f"{path.relative_to(TESTS)}:{line}: {name}"
        for path in sorted(TESTS.rglob("*.py"))
        if MAYBE.search(text := path.read_text())
        for line, name in foreign(ast.parse(text))
    ]


@pytest.mark.parametrize(
    "text",
    [
        "module._name()",
        "from a.b import _name",
        "monkeypatch.setattr(module, '_name', 1)",
        "monkeypatch.setattr('a.b._name', 1)",
        "self._name = self._other",
    ],
)
def test_what_is_private_is_seen(text: str) -> None:
    assert len(list(foreign(ast.parse(text)))) == 1
