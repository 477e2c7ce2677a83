"""What a console is made of: its pages, who may see them, and what a visit to one holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from console.accounts import Accounts
from console.roles import Person, Role
from console.settings import ConsoleSection
from jobs.audit.events import Event
from link.logs.structured import Log


class Visit(NamedTuple):
    """A request by somebody who is logged in and has the role.

    Attributes:
        person: Who it is.
        params: What the path holds in the place of its names.
        query: What stands behind the path.
        form: What was filled in; empty of what only reads.
    """

    person: Person
    params: Mapping[str, str]
    query: Mapping[str, str]
    form: Mapping[str, str]


class Shown(NamedTuple):
    """An answer: a template and what it names."""

    template: str
    content: Mapping[str, Any]


class Document(NamedTuple):
    """A page that needs nothing but itself, such as a report; out of a frame in another it reaches nothing."""

    html: bytes


class Saved(NamedTuple):
    """A file for the browser to save."""

    name: str
    content: bytes


class GoOn(NamedTuple):
    """The answer to an act: the path of the page that shows what has become of it."""

    path: str


@dataclass(frozen=True, slots=True)
class Page:
    """A page, or what the form of one does.

    Attributes:
        path: As Starlette writes it, `/inbox/{job}`.
        answer: Answers a visit, in a thread of its own; a `ComineError` becomes a page with its sentence and code.
        role: What somebody needs to be.
        title: In the navigation; those without are reached from others.
        acts: Whether it changes something, and so is reached by a form alone.
    """

    path: str
    answer: Callable[[Visit], Shown | Document | Saved | GoOn]
    role: Role = "viewer"
    title: str = ""
    acts: bool = False


@dataclass(frozen=True, slots=True)
class Site:
    """A console.

    Attributes:
        name: Whose it is.
        pages: The first one is where people begin.
        templates: Folders of the templates of the pages.
        accounts: Who may enter by a password.
        settings: Where it answers.
        log: Where it reports who enters, and faults.
        record: Writes what people do into the audit log of whose console it is, where that has one.
        prepare: What pages would otherwise make their first visitor wait for; called once the console runs, beside it.
    """

    name: str
    pages: tuple[Page, ...]
    templates: tuple[Path, ...]
    accounts: Accounts
    log: Log
    settings: ConsoleSection = field(default_factory=ConsoleSection)
    record: Callable[[Event], None] | None = None
    prepare: Callable[[], object] | None = None

    def lets_anybody_in(self) -> bool:
        """Whether there is somebody who could log in."""
        return self.settings.oidc is not None or bool(self.accounts.people())
