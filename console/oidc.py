"""Logging in at a provider of OpenID Connect: the code flow with PKCE (RFC 7636), state and nonce, by Authlib."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final

from authlib.integrations.starlette_client import OAuth

from console.roles import ROLES, Person, Role, is_name
from console.sessions import fresh_token
from console.settings import OidcSection
from link.errors import ConfigurationError, IdentityError, PeerError

FLOW_S: Final = 600.0
MOST_FLOWS: Final = 1000
ANSWER_S: Final = 10.0
_SIGNED_BY: Final = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"})


class Provider:
    """One provider, and the logins that are under way there. To be used on the event loop only.

    Args:
        settings: Where it is, and whom it lets in.
        is_taken: Whether somebody has an account of this console by a name.
        now: Seconds that never go back.

    Raises:
        ConfigurationError: The file of the client's secret cannot be read.
    """

    def __init__(
        self, settings: OidcSection, is_taken: Callable[[str], bool], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings, self._is_taken, self._now = settings, is_taken, now
        self._flows: OrderedDict[str, tuple[float, dict[str, Any]]] = OrderedDict()
        self._client = OAuth().register(
            "provider",
            client_id=settings.client_id,
            client_secret=client_secret(settings),
            server_metadata_url=f"{settings.issuer.rstrip('/')}/.well-known/openid-configuration",
            client_kwargs={"scope": "openid profile email", "code_challenge_method": "S256", "timeout": ANSWER_S},
        )

    async def begin(self, back: str) -> tuple[str, str]:
        """Begins a login.

        Args:
            back: Where the provider sends the browser.

        Returns:
            Where to send the browser, and what it has to hold until it comes back.

        Raises:
            PeerError: The provider does not answer as such.
        """
        await self._metadata()
        asked = await self._client.create_authorization_url(back)
        while len(self._flows) >= MOST_FLOWS:
            self._flows.popitem(last=False)
        token = fresh_token()
        self._flows[token] = (self._now(), {**asked, "back": back})
        return asked["url"], token

    async def finish(self, token: str, answer: Mapping[str, str]) -> Person:
        """Who comes back from the provider.

        Args:
            token: What the browser held.
            answer: What the provider has it say.

        Raises:
            IdentityError: It is nobody who may enter, or the login was not begun here.
            PeerError: The provider does not answer as such.
        """
        began, flow = self._flows.pop(token, (0.0, {}))  # once
        if not flow or self._now() - began >= FLOW_S or answer.get("state") != flow["state"]:
            raise IdentityError("this login was not begun here, or took too long; begin it anew")
        if "code" not in answer or answer.get("iss", self._settings.issuer) != self._settings.issuer:
            raise IdentityError("the provider did not let you in; ask its administrator")
        await self._metadata()
        try:
            received = await self._client.fetch_access_token(
                flow["back"], code=answer["code"], code_verifier=flow["code_verifier"]
            )
            claims = await self._client.parse_id_token(received, nonce=flow["nonce"])
        except Exception as error:  # whatever a provider may answer, and whatever the libraries make of it
            raise IdentityError("the provider's answer does not hold; begin the login anew") from error
        if claims is None:
            raise IdentityError("the provider's answer does not say who you are; ask its administrator")
        return self._person(claims)

    def _person(self, claims: Mapping[str, Any]) -> Person:
        settings, name = self._settings, claims.get(self._settings.name)
        if not isinstance(name, str) or not is_name(name):
            raise IdentityError(f"the provider says nothing in '{settings.name}' that can be a name here")
        if settings.name == "email" and claims.get("email_verified") is not True:
            raise IdentityError("the provider has not verified your e-mail address; have it do so")
        if self._is_taken(name):
            raise IdentityError("an account of this console has your name; log in with its password")
        values = claims.get(settings.claim)
        held = values if isinstance(values, list) else [values]
        roles: list[Role] = [
            settings.roles[value] for value in held if isinstance(value, str) and value in settings.roles
        ]
        if not roles:
            raise IdentityError("you have no role at this console; ask who runs it")
        return Person(name, max(roles, key=ROLES.index))

    async def _metadata(self) -> None:
        """Reads once where the provider answers, and how it signs."""
        if "_loaded_at" in self._client.server_metadata:
            return
        try:
            found = await self._client.load_server_metadata()
            signs = _SIGNED_BY.intersection(found.get("id_token_signing_alg_values_supported", ["RS256"]))
            places = [found[f"{name}_endpoint"] for name in ("authorization", "token")]
            if found["issuer"] != self._settings.issuer or not signs or not all(places):
                raise ValueError
            found["id_token_signing_alg_values_supported"] = sorted(signs)
        except Exception as error:
            self._client.server_metadata.clear()
            raise PeerError("the provider cannot be asked now; try again, or log in with a password") from error


def client_secret(settings: OidcSection) -> str | None:
    """The secret of the console at the provider; None of a public client.

    Raises:
        ConfigurationError: Its file cannot be read.
    """
    if (path := settings.client_secret_file) is None:
        return None
    try:
        return path.read_text(encoding="utf-8").partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError):
        raise ConfigurationError(f"{path} cannot be read; [console.oidc] client_secret_file names it") from None
