"""The page on which people have this browser tell them what awaits them, or have it stop."""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import Any, Final

from console.push import vapid
from console.push.subscriptions import Subscription, Subscriptions
from console.site import GoOn, Page, Shown, Visit

PATH: Final = "/notifications"


def pages(subscriptions: Subscriptions) -> tuple[Page, ...]:
    """The page, and what its forms do; everybody manages their own browsers."""
    return (
        Page(PATH, partial(_show, subscriptions), title="Notifications"),
        Page(f"{PATH}/subscribe", partial(_subscribe, subscriptions), acts=True),
        Page(f"{PATH}/{{subscription}}/remove", partial(_remove, subscriptions), acts=True),
    )


def _show(subscriptions: Subscriptions, visit: Visit) -> Shown:
    own = [_line(subscriptions, each) for each in subscriptions.of(visit.person.name)]
    return Shown("notifications.html.j2", {"own": own, "key": vapid.public_of(subscriptions.key())})


def _line(subscriptions: Subscriptions, subscription: Subscription) -> dict[str, Any]:
    return {
        "id": subscription.id,
        "service": subscriptions.place_of(subscription).host,
        "since": _day(subscription.since),
        "until": "" if subscription.until is None else _day(subscription.until),
    }


def _day(seconds: float) -> str:
    return f"{dt.datetime.fromtimestamp(seconds, dt.UTC):%Y-%m-%d}"


def _subscribe(subscriptions: Subscriptions, visit: Visit) -> GoOn:
    endpoint, key, secret = (visit.form.get(field, "") for field in ("endpoint", "key", "secret"))
    subscriptions.add(visit.person.name, endpoint, key, secret)
    return GoOn(PATH)


def _remove(subscriptions: Subscriptions, visit: Visit) -> GoOn:
    subscriptions.remove(visit.person.name, visit.params["subscription"])
    return GoOn(PATH)
