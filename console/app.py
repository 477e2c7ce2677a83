"""The application: who enters and leaves, and how a page is answered, or an error."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from console.guard import SANDBOXED, STATIC, Guard
from console.oidc import Provider
from console.pages import STATIC_FILES, templates
from console.refusals import Refusals
from console.roles import Person
from console.sessions import Session, Sessions
from console.site import Document, Page, Saved, Shown, Site, Visit
from console.throttle import Throttle
from jobs.audit.console_events import ConsoleEntered, ConsoleLeft
from jobs.audit.events import Event
from jobs.report.page import LIBRARIES, PALETTE
from link.errors import ComineError, ConfigurationError, DeadlineExceeded, IdentityError, PolicyDenied, UsageError

MOST_FORM: Final = 65_536  # bytes
MOST_FIELDS: Final = 100
FORM_S: Final = 30.0  # for which one may take to come
AT_ONCE: Final = 2  # passwords that are checked, each with 64 MiB
_STATUS: Final = {UsageError: 400, PolicyDenied: 409, DeadlineExceeded: 409, ConfigurationError: 503}
_NOT_READ: Final = {
    400: f"the form cannot be read: it is no text, or has more than {MOST_FIELDS} fields",
    408: f"the form did not come within {FORM_S:.0f} seconds; send it again",
    413: "the form is too long; write less",
}
_WRONG: Final = "there is no such account, or the password is another one"
_INSIDE: Final = re.compile(r"/[A-Za-z0-9_-][A-Za-z0-9_/-]*|/")


def application(site: Site, origins: tuple[str, ...]) -> Guard:
    """The console as an ASGI application.

    Args:
        site: What it is made of.
        origins: The addresses that browsers may use, as they write them.

    Raises:
        ConfigurationError: A file that the settings name cannot be read.
    """
    return Guard(_Console(site, origins).app, origins)


class _Console:
    """One console.

    Attributes:
        app: What answers behind the guard.
    """

    def __init__(self, site: Site, origins: tuple[str, ...]) -> None:
        self._site, self._origin = site, origins[0]
        self._templates = templates(site.templates)
        self._sessions, self._throttle, self._refusals = Sessions(), Throttle(), Refusals(self._record)
        self._checking = asyncio.Semaphore(AT_ONCE)
        oidc = site.settings.oidc
        self._provider = None if oidc is None else Provider(oidc, site.accounts.is_taken)
        secure = self._origin.startswith("https:")
        port = urlsplit(self._origin).port or ""  # browsers keep no cookies apart by port
        self._cookie = f"{'__Host-' if secure else ''}comine{port}"
        self._flow_cookie = f"{self._cookie}-login"
        self._flags: dict[str, Any] = {"secure": secure, "httponly": True, "path": "/"}
        routes: list[Route | Mount] = [
            Route("/", self._begin),
            Route("/login", self._login_page),
            Route("/login", self._login, methods=["POST"]),
            Route("/logout", self._logout, methods=["POST"]),
            Route(f"{STATIC}palette.css", self._palette),
            Route("/sw.js", self._worker),
            *(Mount(f"{STATIC}{folder.name}", StaticFiles(directory=folder)) for folder in (LIBRARIES, PALETTE.parent)),
            Mount(STATIC.rstrip("/"), StaticFiles(directory=STATIC_FILES)),
            *(self._route(page) for page in site.pages),
        ]
        if self._provider is not None:
            routes += [Route("/login/oidc", self._to_provider), Route("/login/oidc/back", self._from_provider)]
        self.app = Starlette(
            routes=routes,
            exception_handlers={HTTPException: self._not_answered},  # type: ignore[dict-item]
            lifespan=self._lasting,
        )

    @contextlib.asynccontextmanager
    async def _lasting(self, _: Starlette) -> AsyncIterator[None]:
        """As long as the console runs."""
        try:
            yield
        finally:
            await self._refusals.close()

    async def _record(self, event: Event) -> None:
        """Into the audit log. Who cannot be recorded may look nevertheless, at what is the matter with the log."""
        if self._site.record is not None:
            try:
                await run_in_threadpool(self._site.record, event)
            except ComineError as error:
                self._site.log.error("console fault", error=error)

    # -- pages -------------------------------------------------------------------------------------------------------
    def _route(self, page: Page) -> Route:
        async def answer(request: Request) -> Response:
            session = await self._session(request)
            if session is None:
                return self._to_login(request)
            if not session.person.may(page.role):
                sentence = f"{session.person.name} is a {session.person.role} here, and this needs an {page.role}"
                return self._error(HTTPStatus.FORBIDDEN, sentence, "E300", session.person)
            return await self._answer(page, request, session.person)

        return Route(page.path, answer, methods=["POST"] if page.acts else ["GET"])

    async def _answer(self, page: Page, request: Request, person: Person) -> Response:
        form = await _form(request) if page.acts else {}
        visit = Visit(person, request.path_params, dict(request.query_params), form)

        def answered() -> Response:
            answer = page.answer(visit)
            if isinstance(answer, Shown):
                return self._page(answer.template, person, path=page.path, **answer.content)
            if isinstance(answer, Document):
                return HTMLResponse(answer.html, headers=SANDBOXED)
            if isinstance(answer, Saved):
                headers = {"Content-Disposition": f'attachment; filename="{answer.name}"'}
                return Response(answer.content, media_type="application/octet-stream", headers=headers)
            return RedirectResponse(answer.path, HTTPStatus.SEE_OTHER)

        try:
            return await run_in_threadpool(answered)
        except ComineError as error:
            status = next((number for kind, number in _STATUS.items() if isinstance(error, kind)), 500)
            return self._error(status, error.message, error.code, person)
        except Exception as error:
            self._site.log.error("console fault", error=error)
            return self._error(500, "something went wrong in comine itself; the log has the place", "E700", person)

    def _page(self, template: str, person: Person | None, status: int = 200, **content: Any) -> HTMLResponse:
        pages = [page for page in self._site.pages if page.title and (person is None or person.may(page.role))]
        shared = {"site": self._site.name, "pages": pages, "person": person, "path": ""}
        return HTMLResponse(self._templates.get_template(template).render({**shared, **content}), status)

    def _error(self, status: int, sentence: str, code: str, person: Person | None) -> HTMLResponse:
        return self._page("error.html.j2", person, status, sentence=sentence, code=code)

    async def _not_answered(self, request: Request, error: HTTPException) -> Response:
        """What is not there, and what is asked in a way that nothing answers; the same to whoever asks."""
        session = await self._session(request)
        person = None if session is None else session.person
        sentence = _NOT_READ.get(error.status_code, "there is no such page here")
        return self._error(error.status_code, sentence, "E001", person)

    async def _palette(self, _: Request) -> Response:
        return FileResponse(PALETTE)  # of reports, too

    async def _worker(self, _: Request) -> Response:
        return FileResponse(STATIC_FILES / "sw.js")  # at the root, whose pages a notification leads to

    async def _begin(self, _: Request) -> Response:
        return RedirectResponse(self._site.pages[0].path, HTTPStatus.SEE_OTHER)

    # -- who enters and leaves ---------------------------------------------------------------------------------------
    async def _session(self, request: Request) -> Session | None:
        """Who asks; nobody whose account was taken away since, or has another role now."""
        token = request.cookies.get(self._cookie, "")
        session = self._sessions.find(token, use="x-live" not in request.headers)
        if session is not None and session.local:
            person = await run_in_threadpool(self._site.accounts.find, session.person.name)
            if person != session.person:
                self._sessions.end(token)
                return None
        return session

    def _to_login(self, request: Request) -> Response:
        if "hx-request" in request.headers:
            return Response(headers={"HX-Redirect": "/login"})
        if request.headers.get("sec-fetch-site") == "cross-site" and request.method == "GET":
            # A link from elsewhere brings no cookie; from a page of the console the same address does.
            return self._page("onward.html.j2", None, onward=request.url.path)
        onward = request.url.path if request.method == "GET" else "/"
        return RedirectResponse("/login" if onward == "/" else f"/login?to={quote(onward)}", HTTPStatus.SEE_OTHER)

    async def _login_page(self, request: Request) -> Response:
        return self._login_form(request.query_params.get("to", "/"))

    def _login_form(self, onward: str, fault: str = "", status: int = 200) -> HTMLResponse:
        onward = onward if _INSIDE.fullmatch(onward) else "/"
        has_provider = self._provider is not None
        return self._page("login.html.j2", None, status, onward=onward, fault=fault, has_provider=has_provider)

    async def _login(self, request: Request) -> Response:
        form = await _form(request)
        name, password, onward = (form.get(field, "") for field in ("name", "password", "to"))
        if wait := self._throttle.take(name, request.client.host if request.client else ""):
            self._refusals.count(waited=True)
            fault = f"too many attempts; try again in {wait // 60 + 1:.0f} minutes"
            return self._login_form(onward, fault, HTTPStatus.TOO_MANY_REQUESTS)
        async with self._checking:
            person = await run_in_threadpool(self._site.accounts.check, name, password)
        if person is None:
            self._site.log.warning("console refused")
            self._refusals.count()
            return self._login_form(onward, _WRONG, HTTPStatus.FORBIDDEN)
        self._throttle.succeeded(name)
        onward = onward if _INSIDE.fullmatch(onward) else "/"
        return await self._entered(request, person, RedirectResponse(onward, HTTPStatus.SEE_OTHER), local=True)

    async def _entered(self, request: Request, person: Person, answer: Response, *, local: bool) -> Response:
        self._sessions.end(request.cookies.get(self._cookie, ""))
        answer.set_cookie(self._cookie, self._sessions.begin(person, local=local), samesite="strict", **self._flags)
        self._site.log.info("console entered", person=person.name)
        await self._record(ConsoleEntered(by=person.name, role=person.role, provider=not local))
        return answer

    async def _logout(self, request: Request) -> Response:
        session = await self._session(request)
        if session is not None:
            self._site.log.info("console left", person=session.person.name)
            await self._record(ConsoleLeft(by=session.person.name))
        self._sessions.end(request.cookies.get(self._cookie, ""))
        answer = RedirectResponse("/login", HTTPStatus.SEE_OTHER)
        answer.delete_cookie(self._cookie, samesite="strict", **self._flags)
        return answer

    async def _to_provider(self, _: Request) -> Response:
        assert self._provider is not None
        try:
            place, token = await self._provider.begin(f"{self._origin}/login/oidc/back")
        except ComineError as error:
            self._site.log.error("console fault", error=error)
            return self._login_form("/", error.message, HTTPStatus.SERVICE_UNAVAILABLE)
        answer = RedirectResponse(place, HTTPStatus.SEE_OTHER)
        # Who comes back comes from another site, to which a strict cookie would not be sent.
        answer.set_cookie(self._flow_cookie, token, samesite="lax", max_age=600, **self._flags)
        return answer

    async def _from_provider(self, request: Request) -> Response:
        assert self._provider is not None
        token = request.cookies.get(self._flow_cookie, "")
        try:
            person = await self._provider.finish(token, dict(request.query_params))
        except ComineError as error:
            self._site.log.warning("console refused")
            if isinstance(error, IdentityError):
                self._refusals.count()
            answer: Response = self._login_form("/", error.message, HTTPStatus.FORBIDDEN)
        else:
            answer = await self._entered(request, person, self._page("onward.html.j2", None, onward="/"), local=False)
        answer.delete_cookie(self._flow_cookie, samesite="lax", **self._flags)
        return answer


async def _form(request: Request) -> dict[str, str]:
    """What was filled in.

    Raises:
        HTTPException: It is too long, or no form.
    """
    read = bytearray()
    try:
        async with asyncio.timeout(FORM_S):
            async for part in request.stream():
                read += part
                if len(read) > MOST_FORM:
                    raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    except TimeoutError:
        raise HTTPException(HTTPStatus.REQUEST_TIMEOUT) from None
    try:
        return dict(parse_qsl(read.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        raise HTTPException(HTTPStatus.BAD_REQUEST) from None
