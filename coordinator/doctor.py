"""Checks a federation: is every party reachable, identified, ready, and of one mind about versions, time and trust?

What hinders jobs is a problem; what will hinder them before long, or weakens trust, is a warning.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from cryptography import x509
from grpc_health.v1 import health_pb2, health_pb2_grpc

from coordinator.jobs.client import HERE, PartyClient, check_versions
from coordinator.node_client import REACH_S
from jobs.federation import Credentials
from link.clocks import TOLERANCE_S, check_clocks
from link.errors import ComineError, ConfigurationError, PeerError
from link.pki.certificates import read_certificate
from link.pki.identity import Identity, check_span
from link.relay.address import shown
from link.relay.gateway import SOCKET, local_address

_FEW_DAYS: Final = 30


@dataclass(frozen=True, slots=True)
class Check:
    """What was found out about one party.

    Attributes:
        party: Its name in the federation file.
        address: Where it was looked for.
        reachable: Whether anything of it answers.
        identified: Whether it has proved to be this party, and accepts the coordinator.
        ready: Whether its services say that they serve.
        software: Its version of comine.
        days_left: Days until its certificate expires.
        clock_s: Seconds by which its clock is ahead of the coordinator's.
        revocations: Number of the list of revoked certificates that it applies; 0 without one.
        warnings: What should be looked after, for people.
        problem: What is wrong, for people; empty where all is well.
        code: The error's code.
        exit_code: What `comine doctor` ends with because of it.
    """

    party: str
    address: str
    reachable: bool = False
    identified: bool = False
    ready: bool = False
    software: str = ""
    days_left: float | None = None
    clock_s: int | None = None
    revocations: int | None = None
    warnings: tuple[str, ...] = ()
    problem: str = ""
    code: str = ""
    exit_code: int = 0

    def as_data(self) -> dict[str, Any]:
        """The check as JSON values."""
        return asdict(self)


async def examine(identity: Identity, credentials: Credentials, addresses: Mapping[str, str]) -> list[Check]:
    """Checks all parties at once, in a few seconds at most.

    Args:
        identity: The coordinator.
        credentials: Its files.
        addresses: HOST:PORT by party.
    """
    tls = _tls(credentials)
    found = await asyncio.gather(*(_examine(identity, tls, party, address) for party, address in addresses.items()))
    checks = _with_version_warnings(_with_clock_warnings(list(found)))
    latest = max(identity.trust.number, *(check.revocations or 0 for check in checks))
    return [replace(check, warnings=(*check.warnings, *_warnings(check, latest))) for check in checks]


def own_warnings(identity: Identity, checks: Sequence[Check]) -> tuple[str, ...]:
    """What should be looked after at the coordinator itself.

    Args:
        identity: The coordinator.
        checks: What was found out about the parties.
    """
    latest = max((check.revocations or 0 for check in checks), default=0)
    found = [
        _expires("the coordinator's certificate", days_left(identity.certificate_pem)),
        _expires("the authority's certificate", days_left(identity.trust.ca_pem)),
        identity.trust.warning,
        _behind("the coordinator", identity.trust.number, latest),
    ]
    return tuple(filter(None, found))


def days_left(certificate_pem: bytes) -> float:
    """Days until a certificate expires."""
    return _days(read_certificate(certificate_pem))


def _warnings(check: Check, latest: int) -> list[str]:
    found = [_expires(f"the certificate of {check.party}", check.days_left)]
    if check.revocations is not None:
        found.append(_behind(check.party, check.revocations, latest))
    return list(filter(None, found))


def _expires(what: str, days: float | None) -> str:
    if days is None or not 0 <= days < _FEW_DAYS:
        return ""
    return f"{what} expires in {days:.0f} days; have a new one issued"


def _behind(who: str, number: int, latest: int) -> str:
    if number >= latest:
        return ""
    applies = f"list number {number}" if number else "no list"
    return f"{who} applies {applies} of revoked certificates and others number {latest}; copy the latest ca.crl there"


async def _examine(identity: Identity, tls: ssl.SSLContext, party: str, address: str) -> Check:
    days = await _certificate_days(tls, party, local_address(identity, party, address))
    check = Check(party, shown(address), days_left=days)
    client = PartyClient(identity, party, address)
    try:
        description, ahead_s, certificate = await client.describe()
        check = replace(
            check,
            reachable=True,
            identified=True,
            software=description.software,
            revocations=description.revocations,
        )
        check_versions(party, description)
        if description.now:
            check = replace(check, clock_s=round(ahead_s))
        check_span(certificate, party, 0)
        health = health_pb2_grpc.HealthStub(client.channel)
        answer = await client.call(health.Check(health_pb2.HealthCheckRequest(), timeout=REACH_S))
        if answer.status != health_pb2.HealthCheckResponse.SERVING:
            raise PeerError(
                f"{party} is up but not ready: it starts or stops, or its disk fails; see its log", party=party
            )
        return replace(check, ready=True)
    except ComineError as error:
        reachable = check.reachable or check.days_left is not None or error.code != PeerError.code
        return replace(_failed(check, error), reachable=reachable)
    finally:
        await client.close()


def _failed(check: Check, error: ComineError) -> Check:
    return replace(check, ready=False, problem=error.message, code=error.code, exit_code=error.exit_code)


def _with_clock_warnings(checks: list[Check]) -> list[Check]:
    """Finds parties whose clocks are wrong, and warns of two that are far apart though neither hinders jobs."""
    known = [check for check in checks if check.clock_s is not None and not check.problem]
    try:
        check_clocks({check.party: check.clock_s or 0 for check in known}, HERE)
    except ConfigurationError as error:
        wrong = [check for check in known if error.party in (check.party, None)]  # None: nobody can work so
        return _with_clock_warnings([_failed(check, error) if check in wrong else check for check in checks])
    if len(known) < 2:
        return checks
    first, last = (pick(known, key=lambda check: check.clock_s or 0) for pick in (min, max))
    apart = (last.clock_s or 0) - (first.clock_s or 0)
    if apart <= TOLERANCE_S:
        return checks
    warning = f"the clocks of {first.party} and {last.party} are {apart} s apart; set both by a time server"
    return [
        replace(check, warnings=(*check.warnings, warning)) if check in (first, last) else check for check in checks
    ]


def _with_version_warnings(checks: list[Check]) -> list[Check]:
    """Warns of parties whose version of comine is not that of the first; those that cannot work together are unwell."""
    known = [check for check in checks if check.software and not check.problem]
    return [
        replace(check, warnings=(*check.warnings, _unlike(check, known[0])))
        if check in known and check.software != known[0].software
        else check
        for check in checks
    ]


def _unlike(check: Check, first: Check) -> str:
    return (
        f"{check.party} runs comine {check.software}, {first.party} runs {first.software}; they understand each other, "
        "but bring all to one version: a job that was lost goes on from its levels only where the versions are the same"
    )


def _tls(credentials: Credentials) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=credentials.ca)
    context.load_cert_chain(credentials.certificate, credentials.key)
    context.set_alpn_protocols(["h2"])
    return context


async def _certificate_days(tls: ssl.SSLContext, party: str, address: str) -> float | None:
    """Days left to the certificate shown at an address, where one that TLS accepts is shown."""
    try:
        async with asyncio.timeout(REACH_S):
            if address.startswith(SOCKET):
                path = address.removeprefix(SOCKET)
                _, writer = await asyncio.open_unix_connection(path, ssl=tls, server_hostname=party)
            else:
                host, _, port = address.rpartition(":")
                _, writer = await asyncio.open_connection(host.strip("[]"), int(port), ssl=tls, server_hostname=party)
    except (OSError, TimeoutError):
        return None
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()  # a farewell of TLS might outlast the event loop
    try:
        return _days(read_certificate(shown or b"", der=True))
    except ValueError:
        return None


def _days(certificate: x509.Certificate) -> float:
    return (certificate.not_valid_after_utc - dt.datetime.now(dt.UTC)) / dt.timedelta(days=1)
