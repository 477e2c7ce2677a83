"""A small console without any node, and requests to it as a browser makes them."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import httpx2

from console.accounts import Accounts
from console.app import application
from console.roles import Role
from console.settings import ConsoleSection
from console.site import Document, GoOn, Page, Shown, Site, Visit
from jobs.audit.events import Event
from link.errors import ConfigurationError, PolicyDenied
from party.node.logs import open_log

ORIGIN: Final = "http://127.0.0.1:8470"
PASSWORD: Final = "correct horse battery"
OWN: Final = {"Origin": ORIGIN, "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate"}


class Board:
    """What the pages of the small console show and do.

    Attributes:
        acts: Who has acted.
    """

    def __init__(self) -> None:
        self.acts: list[str] = []

    def pages(self) -> tuple[Page, ...]:
        return (
            Page("/board", self.show, title="Board"),
            Page("/board/report", lambda _: Document(b"<h1>Report</h1>")),
            Page("/board/act", self.act, role="approver", acts=True),
            Page("/board/denied", _failing(PolicyDenied("the policy refuses that"))),
            Page("/board/unwell", _failing(ConfigurationError("node.db cannot be read"))),
            Page("/board/fault", _failing(ValueError("secret milk"))),
        )

    def show(self, visit: Visit) -> Shown:
        return Shown("error.html.j2", {"sentence": f"seen by {visit.person.name} <b>", "code": "E000"})

    def act(self, visit: Visit) -> GoOn:
        self.acts.append(f"{visit.person.name}: {visit.form.get('what')}")
        return GoOn("/board")


def _failing(error: Exception) -> Callable[[Visit], Shown]:
    def answer(_: Visit) -> Shown:
        raise error

    return answer


def small_site(
    folder: Path,
    board: Board,
    *,
    log: io.StringIO | None = None,
    record: Callable[[Event], None] | None = None,
    **settings: object,
) -> Site:
    """A console with a page and an account for each role: vera views, anna approves, adam administers."""
    accounts = Accounts(folder / "console.json")
    people: tuple[tuple[str, Role], ...] = (("vera", "viewer"), ("anna", "approver"), ("adam", "administrator"))
    for name, role in people:
        accounts.add(name, role, PASSWORD)
    return Site(
        "north",
        board.pages(),
        (),
        accounts,
        open_log("north", log or io.StringIO()),
        ConsoleSection.model_validate(settings),
        record,
    )


@asynccontextmanager
async def browser_of(
    site: Site, *, address: str = "127.0.0.1", origin: str = ORIGIN
) -> AsyncIterator[httpx2.AsyncClient]:
    """Requests to a console, with the headers of forms of its own."""
    transport = httpx2.ASGITransport(application(site, (origin,)), client=(address, 1))
    async with httpx2.AsyncClient(transport=transport, base_url=origin, headers={**OWN, "Origin": origin}) as client:
        yield client


async def log_in(client: httpx2.AsyncClient, name: str, password: str = PASSWORD, **more: str) -> httpx2.Response:
    return await client.post("/login", data={"name": name, "password": password, **more})
