"""Who enters by a provider of OpenID Connect, and who does not, whatever it and others answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from joserfc.jwk import ECKey

from console.app import application
from tests.console.provider import CLIENT, SECRET, Provider, provider
from tests.console.sites import ORIGIN, Board, browser_of, small_site
from tests.errors import fails
from tests.looped import looped

pytestmark = pytest.mark.turn(5)

ROLES = {"lookers": "viewer", "deciders": "approver"}
ANNA = {"email": "anna@north.example", "email_verified": True, "groups": ["others", "lookers", "deciders"]}


@pytest.fixture(scope="module")
def running() -> Iterator[Provider]:
    with provider() as found:
        yield found


@pytest.fixture
def honest(running: Provider) -> Provider:
    running.person, running.lies, running.signs_with = ANNA, {}, running.key
    return running


def oidc(folder: Path, of: Provider, **more: object) -> dict[str, object]:
    """The table of a console's settings."""
    (folder / "secret").write_text(f"{SECRET}\n")
    return {
        "issuer": of.issuer,
        "client_id": CLIENT,
        "client_secret_file": str(folder / "secret"),
        "roles": ROLES,
        **more,
    }


async def enter(client: httpx2.AsyncClient, *, change: Any = lambda place: place) -> httpx2.Response:
    """Goes to the provider and back, along whatever the redirections are changed to."""
    begun = await client.get("/login/oidc")
    async with httpx2.AsyncClient() as outside:
        back = (await outside.get(begun.headers["location"])).headers["location"]
    return await client.get(change(back), headers={"Sec-Fetch-Site": "cross-site"})


@looped
async def test_a_person_enters_by_name_and_role_of_the_provider(tmp_path: Path, honest: Provider) -> None:
    async with browser_of(small_site(tmp_path, Board(), oidc=oidc(tmp_path, honest))) as client:
        assert 'href="/login/oidc"' in (await client.get("/login")).text
        entered = await enter(client)
        assert entered.status_code == 200
        assert "samesite=strict" in entered.headers["set-cookie"].lower()
        assert "Seen by anna@north.example" in (await client.get("/board")).text
        assert (await client.post("/board/act", data={})).status_code == 303


CLAIMS = [
    ({"email_verified": False}, "has not verified"),
    ({"email_verified": "true"}, "has not verified"),
    ({"email": "policy"}, "nothing in 'email' that can be a name"),
    ({"email": ["anna@north.example"]}, "nothing in 'email' that can be a name"),
    ({"email": "anna\n@north.example"}, "nothing in 'email' that can be a name"),
    ({"groups": ["others"]}, "no role"),
    ({"groups": None}, "no role"),
    ({"groups": [["deciders"]]}, "no role"),
    ({"email": "Vera"}, "account of this console has your name"),
    ({"nonce": "another"}, "does not hold"),
    ({"nonce": None}, "does not hold"),
    ({"aud": "another"}, "does not hold"),
    ({"iss": "https://evil.example"}, "does not hold"),
    ({"exp": int(time.time()) - 3600}, "does not hold"),
]


@pytest.mark.parametrize(("claims", "words"), CLAIMS)
@looped
async def test_claims_that_do_not_hold_let_nobody_in(
    tmp_path: Path, honest: Provider, claims: dict[str, Any], words: str
) -> None:
    honest.lies = {"claims": claims}
    async with browser_of(small_site(tmp_path, Board(), oidc=oidc(tmp_path, honest))) as client:
        answer = await enter(client)
        assert answer.status_code == 403
        assert words in answer.text.replace("&#39;", "'")
        assert (await client.get("/board")).status_code == 303


@looped
async def test_tokens_that_others_or_nobody_signed_let_nobody_in(tmp_path: Path, honest: Provider) -> None:
    async with browser_of(small_site(tmp_path, Board(), oidc=oidc(tmp_path, honest))) as client:
        honest.signs_with = ECKey.generate_key("P-256", {"kid": "one"})
        assert (await enter(client)).status_code == 403
        for token in ("", None, "a.b.c", "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0."):
            honest.lies = {"token": {"id_token": token}}
            assert (await enter(client)).status_code == 403
        assert (await client.get("/board")).status_code == 303


@looped
async def test_a_login_ends_where_it_began_once(tmp_path: Path, honest: Provider) -> None:
    """A state, a code or a cookie of another login, and the same one again."""
    async with browser_of(site := small_site(tmp_path, Board(), oidc=oidc(tmp_path, honest))) as client:
        places = list[str]()

        def note(place: str) -> str:
            places.append(place)
            return place

        for change in (
            lambda place: place.replace("state=", "state=x"),
            lambda place: place.replace("code=", "code=x"),
            lambda place: place.replace("code=", "error="),
            lambda place: f"{place}&iss=https://evil.example",
        ):
            assert (await enter(client, change=change)).status_code == 403
        assert (await enter(client, change=note)).status_code == 200
        await client.post("/logout")
        assert (await client.get(places[0])).status_code == 403
        async with browser_of(site) as victim:  # who is sent to the end of a login that the attacker began
            assert (await victim.get(places[0])).status_code == 403
            assert (await victim.get("/board")).status_code == 303


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://evil.example"},
        {"id_token_signing_alg_values_supported": ["none", "HS256"]},
        {"authorization_endpoint": None},
    ],
)
@looped
async def test_a_provider_that_is_another_or_none_is_not_asked(
    tmp_path: Path, honest: Provider, metadata: dict[str, Any]
) -> None:
    honest.lies = {"metadata": metadata}
    async with browser_of(small_site(tmp_path, Board(), oidc=oidc(tmp_path, honest))) as client:
        answer = await client.get("/login/oidc")
        assert (answer.status_code, "The provider cannot be asked now" in answer.text) == (503, True)


@looped
async def test_names_and_roles_may_be_in_other_claims(tmp_path: Path, honest: Provider) -> None:
    honest.person = {"preferred_username": "anna.n", "kind": "deciders"}
    table = oidc(tmp_path, honest, name="preferred_username", claim="kind")
    async with browser_of(small_site(tmp_path, Board(), oidc=table)) as client:
        assert (await enter(client)).status_code == 200
        assert "Seen by anna.n" in (await client.get("/board")).text


def test_a_secret_that_cannot_be_read_is_told_at_the_start(tmp_path: Path, honest: Provider) -> None:
    table = oidc(tmp_path, honest) | {"client_secret_file": str(tmp_path / "nowhere")}
    with fails("E100"):
        application(small_site(tmp_path, Board(), oidc=table), (ORIGIN,))
