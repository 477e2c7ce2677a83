"""The proxy for web traffic that the environment names for the way to a relay."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.request import getproxies, proxy_bypass

from websockets.exceptions import InvalidProxy
from websockets.proxy import parse_proxy
from websockets.uri import parse_uri

from link.errors import ConfigurationError
from link.relay.address import RelayAddress

_ADVICE: Final = "name one such as http://proxy.example:3128 in https_proxy, or the relay's host in no_proxy"


class WebProxy(NamedTuple):
    """A proxy that connects by HTTP CONNECT.

    Attributes:
        url: As the environment has it, perhaps with a password.
        place: HOST:PORT.
    """

    url: str
    place: str


def proxy_to(relay: RelayAddress) -> WebProxy | None:
    """The proxy before a relay; None where there is none.

    Raises:
        ConfigurationError: The environment names one that cannot be used.
    """
    uri = parse_uri(f"wss://{relay.place}/")
    url = getproxies().get("https")
    if url is None or proxy_bypass(f"{uri.host}:{uri.port}"):
        return None
    try:
        proxy = parse_proxy(url)
    except (InvalidProxy, ValueError):  # whose words may have the password
        raise ConfigurationError(f"the proxy before {relay} has no address that can be used; {_ADVICE}") from None
    if not proxy.scheme.startswith("http"):
        raise ConfigurationError(
            f"the proxy before {relay} is one for SOCKS, but only those for HTTP CONNECT are used; {_ADVICE}"
        )
    return WebProxy(url, f"{proxy.host}:{proxy.port}")
