"""What a node shuffles: the `[shuffler]` table of its `party.toml`."""

from __future__ import annotations

from pydantic import Field

from jobs.federation import Name
from jobs.spec.toml import TomlTable
from ldp.shuffling.route import MAX_REPORT_BYTES, Route
from link.errors import PolicyDenied


class ShufflerSection(TomlTable):
    """The `[shuffler]` table; without it a node shuffles nothing.

    Attributes:
        min_batch: The least minimum that a route may have: fewer reports hide nobody.
        create: Coordinators that may create routes; all, where absent.
        gateways: Members that routes may name as gateways, such as `client/fleet`: their reports count as those of
            different people. None, where absent.
        max_routes: That are open at once.
        max_size: Bytes that a route's reports may have.
        max_batch: The largest maximum that a route may have.
        max_disk: Bytes that all routes together may take; beyond, no report, no batch and no route is taken.
        max_memory: Bytes that it may take which reports of open routes have come; beyond, no report and no batch is
            taken.
    """

    min_batch: int = Field(default=1000, ge=2)
    create: tuple[Name, ...] | None = None
    gateways: tuple[str, ...] = ()
    max_routes: int = Field(default=100, ge=1, le=10_000)
    max_size: int = Field(default=4096, ge=1, le=MAX_REPORT_BYTES)
    max_batch: int = Field(default=1 << 20, ge=2, le=1 << 24)
    max_disk: int = Field(default=10 << 30, ge=1 << 20)
    max_memory: int = Field(default=2 << 30, ge=1 << 10)


def check_route(policy: ShufflerSection, route: Route, coordinator: str, me: str, *, running: int) -> None:
    """Refuses a route that the policy does not allow.

    Args:
        policy: This node's.
        route: What is to be created.
        coordinator: Who asks.
        me: This party.
        running: How many routes are open.

    Raises:
        PolicyDenied: The sentence names the rule, and what would be allowed.
    """
    refusal = _refusal(policy, route, coordinator, running)
    if refusal is not None:
        raise PolicyDenied(f"the policy of {me} {refusal}", party=me)


def _refusal(policy: ShufflerSection, route: Route, coordinator: str, running: int) -> str | None:
    if policy.create is not None and coordinator not in policy.create:
        allowed = ", ".join(policy.create) or "nobody"
        return f"lets {allowed} create routes, and not '{coordinator}' (rule create)"
    unknown = [member for member, _ in route.gateways if member not in policy.gateways]
    if unknown:
        allowed = ", ".join(policy.gateways) or "nobody"
        return f"believes {allowed} to speak for many clients, and not '{unknown[0]}' (rule gateways)"
    if route.minimum < policy.min_batch:
        return (
            f"asks for batches of at least {policy.min_batch:,} (rule min_batch), and the route's are {route.minimum:,}"
        )
    if route.maximum > policy.max_batch:
        return (
            f"holds {policy.max_batch:,} reports of a batch at most (rule max_batch), and the route's have up to "
            f"{route.maximum:,}"
        )
    if route.size > policy.max_size:
        return f"allows reports of {policy.max_size:,} bytes (rule max_size), and the route's have {route.size:,}"
    if running >= policy.max_routes:
        return f"allows {policy.max_routes} open routes at once (rule max_routes); retire one first"
    return None
