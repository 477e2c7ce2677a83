"""Addresses of the internet, as one compares them."""

from __future__ import annotations

import ipaddress


def plain(address: str) -> str:
    """An address as one writes it; IPv4 inside IPv6 is IPv4."""
    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return str(mapped or found)


def network(address: str) -> str:
    """What one host can choose its addresses from: an address, or the /64 of IPv6."""
    found = ipaddress.ip_address(address)
    return address if found.version == 4 else str(ipaddress.ip_network((found, 64), strict=False).network_address)
