"""Reports from a file: of one device, or of the clients of a gateway."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from client.budget import Budget
from client.connection import Connection
from client.fleet import Fleet, FleetDelivery
from client.gateway import GatewaySecret
from client.outcome import Delivery, LedgerState, Outcome
from client.reporter import FrequencyClient
from coordinator.frequency.service import address_of, check_open
from jobs.collections.spec import CollectionSpec
from link.errors import ComineError, ConfigurationError, InputDataError, PeerError, PolicyDenied, UsageError


class ClientFiles(NamedTuple):
    """The files of an identity."""

    ca: Path
    certificate: Path
    key: Path


def files_of(certificate: Path, key: Path | None, ca: Path | None) -> ClientFiles:
    """The files of an identity; by default the key and the authority's certificate lie beside the certificate."""
    return ClientFiles(
        certificate.with_name("ca.crt") if ca is None else ca,
        certificate,
        certificate.with_suffix(".key") if key is None else key,
    )


def connection_to(files: ClientFiles, addresses: Mapping[str, str], name: str, party: str | None) -> Connection:
    """A connection to the node that has a collection; without `party`, all are asked.

    Raises:
        IdentityError: The certificate is not valid.
        UsageError: Several nodes have one of that name.
        ConfigurationError: None has, or the federation has no such party, or the certificate is no client's.
        PeerError: None has, and not all could be asked.
    """
    if party is not None or len(addresses) == 1:
        party = next(iter(addresses)) if party is None else party
        return Connection.open(party, address_of(addresses, party), **files._asdict())
    found: list[str] = []
    unreachable: list[PeerError] = []
    for each, address in addresses.items():
        with Connection.open(each, address, **files._asdict(), attempts=1) as connection:
            try:
                connection.describe(name)
            except PeerError as error:
                unreachable.append(error)
            except ComineError:  # it has none of that name, or none for this client
                continue
            else:
                found.append(each)
    if len(found) > 1:
        raise UsageError(f"{' and '.join(found)} have '{name}'; name one with --node")
    if not found and unreachable:
        raise unreachable[0]
    if not found:
        raise ConfigurationError(
            f"no node of the federation has a collection '{name}' that takes this client's reports; ask who created it"
        )
    return Connection.open(found[0], addresses[found[0]], **files._asdict())


def typed(values: Sequence[str], spec: CollectionSpec) -> list[Any]:
    """Values of a file as the collection takes them: texts, whole numbers, or numbers for a mean.

    Raises:
        InputDataError: A line is not of that type.
    """
    section = spec.collection
    if section.mechanism == "1bit-mean":
        return _numbers(values, float, "a number")
    if section.integer_bits is not None or (section.size is not None and not section.labelled):
        return _numbers(values, int, "a whole number")
    return list(values)


def _numbers(values: Sequence[str], kind: type[int] | type[float], what: str) -> list[Any]:
    found: list[Any] = []
    for line, value in enumerate(values, start=1):
        try:
            found.append(kind(value))
        except ValueError:
            raise InputDataError(f"line {line} is not {what}, which the collection takes") from None
    return found


def with_ids(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """Lines as ids of clients and values, which a tab parts.

    Raises:
        InputDataError: A line has no tab, or no id before it.
    """
    ids, values = [], []
    for number, line in enumerate(lines, start=1):
        name, tab, value = line.partition("\t")
        if not name or not tab:
            raise InputDataError(f"line {number} is not the id of a client, a tab and its value")
        ids.append(name)
        values.append(value)
    return ids, values


def submit_as_gateway(
    connection: Connection,
    name: str,
    lines: Sequence[str],
    secret: Path | None,
    budget: str | None,
    tell: Callable[[int], None],
) -> FleetDelivery:
    """Reports each value for a client of the gateway.

    Args:
        connection: To the node.
        name: The collection.
        lines: Of a file: values of new clients; with a secret, ids and values.
        secret: The file of the gateway's secret, made where it is not there; None: clients have no ids.
        budget: What each client with an id may spend within a budget's span; None: what a device may.
        tell: Called with how many reports have a receipt.

    Raises:
        PolicyDenied: The collection is closed.
        ConfigurationError: The budget is no number, or below 0.
    """
    limits = Budget() if budget is None else Budget(budget)
    described = connection.describe(name)
    check_open(described)
    spec = CollectionSpec.from_canonical(described.spec)
    if secret is None:
        fleet, values = Fleet(len(lines)), lines
    else:
        ids, values = with_ids(lines)
        fleet = Fleet.of(ids, GatewaySecret.open(secret), budget=limits)
    return fleet.report(connection, name, typed(values, spec), tell=tell)


def submit_as_device(
    connection: Connection, name: str, folder: Path, value: str
) -> tuple[Outcome, Delivery, LedgerState | None]:
    """Reports one value, and delivers all that the device's outbox holds for the node.

    Args:
        connection: To the node.
        name: The collection.
        folder: The device's, made where it is not there.
        value: As it stands in a file.

    Returns:
        What became of the report, and of the outbox, and what the collection's ledger says, where it has one.

    Raises:
        PolicyDenied: The collection is closed.
    """
    described = connection.describe(name)
    check_open(described)
    spec = CollectionSpec.from_canonical(described.spec)
    with FrequencyClient.open(folder) as device:
        key = device.follow(connection, name)
        outcome = device.report(key, typed([value], spec)[0])
        ledger_state = device.ledger_state(key)
        return outcome, device.deliver(connection), ledger_state


def check_unchanged(changed: int) -> None:
    """Refuses to call it a success where clients were to report something else than before.

    Args:
        changed: Of how many clients nothing was sent for that.

    Raises:
        InputDataError: Of some.
    """
    if changed:
        raise InputDataError(
            f"{changed:,} clients have reported another value in this period already, or by another mechanism; nothing "
            "was sent of them, since two reports would reveal more than one: send their new values in the next period"
        )


def ledger_sentence(ledger_state: LedgerState) -> str:
    """What a collection's ledger says, for a person."""
    return (
        f"its reports to the collection have spent {float(ledger_state.spent):g} of "
        f"{float(ledger_state.epsilon):g} within {ledger_state.steps:,} windows"
    )


def ledger_as_data(ledger_state: LedgerState) -> dict[str, Any]:
    """The same for programs."""
    return {"spent": float(ledger_state.spent), "epsilon": float(ledger_state.epsilon), "windows": ledger_state.steps}


def check_taken(node: str, refused: int, of: int, sentences: Sequence[str]) -> None:
    """Refuses to call it a success where a node has refused reports.

    Args:
        node: Whose.
        refused: How many it refused.
        of: So many were sent.
        sentences: Why.

    Raises:
        PolicyDenied: It has refused some.
    """
    if refused:
        raise PolicyDenied(f"{node} refused {refused:,} of {of:,} reports: {'; '.join(sentences)}", party=node)
