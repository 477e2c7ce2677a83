"""What `comine federation new` writes: the list of members that all of them share."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Final

from jobs.federation import Federation
from jobs.spec.toml import validate
from link.files.toml_text import quoted
from link.pki.identity import check_name

_HEAD: Final = """\
# Who belongs to the federation, and where. All parties and the coordinator use the same list, so agree on it.

[federation]
name = {name:<25}# for people
"""
_PARTY: Final = """
[[party]]
name = "{name}"
{address}# pin = "…"                     # its only certificate: the SHA-256 that `comine pki show` prints
"""
_ADDRESS: Final = "address = {address:<22}# HOST:PORT at which the others reach its node\n"
_RELAY: Final = """
[relay]                         # connects the parties that have no address: their nodes only dial out
address = {address:<22}# HOST:PORT
# name = "…"                    # what it calls itself, where that is not HOST
# ca = "relay-ca.crt"           # who issued its certificate, where neither this machine nor the federation knows them
"""
_COORDINATOR: Final = """
[coordinator]                   # only used where jobs are started
ca = "pki/ca.crt"
certificate = "pki/{name}.crt"
key = {key:<26}# made there by: comine pki request {name} --role coordinator
state_dir = "jobs"              # where the coordinator keeps its jobs
"""


def render(name: str, parties: Mapping[str, str | None], coordinator: str, relay: str | None = None) -> str:
    """The text of a federation file.

    Args:
        name: What the federation is called.
        parties: HOST:PORT by party; None of those that the relay connects.
        coordinator: Who starts jobs.
        relay: HOST:PORT of the relay.

    Raises:
        ConfigurationError: A name or an address is not possible.
    """
    for member in (*parties, coordinator):
        check_name(member)
    text = _HEAD.format(name=quoted(name))
    for party, address in parties.items():
        written = "" if address is None else _ADDRESS.format(address=quoted(address))
        text += _PARTY.format(name=party, address=written)
    text += "" if relay is None else _RELAY.format(address=quoted(relay))
    text += _COORDINATOR.format(name=coordinator, key=f'"pki/{coordinator}.key"')
    validate(Federation, tomllib.loads(text), "the new federation file")
    return text
