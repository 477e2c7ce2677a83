"""Who may do what with a collection: by the name in the caller's certificate, and what the collection's file allows."""

from __future__ import annotations

from jobs.collections.spec import CollectionSpec
from link.errors import PolicyDenied


def may_read(spec: CollectionSpec, creator: str, coordinator: str) -> bool:
    """Whether a coordinator may read estimates: the creator, and those that the collection names."""
    return coordinator == creator or coordinator in spec.access.read


def check_reader(spec: CollectionSpec, creator: str, coordinator: str, me: str) -> None:
    """Refuses a coordinator that may not read.

    Raises:
        PolicyDenied: It is neither the creator nor named under `[access] read`.
    """
    if not may_read(spec, creator, coordinator):
        raise PolicyDenied(
            f"the collection '{spec.name}' at {me} is for {creator} to read, and for those it names under [access] "
            f"read; '{coordinator}' is not among them",
            party=me,
        )


def check_closer(spec: CollectionSpec, creator: str, coordinator: str, me: str) -> None:
    """Refuses a coordinator that may not close a collection.

    Raises:
        PolicyDenied: It is not the creator.
    """
    if coordinator != creator:
        raise PolicyDenied(
            f"the collection '{spec.name}' at {me} was created by {creator}, who alone may close it", party=me
        )


def check_deleter(spec: CollectionSpec, creator: str, coordinator: str, me: str) -> None:
    """Refuses a coordinator that may not delete a collection.

    Raises:
        PolicyDenied: It is not the creator.
    """
    if coordinator != creator:
        raise PolicyDenied(
            f"the collection '{spec.name}' at {me} was created by {creator}, who alone may delete it", party=me
        )


def quota_of(spec: CollectionSpec, submitter: str) -> int:
    """How many reports of a submitter count in a period: a gateway's quota, 1 of a client, 0 where it may not."""
    access = spec.access
    if submitter in access.gateways:
        return access.gateways[submitter]
    return 1 if access.submit == "any" or submitter in access.submit else 0


def check_submitter(spec: CollectionSpec, submitter: str, me: str) -> int:
    """The quota of a submitter.

    Raises:
        PolicyDenied: It may not report to this collection.
    """
    quota = quota_of(spec, submitter)
    if not quota:
        raise PolicyDenied(
            f"the collection '{spec.name}' at {me} takes reports of those named under [access] only, and '{submitter}' "
            "is not among them",
            party=me,
        )
    return quota
