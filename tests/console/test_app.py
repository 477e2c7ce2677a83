"""Who enters a console, what they may do there, and what it tells to who may not."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest

from console.roles import ROLES
from console.sessions import Sessions
from tests.console.sites import ORIGIN, OWN, PASSWORD, Board, browser_of, log_in, small_site
from tests.looped import looped


@looped
async def test_who_has_not_logged_in_sees_no_page(tmp_path: Path) -> None:
    async with browser_of(small_site(tmp_path, Board())) as client:
        for path in ("/board", "/board/fault"):
            answer = await client.get(path)
            assert (answer.status_code, answer.headers["location"]) == (303, f"/login?to={path}")
        answer = await client.post("/board/act", data={"what": "all"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/login")
        page = (await client.get("/login")).text
        assert "/board" not in page
        assert "anna" not in page


@looped
async def test_a_person_logs_in_and_goes_where_they_wanted(tmp_path: Path) -> None:
    log = io.StringIO()
    async with browser_of(small_site(tmp_path, Board(), log=log)) as client:
        answer = await log_in(client, "vera", to="/board")
        assert (answer.status_code, answer.headers["location"]) == (303, "/board")
        cookie = answer.headers["set-cookie"]
        assert re.fullmatch(r"comine8470=[0-9a-f]{64}; HttpOnly; Path=/; SameSite=strict", cookie)
        assert "Seen by vera &lt;b&gt;" in (await client.get("/board")).text
    assert [word in log.getvalue() for word in ("console entered", "vera", PASSWORD)] == [True, True, False]


@pytest.mark.parametrize("place", ["//evil.example", "/\\evil.example", "https://evil.example", "", "/a?b"])
@looped
async def test_nobody_is_led_elsewhere_by_logging_in(tmp_path: Path, place: str) -> None:
    async with browser_of(small_site(tmp_path, Board())) as client:
        assert (await log_in(client, "vera", to=place)).headers["location"] == "/"


@looped
async def test_wrong_names_and_wrong_passwords_are_told_the_same(tmp_path: Path) -> None:
    log = io.StringIO()
    async with browser_of(small_site(tmp_path, Board(), log=log)) as client:
        answers = [await log_in(client, name, "wrong") for name in ("vera", "nobody", "", "\N{SNOWMAN}" * 400)]
        assert {answer.status_code for answer in answers} == {403}
        assert len({answer.text for answer in answers}) == 1
    assert not any(name in log.getvalue() for name in ("vera", "nobody", "wrong"))


@looped
async def test_attempts_are_counted_by_name_whether_or_not_it_is_known(tmp_path: Path) -> None:
    async with browser_of(small_site(tmp_path, Board())) as client:
        told = {
            name: [
                (answer.status_code, answer.text) for answer in [await log_in(client, name, "wrong") for _ in range(11)]
            ]
            for name in ("vera", "nobody")
        }
        assert told["vera"] == told["nobody"]
        assert [status for status, _ in told["vera"]] == [403] * 10 + [429]
        assert (await log_in(client, "vera")).status_code == 429
        assert (await log_in(client, "anna")).status_code == 303


@looped
async def test_attempts_are_counted_by_address(tmp_path: Path) -> None:
    async with browser_of(small_site(tmp_path, Board())) as client:
        answers = [(await log_in(client, f"name{number}", "wrong")).status_code for number in range(51)]
        assert answers == [403] * 50 + [429]


@pytest.mark.parametrize("name", ["vera", "anna", "adam"])
@looped
async def test_an_act_needs_its_role(tmp_path: Path, name: str) -> None:
    board = Board()
    async with browser_of(site := small_site(tmp_path, board)) as client:
        await log_in(client, name)
        answer = await client.post("/board/act", data={"what": "all"})
        assert (await client.get("/board/act")).status_code == 405
    person = site.accounts.find(name)
    assert person is not None
    if ROLES.index(person.role) >= 1:
        assert (answer.status_code, board.acts) == (303, [f"{name}: all"])
    else:
        assert (answer.status_code, board.acts) == (403, [])
        assert "Vera is a viewer here, and this needs an approver (E300)" in answer.text


FOREIGN = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:9999"},
    {"Origin": "https://127.0.0.1:8470"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
]


@pytest.mark.parametrize("headers", FOREIGN)
@looped
async def test_an_act_comes_from_a_page_of_the_console(tmp_path: Path, headers: dict[str, str]) -> None:
    board = Board()
    async with browser_of(small_site(tmp_path, board)) as client:
        await log_in(client, "anna")
        for path in ("/board/act", "/login", "/logout"):
            answer = await client.post(path, data={"what": "all"}, headers={**OWN, **headers})
            assert answer.status_code == 403
        del client.headers["Origin"]
        assert (await client.post("/board/act", data={"what": "all"})).status_code == 403
        assert (await client.get("/board")).status_code == 200
    assert board.acts == []


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8470", "127.0.0.1", "", "127.0.0.1:8470.evil.example"])
@looped
async def test_only_the_consoles_own_host_is_answered(tmp_path: Path, host: str) -> None:
    async with browser_of(small_site(tmp_path, Board())) as client:
        for path in ("/login", "/board", "/static/console.css"):
            assert (await client.get(path, headers={"Host": host})).status_code == 421


@looped
async def test_other_sites_read_nothing_and_may_link_to_pages(tmp_path: Path) -> None:
    async with browser_of(small_site(tmp_path, Board())) as client:
        await log_in(client, "vera")
        for mode in ("no-cors", "cors", "websocket"):
            foreign = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": mode}
            assert (await client.get("/board", headers=foreign)).status_code == 403
        client.cookies.clear()  # which are not sent along links from elsewhere
        linked = await client.get("/board", headers={"Sec-Fetch-Site": "cross-site"})
        assert (linked.status_code, '"0; url=/board"' in linked.text) == (200, True)


@looped
async def test_every_answer_says_how_a_browser_has_to_treat_it(tmp_path: Path) -> None:
    origin = "https://console.example"
    site = small_site(tmp_path, Board(), origin=origin)
    async with browser_of(site, origin=origin) as client:
        entered = await log_in(client, "vera")
        assert entered.headers["set-cookie"].startswith("__Host-comine=")
        assert "; Secure" in entered.headers["set-cookie"]
        answers = [entered]
        for path in ("/board", "/nowhere", "/login", "/board/fault", "/static/htmx.min.js"):
            answers.append(await client.get(path))
        answers.append(await client.post("/login", headers={"Origin": "http://evil.example"}))
        answers.append(await client.get("/", headers={"Host": "evil.example"}))
    for answer in answers:
        assert "default-src 'none'; script-src 'self'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["strict-transport-security"]
        is_static = answer.request.url.path.startswith("/static/")
        assert answer.headers["cache-control"] == ("no-cache" if is_static else "no-store")
        assert "server" not in answer.headers
        inline = r"<script(?! src=\"/static/)|<style| style=| on[a-z]+=|javascript:"
        assert is_static or not re.search(inline, answer.text)


@looped
async def test_logging_out_ends_a_session_at_the_console(tmp_path: Path) -> None:
    async with browser_of(small_site(tmp_path, Board())) as client:
        await log_in(client, "vera")
        stolen = dict(client.cookies)
        await client.post("/logout")
        client.cookies.update(stolen)
        assert (await client.get("/board")).headers["location"] == "/login?to=/board"


@looped
async def test_logging_in_gives_a_new_token_and_ends_the_old_one(tmp_path: Path) -> None:
    async with browser_of(small_site(tmp_path, Board())) as client:
        planted = {"Cookie": f"comine8470={'a' * 64}"}  # by another
        answer = await client.post("/login", data={"name": "vera", "password": PASSWORD}, headers=planted)
        first = client.cookies["comine8470"]
        assert first in answer.headers["set-cookie"]
        assert first != "a" * 64
        await log_in(client, "anna")
        assert client.cookies["comine8470"] != first
        client.cookies.clear()
        assert (await client.get("/board", headers={"Cookie": f"comine8470={first}"})).status_code == 303


@looped
async def test_an_account_that_is_taken_away_or_changed_ends_its_sessions(tmp_path: Path) -> None:
    async with browser_of(site := small_site(tmp_path, Board())) as client:
        await log_in(client, "anna")
        site.accounts.add("anna", "viewer", PASSWORD, replace=True)
        assert (await client.get("/board")).status_code == 303
        await log_in(client, "anna")
        assert (await client.get("/board")).status_code == 200
        site.accounts.remove("anna")
        assert (await client.get("/board")).status_code == 303


@looped
async def test_an_error_is_a_sentence_and_a_code(tmp_path: Path) -> None:
    log = io.StringIO()
    async with browser_of(small_site(tmp_path, Board(), log=log)) as client:
        await log_in(client, "vera")
        for path, status, sentence in (
            ("/board/denied", 409, "The policy refuses that (E300)."),
            ("/board/unwell", 503, "Node.db cannot be read (E100)."),
            ("/board/fault", 500, "Something went wrong in comine itself; the log has the place (E700)."),
            ("/nowhere", 404, "There is no such page here (E001)."),
        ):
            answer = await client.get(path)
            assert (answer.status_code, sentence in answer.text) == (status, True)
            assert "milk" not in answer.text
    assert "ValueError" in log.getvalue()
    assert "milk" not in log.getvalue()


@looped
async def test_a_form_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    async with browser_of(small_site(tmp_path, board := Board())) as client:
        await log_in(client, "anna")
        for data in ({"what": "x" * 70_000}, {str(number): "" for number in range(200)}):
            assert (await client.post("/board/act", data=data)).status_code in (400, 413)
    assert board.acts == []


@looped
async def test_a_form_that_is_none_or_does_not_come_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slowly() -> AsyncIterator[bytes]:
        yield b"what="
        await asyncio.Event().wait()

    monkeypatch.setattr("console.app.FORM_S", 0.01)
    async with browser_of(small_site(tmp_path, board := Board())) as client:
        await log_in(client, "anna")
        for content, status, words in (
            (b"what=\xff", 400, "cannot be read"),
            ("&".join(f"{number}=" for number in range(200)).encode(), 400, "more than 100 fields"),
            (slowly(), 408, "did not come within"),
        ):
            answer = await client.post("/board/act", content=content)
            assert (answer.status_code, words in answer.text) == (status, True)
    assert board.acts == []


@pytest.mark.parametrize(
    "path", ["/static/../accounts.py", "/static/..%2faccounts.py", "/static/%2e%2e/accounts.py", "/static//etc/passwd"]
)
@looped
async def test_files_beside_those_for_browsers_are_not_handed_out(tmp_path: Path, path: str) -> None:
    async with browser_of(small_site(tmp_path, Board())) as client:
        assert (await client.get(httpx2.URL(ORIGIN, raw_path=path.encode()))).status_code in (303, 404)


@pytest.mark.parametrize(
    "path", ["//evil.example/x", "/board\r\nSet-Cookie: a=b", '/board/"><b>', "/board;url=https://evil.example"]
)
@looped
async def test_no_path_leads_elsewhere_or_writes_headers_and_markup(tmp_path: Path, path: str) -> None:
    async with browser_of(small_site(tmp_path, Board())) as client:
        raw = quote(path, safe="/;=:").encode()
        for site in ("same-origin", "cross-site"):
            answer = await client.get(httpx2.URL(ORIGIN, raw_path=raw), headers={"Sec-Fetch-Site": site})
            assert answer.status_code == 404
            assert "set-cookie" not in answer.headers
            assert "<b>" not in answer.text
        entered = await log_in(client, "vera", to=path)
        assert entered.headers["location"] == "/"


@looped
async def test_a_page_that_asks_by_itself_keeps_no_session_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("console.app.Sessions", partial(Sessions, now=lambda: now[0]))
    async with browser_of(small_site(tmp_path, Board())) as client:
        await log_in(client, "vera")
        now[0] = 1700.0
        assert (await client.get("/board", headers={"X-Live": "1", "HX-Request": "true"})).status_code == 200
        now[0] = 1900.0
        answer = await client.get("/board", headers={"X-Live": "1", "HX-Request": "true"})
        assert answer.headers["hx-redirect"] == "/login"


@looped
async def test_a_report_is_framed_by_the_console_alone_and_reaches_nothing_of_it(tmp_path: Path) -> None:
    async with browser_of(small_site(tmp_path, Board())) as client:
        assert (await client.get("/board/report")).status_code == 303
        await log_in(client, "vera")
        answer = await client.get("/board/report")
    assert answer.text == "<h1>Report</h1>"
    rules = {rule.split()[0]: rule.split()[1:] for rule in answer.headers["content-security-policy"].split(";")}
    assert rules["sandbox"] == ["allow-scripts"]
    assert (rules["default-src"], rules["frame-ancestors"]) == (["'none'"], ["'self'"])
    assert not rules.keys() & {"connect-src", "frame-src", "worker-src"}
    assert (answer.headers["x-frame-options"], answer.headers["cache-control"]) == ("SAMEORIGIN", "no-store")
