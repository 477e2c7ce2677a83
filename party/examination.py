"""Is a node fit to start? Looks at all that `comine party serve` needs, and changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import errno
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from jobs.federation import Federation
from jobs.spec.toml import read_toml
from link.errors import ComineError
from link.pki.certificates import read_certificate
from link.pki.identity import Identity
from link.relay.address import RelayAddress
from link.relay.calling import look
from party.config import DatasetSection, PartyConfig
from party.data.dataset_check import DatasetCheck, check_dataset
from party.data.shared_sources import check_sources
from party.data.sources import BLOCKS
from party.identity import check_identity
from party.node.health import check
from party.node.probe import write_fault
from party.policy.privacy_budget import NAMES, short
from party.policy.rules import FORMER
from party.state.database import KEEP, in_use, is_locked
from party.state.node_database import FILE

Status = Literal["ok", "warning", "problem"]

SOON_DAYS: Final = 30


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found out about one thing that the node needs.

    Attributes:
        subject: The thing: configuration, federation, certificate, port, state, relay, privacy.
        status: `ok`; `warning`, which lets the node start; or `problem`.
        sentence: What was found, and for other than `ok` what to do.
    """

    subject: str
    status: Status
    sentence: str


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found out about a node.

    Attributes:
        party: Its name; None where its file cannot be read.
        findings: About the node.
        datasets: About its datasets.
    """

    party: str | None
    findings: tuple[Finding, ...]
    datasets: tuple[DatasetCheck, ...] = ()

    @property
    def fit(self) -> bool:
        """Whether the node can start, and read its datasets."""
        problems = [finding for finding in self.findings if finding.status == "problem"]
        return not problems and not any(dataset.problem for dataset in self.datasets)


def examine(party_toml: Path, *, show_items: bool = False) -> Examination:
    """Looks at a node's file and at all that it names.

    Args:
        party_toml: The node's file.
        show_items: Whether sentences may name items.
    """
    node = examine_node(party_toml)
    if node.party is None:
        return node
    config = PartyConfig.load(party_toml)
    datasets = (examine_dataset(config, dataset, show_items=show_items) for dataset in config.dataset)
    return replace(node, datasets=tuple(datasets))


def examine_node(party_toml: Path) -> Examination:
    """The same without its datasets, which may take long to read.

    Args:
        party_toml: The node's file.
    """
    try:
        config = PartyConfig.load(party_toml)
    except ComineError as error:
        return Examination(None, (Finding("configuration", "problem", _bare(error)),))
    findings = [_configuration(config, party_toml)]
    federation: Federation | None = None
    try:
        federation = Federation.load(config.party.federation)
        config.check_federation(federation)
        findings += _federation(config, federation)
    except ComineError as error:
        findings.append(Finding("federation", "problem", _bare(error)))
    try:
        identity = config.tls.identity(federation.pins if federation is not None else None)
        check_identity(identity, config)
        findings += _certificate(identity)
        if federation is not None and (relay := RelayAddress.parse(federation.addresses.get(config.party.name, ""))):
            findings.append(_relay(identity, relay))
    except ComineError as error:
        findings.append(Finding("certificate", "problem", _bare(error)))
    port, running = _port(config, party_toml)
    findings += [port, _state(config.party.state_dir, running), *_privacy(config), *_releases(config)]
    return Examination(config.party.name, tuple(findings))


def examine_dataset(config: PartyConfig, dataset: DatasetSection, *, show_items: bool = False) -> DatasetCheck:
    """Reads a dataset of a node as a job would, and looks at it.

    Args:
        config: The node's file.
        dataset: One of its datasets.
        show_items: Whether sentences may name items.
    """
    return check_dataset(
        dataset,
        config.policy_of(dataset.name),
        in_place_of_items=None if show_items else "… (--show-items shows which)",
        memory_share=config.party.memory_share,
        state=config.party.state_dir if config.party.state_dir.is_dir() else None,
        kept=config.party.state_dir / BLOCKS / dataset.name,
    )


def _bare(error: ComineError) -> str:
    return error.message.removesuffix(".")


def _configuration(config: PartyConfig, party_toml: Path) -> Finding:
    try:
        check_sources(config.dataset)
    except ComineError as error:
        return Finding("configuration", "problem", _bare(error))
    return Finding("configuration", "ok", f"{party_toml} can be read{_former(party_toml)}")


def _former(party_toml: Path) -> str:
    """Which rules the file still has that mean nothing any more, as the end of a sentence."""
    contents = read_toml(party_toml)
    tables = [contents.get("policy", {}), *(dataset.get("policy", {}) for dataset in contents.get("dataset", ()))]
    found = sorted(FORMER & set().union(*tables))
    return "".join(f"; the rule {rule} has no meaning any more, take it out" for rule in found)


def _federation(config: PartyConfig, federation: Federation) -> Iterator[Finding]:
    name, size = federation.federation.name, len(federation.party)
    yield Finding("federation", "ok", f"{config.party.name} is one of {size} parties of {name}")
    _, _, listened = (config.party.listen or "").rpartition(":")
    _, _, dialled = federation.addresses[config.party.name].rpartition(":")
    if RelayAddress.parse(federation.addresses[config.party.name]) is None and listened != dialled:
        yield Finding(
            "federation",
            "warning",
            f"the others dial port {dialled} and the node listens at port {listened}; unless something between maps "
            f"one to the other, make [party] listen and the address in {config.party.federation} agree",
        )
    if config.policy.min_parties is not None and size < config.policy.min_parties:
        yield Finding(
            "federation",
            "warning",
            f"no job can have min_parties = {config.policy.min_parties} while the federation has {size}; add the other "
            f"parties to {config.party.federation}",
        )


def _certificate(identity: Identity) -> Iterator[Finding]:
    until = read_certificate(identity.certificate_pem).not_valid_after_utc
    days = (until - dt.datetime.now(dt.UTC)).days
    if days < SOON_DAYS:
        yield Finding(
            "certificate",
            "warning",
            f"the certificate of {identity.name} expires on {until:%Y-%m-%d}; have a new one issued in time",
        )
    else:
        yield Finding("certificate", "ok", f"the certificate of {identity.name} is valid until {until:%Y-%m-%d}")
    if identity.trust.warning:
        yield Finding("certificate", "warning", identity.trust.warning)


def _port(config: PartyConfig, party_toml: Path) -> tuple[Finding, bool]:
    """What is found out about the port, and whether this very node runs there already."""
    listen, name = config.party.listen, config.party.name
    if listen is None:
        return Finding("port", "ok", f"{name} only dials out, and listens at the loopback alone"), _answers(party_toml)
    host, _, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        family, kind, number, _, address = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0]
        with contextlib.closing(socket.socket(family, kind, number)) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except socket.gaierror as error:
        sentence = f"{host} cannot be looked up ({error.strerror}); change [party] listen"
        return Finding("port", "problem", sentence), False
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            reason = os.strerror(error.errno or 0)
            sentence = f"{name} cannot listen at {listen} ({reason}); change [party] listen"
            return Finding("port", "problem", sentence), False
        if _answers(party_toml):
            return Finding("port", "ok", f"{name} is running already, at {listen}"), True
        sentence = f"another process holds {listen}; stop that process or change [party] listen"
        return Finding("port", "problem", sentence), False
    return Finding("port", "ok", f"{listen} is free"), False


def _relay(identity: Identity, relay: RelayAddress) -> Finding:
    """Whether the relay answers that connects the node."""
    try:
        asyncio.run(look(identity, relay))
    except ComineError as error:
        return Finding("relay", "problem", _bare(error))
    return Finding("relay", "ok", f"{relay} answers")


def _privacy(config: PartyConfig) -> Iterator[Finding]:
    """What `[dataset.privacy]` allows, and whether jobs that it cannot bound may run beside it."""
    for dataset in config.dataset:
        if (table := dataset.privacy) is None:
            continue
        written = [(name, total) for key, name in NAMES.items() if (total := getattr(table, key)) is not None]
        within = "" if table.period is None else f" within {table.period}"
        allowed = ", ".join(f"{name} {short(total)}" for name, total in written) or "any epsilon"
        yield Finding("privacy", "ok", f"{dataset.name} allows {allowed} for all jobs{within}")
        models = config.policy_of(dataset.name).models
        if written and "exact" not in table.model_fields_set and (models is None or "exact" in models):
            yield Finding(
                "privacy",
                "warning",
                f"jobs without noise may run on {dataset.name}, and no epsilon bounds what they reveal; write exact = "
                '"refuse" or "allow" under [dataset.privacy]',
            )


def _releases(config: PartyConfig) -> Iterator[Finding]:
    """Tables of which joint releases may be made, and of which nobody says what may be in them."""
    for dataset in config.dataset:
        policy = config.policy_of(dataset.name)
        if dataset.kind == "table" and "anonymize" in policy.tasks and policy.columns is None:
            yield Finding(
                "policy",
                "warning",
                f"jobs may release rows of {dataset.name}, and no rule says which of its columns, as they are or "
                "generalised; write columns under [dataset.policy]",
            )


def _answers(party_toml: Path) -> bool:
    """Whether this very node answers there, by its certificate."""
    try:
        asyncio.run(check(party_toml))
    except ComineError:
        return False
    return True


def _state(folder: Path, running: bool) -> Finding:
    """Whether the node can have its state folder.

    Args:
        folder: The folder.
        running: Whether this very node runs already, and so has it.
    """
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    if not nearest.is_dir():
        reason = "it is not a folder" if nearest == folder else f"{nearest} is not a folder"
    elif fault := write_fault(nearest):
        reason = fault
    elif not running and is_locked(folder / FILE):
        return Finding("state", "problem", _bare(in_use(folder / FILE)))
    else:
        made = "can be written" if nearest == folder else "can be made"
        return Finding("state", "ok", f"the state folder {folder} {made}")
    return Finding(
        "state",
        "problem",
        f"the state folder {folder} cannot be written ({reason}); see to its disk and owner, and {KEEP}",
    )
