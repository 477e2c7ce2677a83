"""Options are one language: what sentences and pages name exists, and the environment holds for every command."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from comine.command import application

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("client", "comine", "coordinator", "crypto", "jobs", "ldp", "link", "mining", "party", "relay", "anonymize")
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
NAMED = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
CALL = re.compile(r"(?:^(?:[$] )?|[$][(]|bin/|exec north |--rm coordinator ())(?:(?(1)|comine )) *(?P<call>[a-z].*)")


def walk(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with the words that call it."""
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from walk(command.get_command(None, name), (*path, name))
    yield path, command


COMMANDS = dict(walk(application()))


def options_of(command: Any) -> set[str]:
    return {"--help", "--version"} | {opt for each in command.params for opt in (*each.opts, *each.secondary_opts)}


ALL = set().union(*map(options_of, COMMANDS.values()))


def sentences(path: Path) -> Iterator[str]:
    """All texts of a module but docstrings and the declarations of options; what varies in them is an ellipsis."""
    tree = ast.parse(path.read_text())
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("typer.Option", "typer.Argument"):
            told |= {id(each) for each in call.args}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            told |= {id(each) for each in node.values}
            yield "".join(each.value if isinstance(each, ast.Constant) else "…" for each in node.values)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.value


MODULES = sorted(path for layer in LAYERS for path in (ROOT / layer).rglob("*.py"))


def own_options(path: Path) -> set[str] | None:
    """The options of the commands that a module defines; None where it defines none."""
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    own = [each for each in COMMANDS.values() if getattr(each.callback, "__module__", None) == module and each.params]
    return set().union(*map(options_of, own)) if own else None


def named(text: str) -> Iterator[tuple[tuple[str, ...] | None, str]]:
    """The options that a text names, each with the command that stands before it, if one does."""
    for found in NAMED.finditer(text):
        before = text[: found.start()].rpartition("comine ")
        words = re.findall(r"^[a-z -]+", before[2])[0].split() if before[1] and re.match(r"[a-z]", before[2]) else []
        path: tuple[str, ...] = ()
        for word in words:
            if (*path, word) not in COMMANDS:
                break
            path = (*path, word)
        near = path and not re.search(r"[.;:)]\s", before[2])
        yield (path if near else None), found.group()


@pytest.mark.parametrize("layer", LAYERS)
def test_sentences_name_options_that_their_command_has(layer: str) -> None:
    for path in (path for path in MODULES if path.is_relative_to(ROOT / layer) and NAMED.search(path.read_text())):
        own = own_options(path)
        for text in sentences(path):
            for command, option in named(text):
                if command is not None:
                    assert option in options_of(COMMANDS[command]), (path, text)
                else:
                    assert option in (ALL if own is None else own), (path, text)


def calls(text: str) -> Iterator[str]:
    """The calls of comine in a page's sentences."""
    for code in re.findall(r"(?<!`)`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        found = re.match(r"(?:[A-Z_]+=\S+ )*comine (.+)", code, re.DOTALL)
        if found:
            yield found[1]


def whole_calls(text: str) -> Iterator[str]:
    """The calls of comine in a page's blocks, with all that is given to them, also where a container makes them."""
    for block in re.findall(r"^ *```[^\n]*\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL):
        for line in re.sub(r"\\\n *", "", block).splitlines():
            for found in CALL.finditer(line):
                yield found["call"]


def called(words: list[str]) -> tuple[Any, list[str]]:
    """The command that is called, and what is given to it."""
    path: tuple[str, ...] = ()
    for word in words:
        if (*path, word) not in COMMANDS:
            break
        path = (*path, word)
    return COMMANDS[path], words[len(path) :]


def first_command(line: str) -> list[str]:
    """The words that a shell passes on, up to the next command; columns of a figure are three spaces apart."""
    shell = shlex.shlex(re.split(" {3}", line)[0], posix=True, punctuation_chars=True)
    shell.whitespace_split = True
    return [word for word in takewhile(lambda word: not re.fullmatch(r"[();<>|&]+", word), shell) if word != "…"]


def test_sentences_of_pages_call_commands_with_options_that_they_have() -> None:
    for call in (call for page in PAGES for call in calls(page.read_text())):
        command, given = called(re.split(r"[]|[\s]+", call))
        if not hasattr(command, "commands"):
            wanted = {word.partition("=")[0] for word in given if NAMED.fullmatch(word.partition("=")[0])}
            assert wanted <= options_of(command), call


def test_the_command_line_understands_what_blocks_of_pages_call() -> None:
    """No command is gone, and no option, value or argument is missing, unknown or one too many."""
    for call in (call for page in PAGES for call in whole_calls(page.read_text())):
        command, given = called(first_command(call))
        if hasattr(command, "commands") and (given or not command.no_args_is_help):
            context = command.make_context("comine", given)
            _, command, given = command.resolve_command(context, given or ["serve"])  # where no command is named
        assert not hasattr(command, "commands"), call
        with command.make_context("comine", given):
            pass


def test_every_command_with_a_federation_takes_it_from_the_environment() -> None:
    for path, command in COMMANDS.items():
        for each in command.params:
            if "--federation" in each.opts:
                assert each.envvar == "COMINE_FEDERATION", path
