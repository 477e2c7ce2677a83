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
address = {address:<22}# HOST:PORT at which the others reach its node
# pin = "…"                     # its only certificate: the SHA-256 that `comine pki show` prints
"""
_COORDINATOR: Final = """
[coordinator]                   # only used where jobs are started
ca = "pki/ca.crt"
certificate = "pki/{name}.crt"
key = {key:<26}# made there by: comine pki request {name} --role coordinator
state_dir = "jobs"              # where the coordinator keeps its jobs
"""


def render(name: str, parties: Mapping[str, str], coordinator: str) -> str:
    """The text of a federation file.

    Args:
        name: What the federation is called.
        parties: HOST:PORT by party.
        coordinator: Who starts jobs.

    Raises:
        ConfigurationError: A name or an address is not possible.
    """
    for member in (*parties, coordinator):
        check_name(member)
    text = _HEAD.format(name=quoted(name))
    text += "".join(_PARTY.format(name=party, address=quoted(address)) for party, address in parties.items())
    text += _COORDINATOR.format(name=coordinator, key=f'"pki/{coordinator}.key"')
    validate(Federation, tomllib.loads(text), "the new federation file")
    return text
