"""Checks a federation: is every party reachable, identified, ready, and of one mind about versions and time?"""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from cryptography import x509
from grpc_health.v1 import health_pb2, health_pb2_grpc

from coordinator.client import REACH_S, PartyClient, check_versions
from jobs.federation import Credentials
from link.errors import ComineError, ConfigurationError, PeerError, VersionMismatch
from link.identity import Identity

_FEW_DAYS: Final = 30
_CLOCKS_S: Final = 300  # by which clocks may differ; beyond it certificates and proposals are misjudged


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
    problem: str = ""
    code: str = ""
    exit_code: int = 0

    def as_data(self) -> dict[str, Any]:
        """The check as JSON values."""
        return asdict(self)

    @property
    def warning(self) -> str:
        """What will go wrong before long."""
        if self.days_left is not None and 0 <= self.days_left < _FEW_DAYS:
            return f"its certificate expires in {self.days_left:.0f} days"
        return ""


async def examine(identity: Identity, credentials: Credentials, addresses: Mapping[str, str]) -> list[Check]:
    """Checks all parties at once, in a few seconds at most.

    Args:
        identity: The coordinator.
        credentials: Its files.
        addresses: HOST:PORT by party.
    """
    tls = _tls(credentials)
    found = await asyncio.gather(*(_examine(identity, tls, party, address) for party, address in addresses.items()))
    return _alike(list(found))


def days_left(certificate_pem: bytes) -> float:
    """Days until a certificate expires."""
    return _days(x509.load_pem_x509_certificate(certificate_pem))


async def _examine(identity: Identity, tls: ssl.SSLContext, party: str, address: str) -> Check:
    check = Check(party, address, days_left=await _certificate_days(tls, party, address))
    client = PartyClient(identity, party, address)
    try:
        description = await client.describe()
        check = replace(check, reachable=True, identified=True, software=description.software)
        check_versions(party, description)
        if description.now:
            check = replace(check, clock_s=description.now - int(time.time()))
            _check_clock(check)
        health = health_pb2_grpc.HealthStub(client.channel)
        answer = await client.call(health.Check(health_pb2.HealthCheckRequest(), timeout=REACH_S))
        if answer.status != health_pb2.HealthCheckResponse.SERVING:
            raise PeerError(f"{party} is up but not ready; see its log", party=party)
        return replace(check, ready=True)
    except ComineError as error:
        reachable = check.reachable or check.days_left is not None or error.code != PeerError.code
        return replace(check, reachable=reachable, problem=error.message, code=error.code, exit_code=error.exit_code)
    finally:
        await client.close()


def _check_clock(check: Check) -> None:
    if check.clock_s is not None and abs(check.clock_s) > _CLOCKS_S:
        apart = "ahead of" if check.clock_s > 0 else "behind"
        raise ConfigurationError(
            f"the clock of {check.party} is {abs(check.clock_s) // 60} minutes {apart} the coordinator's; set both by "
            "a time server",
            party=check.party,
        )


def _alike(checks: list[Check]) -> list[Check]:
    """Marks the parties whose version of comine is not that of the first."""
    first = next((check for check in checks if check.software), None)
    if first is None:
        return checks
    return [
        replace(
            check,
            problem=f"{check.party} runs comine {check.software}, {first.party} runs {first.software}; update both",
            code=VersionMismatch.code,
            exit_code=VersionMismatch.exit_code,
        )
        if check.software and check.software != first.software and not check.problem
        else check
        for check in checks
    ]


def _tls(credentials: Credentials) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=credentials.ca)
    context.load_cert_chain(credentials.certificate, credentials.key)
    context.set_alpn_protocols(["h2"])
    return context


async def _certificate_days(tls: ssl.SSLContext, party: str, address: str) -> float | None:
    """Days left to the certificate shown at an address, where one that TLS accepts is shown."""
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(REACH_S):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port), ssl=tls, server_hostname=party)
    except (OSError, TimeoutError):
        return None
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return _days(x509.load_der_x509_certificate(shown))


def _days(certificate: x509.Certificate) -> float:
    return (certificate.not_valid_after_utc - dt.datetime.now(dt.UTC)) / dt.timedelta(days=1)
