"""The names in a certificate: who its holder is, and under which hosts a party's node is reached."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from typing import Final

from cryptography import x509

from link.errors import ConfigurationError
from link.pki.identity import ROLES, SCHEME, Role, check_name

_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?)*")


def names_of(name: str, role: Role, hosts: Sequence[str]) -> list[x509.GeneralName]:
    """The subject alternative names of a member.

    Raises:
        ConfigurationError: The name, role or a host is not possible.
    """
    check_name(name)
    if role not in ROLES:
        raise ConfigurationError(f"'{role}' is not a role; use {' or '.join(ROLES)}")
    if role != "party" and hosts:
        raise ConfigurationError(f"a {role} answers no calls; leave its hosts away")
    names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(f"{SCHEME}{role}/{name}")]
    if role == "party":
        names += [x509.DNSName(name), *(_host(host) for host in dict.fromkeys(hosts) if host != name)]
    return names


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    if len(host) > 253 or _HOST.fullmatch(host) is None:
        raise ConfigurationError(
            f"'{host[:80]}' is neither a host name nor an IP address; give it without port or path"
        )
    return x509.DNSName(host)
