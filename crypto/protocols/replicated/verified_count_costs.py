"""What counting rows among three costs where one may deviate; see `verified_counts`."""

from __future__ import annotations

from collections.abc import Mapping

from crypto.primitives.shares.replicated import Holders3
from crypto.protocols.replicated.count_circuits import and_bytes
from crypto.protocols.replicated.verified_costs import dealt_traffic, proved_traffic
from crypto.protocols.replicated.verified_sums import FEW
from link.traffic import Traffic


def columns_traffic(traffic: Traffic, holders: Holders3, numbers: Mapping[str, int], rows: int) -> None:
    """Enters `verified_counts.deal_columns`: 2 rounds."""
    dealt_traffic(traffic, holders, {party: max(1, number) for party, number in numbers.items()}, -(-rows // 8))


def count_traffic(traffic: Traffic, holders: Holders3, *, columns: int, rows: int, products: bool) -> None:
    """Enters `verified_counts.count`."""
    proved_traffic(traffic, holders, and_bytes(columns, rows, products=products, few=columns <= FEW))
