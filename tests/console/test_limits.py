"""How long sessions last, how often somebody may try, and where a console may answer."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

import console
from console.lists import part_of
from console.roles import Person
from console.sessions import IDLE_S, LONGEST_S, MOST, Sessions
from console.settings import ConsoleSection, is_loopback
from console.throttle import MOST_KEPT, PERIOD_S, Throttle

ANNA = Person("anna", "approver")


class Clock:
    """Seconds that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_session_ends_unused_and_at_last_in_any_case() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    token = sessions.begin(ANNA, local=True)
    clock.now = IDLE_S - 1
    assert sessions.find(token) is not None
    clock.now += IDLE_S - 1
    assert sessions.find(token, use=False) is not None
    clock.now += 1
    assert sessions.find(token) is None
    clock.now = 0.0
    token = sessions.begin(ANNA, local=True)
    while clock.now < LONGEST_S:
        assert sessions.find(token) is not None
        clock.now += IDLE_S / 2
    assert sessions.find(token) is None


def test_sessions_are_not_more_than_the_memory_is_for() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    tokens = list[str]()
    for clock.now in range(MOST + 1):
        tokens.append(sessions.begin(ANNA, local=True))
    assert [sessions.find(token) is not None for token in (tokens[0], tokens[1], tokens[-1])] == [False, True, True]
    assert len(set(tokens)) == len(tokens)


def test_attempts_are_counted_before_they_are_made_and_forgotten_in_time() -> None:
    clock = Clock()
    throttle = Throttle(clock)
    assert [throttle.take("anna", "192.0.2.1") for _ in range(11)] == [0.0] * 10 + [PERIOD_S]
    assert throttle.take("bert", "192.0.2.1") == 0
    clock.now = PERIOD_S
    assert throttle.take("anna", "192.0.2.1") == 0
    for _ in range(9):
        throttle.take("anna", "192.0.2.1")
    throttle.succeeded("anna")
    assert throttle.take("anna", "192.0.2.1") == 0


def test_hosts_of_one_ipv6_network_are_counted_together() -> None:
    throttle = Throttle(Clock())
    waits = [throttle.take(f"name{number}", f"2001:db8::{number:x}") for number in range(51)]
    assert waits == [0.0] * 50 + [PERIOD_S]
    assert throttle.take("another", "2001:db8:0:1::1") == 0


def test_counts_are_not_more_than_the_memory_is_for() -> None:
    throttle = Throttle(Clock())
    for number in range(MOST_KEPT + 10):
        throttle.take(str(number), f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert len(throttle.counts) == MOST_KEPT


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "[::1]", "localhost"])
def test_what_is_at_the_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "192.0.2.1", "localhost.example", "127.0.0.1.example", "1", ""])
def test_what_is_not(host: str) -> None:
    assert not is_loopback(host)


TLS = {"certificate": "console.crt", "key": "console.key"}
OIDC = {"issuer": "https://login.example", "client_id": "comine", "roles": {"all": "viewer"}}
WRONG = [
    ({"listen": "192.0.2.1:8470"}, "needs TLS"),
    ({"listen": "0.0.0.0:8470", **TLS}, "needs an origin"),
    ({"listen": "0.0.0.0:8470", **TLS, "origin": "http://127.0.0.1:8470"}, "begins with https"),
    ({"certificate": "console.crt"}, "need each other"),
    ({"origin": "http://console.example"}, "must begin with https"),
    ({"origin": "https://console.example/path"}, "no path"),
    ({"origin": "https://anna@console.example"}, "no path, no user"),
    ({"oidc": {**OIDC, "issuer": "http://login.example"}}, "must begin with https"),
    ({"oidc": {**OIDC, "roles": {}}}, "at least 1 item"),
    ({"oidc": {**OIDC, "roles": {"all": "root"}}}, "'viewer', 'approver' or 'administrator'"),
]


@pytest.mark.parametrize(("table", "words"), WRONG)
def test_settings_under_which_a_console_would_be_open_are_refused(table: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(words)):
        ConsoleSection.model_validate(table)


@pytest.mark.parametrize(
    ("table", "origins"),
    [
        ({}, ("http://127.0.0.1:8470", "http://localhost:8470")),
        ({"listen": "[::1]:80"}, ("http://[::1]", "http://localhost")),
        ({"listen": "console.example:443", **TLS}, ("https://console.example",)),
        (
            {"listen": "0.0.0.0:8470", **TLS, "origin": "https://Console.example:8470"},
            ("https://console.example:8470",),
        ),
        ({"origin": "https://console.example"}, ("https://console.example",)),
    ],
)
def test_the_origins_of_a_console(table: dict[str, object], origins: tuple[str, ...]) -> None:
    settings = ConsoleSection.model_validate(table)
    assert settings.origins(settings.port) == origins


@pytest.mark.parametrize(
    ("asked", "number", "first"),
    [("", 1, 0), ("2", 2, 50), ("99", 3, 100), ("0", 1, 0), ("-1", 1, 0), ("9" * 99, 1, 0)],
)
def test_a_list_is_shown_in_parts(asked: str, number: int, first: int) -> None:
    part = part_of(range(120), {"page": asked})
    assert (part.number, part.parts, part.total, part.rows[0]) == (number, 3, 120, first)


def test_the_library_is_the_one_that_is_named() -> None:
    folder = Path(console.__file__).parent / "static"
    digest = hashlib.sha256((folder / "htmx.min.js").read_bytes()).hexdigest()
    assert f"| `htmx.min.js` | `{digest}` |" in (folder / "README.md").read_text()
