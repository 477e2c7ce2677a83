"""Whom a node knows: the members of its federation, who has proposed jobs to it, and until when certificates hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jobs.federation import Federation
from link.pki.certificates import read_certificate
from link.pki.issued import describe
from link.pki.trust import fingerprint
from party.config import PartyConfig
from party.policy.inbox import clock
from party.state.store import Record


def peers(config: PartyConfig, federation: Federation, latest: Iterable[Record]) -> dict[str, Any]:
    """All of them as JSON values, by the schema `comine.peers/1`.

    Args:
        config: The node's file.
        federation: Its federation.
        latest: The last job of each coordinator.

    Raises:
        ConfigurationError: A certificate cannot be read.
        IdentityError: It does not hold, or the list of revoked ones does not.
    """
    trust = config.tls.identity(federation.pins).trust
    return {
        "schema": "comine.peers/1",
        "party": config.party.name,
        "certificate": describe(config.tls.certificate).as_data(),
        "authority": describe(config.tls.ca).as_data(),
        "revocations": {"number": trust.number, "warning": trust.warning or None},
        "members": [
            {"name": name, "address": address, "pins": sorted(federation.pins.get(f"party/{name}", ()))}
            for name, address in federation.addresses.items()
        ],
        "coordinators": [_coordinator(record) for record in latest],
    }


def peers_rows(contents: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """The same for people: who, as what, reached where, and until when a certificate is valid or which is pinned."""
    own, authority = contents["certificate"], contents["authority"]
    rows = [("who", "as", "at", "certificate")]
    rows += [
        (authority["name"], "authority", "", f"valid until {authority['valid_until'][:10]}"),
        (own["name"], "this party", " ".join(own["hosts"]), f"valid until {own['valid_until'][:10]}"),
    ]
    for member in contents["members"]:
        if member["name"] != contents["party"]:
            pinned = " ".join(pin[:16] for pin in member["pins"])
            rows.append((member["name"], "party", member["address"], f"only {pinned}" if pinned else "any"))
    for each in contents["coordinators"]:
        rows.append((each["name"], "coordinator", "", f"valid until {each['valid_until'][:10]}"))
    return rows


def _coordinator(record: Record) -> dict[str, Any]:
    certificate = read_certificate(record.signed_proposal.certificate)
    return {
        "name": record.coordinator,
        "fingerprint": fingerprint(certificate),
        "valid_until": certificate.not_valid_after_utc.isoformat(),
        "last_job": record.job_id.hex(),
        "proposed": clock(record.received),
    }
