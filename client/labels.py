"""The labels of a collection's domain, as its node sends them."""

from __future__ import annotations

import hashlib

from client.connection import Connection
from client.description import Description
from ldp.domain import Domain
from link.errors import ConfigurationError, MalformedMessage


def fetched(connection: Connection, found: Description) -> bytes:
    """The labels as lines, which are those that were announced.

    Raises:
        MalformedMessage: They are others.
        ComineError: The node cannot be reached.
    """
    lines = connection.labels(found.name)
    if hashlib.sha256(lines).digest() != found.domain_digest:
        raise MalformedMessage(
            f"the labels that {found.node} sent for '{found.name}' are not those that it announced", party=found.node
        )
    return lines


def domain_of(lines: bytes, found: Description) -> Domain:
    """The domain of labels.

    Raises:
        MalformedMessage: They are none.
    """
    try:
        return Domain.of(lines.decode().removesuffix("\n").split("\n"))
    except (UnicodeDecodeError, ConfigurationError):
        raise MalformedMessage(
            f"the labels that {found.node} sent for '{found.name}' are no domain", party=found.node
        ) from None
