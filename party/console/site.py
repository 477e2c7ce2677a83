"""The console of one node."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from console.accounts import FILE, Accounts
from console.push import pages as notifications
from console.push.subscriptions import FILE as SUBSCRIPTIONS
from console.push.subscriptions import Subscriptions
from console.settings import ConsoleSection
from console.site import Site
from jobs.audit.events import Event
from link.logs.structured import Log
from party.config import PartyConfig
from party.console import audit, budgets, collections, datasets, health, inbox, jobs, peers, policy, releases, results
from party.jobs.planning.kept_speed import OF_THIS_MACHINE
from party.own_log import own_log

_TEMPLATES: Final = Path(__file__).parent / "templates"
_PAGES: Final = (
    inbox,
    jobs,
    results,
    datasets,
    policy,
    budgets,
    releases,
    collections,
    peers,
    audit,
    health,
)


def accounts_of(config: PartyConfig) -> Accounts:
    """The accounts of a node's console; its audit log has every change of them."""
    return Accounts(config.party.state_dir / FILE, record=partial(_record, config))


def subscriptions_of(config: PartyConfig) -> Subscriptions:
    """Who is told by notifications; its audit log has who asks for them and who stops them."""
    services = () if config.console is None else config.console.push_services
    path = config.party.state_dir / SUBSCRIPTIONS
    return Subscriptions(path, accounts_of(config), services, partial(_record, config))


def _record(config: PartyConfig, event: Event) -> None:
    """Writes what people do into the node's audit log, whether or not it runs.

    Raises:
        ComineError: It cannot be written.
    """
    with own_log(config) as (audit, _):
        audit.append(event)


def site_of(config: PartyConfig, path: Path, log: Log) -> Site:
    """A node's console.

    Args:
        config: The node's file.
        path: Where that is; every page reads it anew, as commands do.
        log: Where it reports who enters, and faults.
    """
    settings = config.console or ConsoleSection()
    own = notifications.pages(subscriptions_of(config)) if settings.push else ()
    return Site(
        name=config.party.name,
        pages=(*(page for each in _PAGES for page in each.pages(path)), *own),
        templates=(_TEMPLATES,),
        accounts=accounts_of(config),
        log=log,
        settings=settings,
        record=lambda event: _record(PartyConfig.load(path), event),
        prepare=OF_THIS_MACHINE.speed,
    )
