"""Devices inside one test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from client.reporter import CollectionKey, FrequencyClient
from ldp.domain import Domain
from ldp.mechanism import Mechanism
from ldp.registry import oracle
from tests.client.node import HOUR, LABELS, PARTY, Direct, Node

KEY = CollectionKey(PARTY, "homepages")
DAY = 24 * HOUR


class Crash(BaseException):
    """The device stops."""


def device(folder: Path, node: Node, **more: Any) -> FrequencyClient:
    client = FrequencyClient.open(folder, clock=lambda: node.now, **more)
    for name in node.collections:
        client.follow(Direct(node), name)
    return client


def grr(epsilon: float = 1.0) -> Mechanism[Any]:
    return oracle("grr", Domain(4, LABELS), epsilon)
