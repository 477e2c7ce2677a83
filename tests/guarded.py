"""No item, id or value reaches a log or a label of a metric, whatever a test does: looked at wherever any is written.

Items of test worlds are such as `item3`. What a line may hold is in the product's allow-lists; looked at here is what
passed them. Labels are names, and of steps of jobs words without a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

import pytest
from prometheus_client.metrics import MetricWrapperBase

from link.logs.structured import EVERY, OnlyAllowed
from party.node.logs import KINDS as OF_NODES
from party.services.metrics.metrics import LABELS
from relay.log import KINDS as OF_RELAYS

ITEM: Final = re.compile(r"\bitem_?\d")
KEYS: Final = {*EVERY, *OF_NODES, *OF_RELAYS, "sentence", "error_party", "told_by", "type", "places", "withheld"}
SHAPES: Final = {
    "peer": re.compile(r"[A-Za-z0-9 _./-]{0,200}"),
    "task": re.compile(r"[a-z-]{1,60}"),
    "step": re.compile(r"[^0-9]{1,300}"),
    "code": re.compile(r"OK|E\d{3}|[a-z_]{1,40}"),
}
_ID: Final = re.compile(r"[0-9a-f]{12}")

found: list[str] = []
"""What reached a log or a label in the test that runs, and may not."""


def look_at_line(line: Mapping[str, Any]) -> None:
    """Looks at a line of a log."""
    for key, value in line.items():
        if key not in KEYS or ITEM.search(str(value)):
            found.append(f"the log has {key} = {value!r}")


def look_at_labels(names: tuple[str, ...], values: tuple[str, ...]) -> None:
    """Looks at the labels of a metric."""
    for name, value in zip(names, values, strict=False):
        right = name in LABELS and SHAPES[name].fullmatch(value) and not ITEM.search(value) and not _ID.search(value)
        if not right:
            found.append(f"a metric has the label {name} = {value!r}")


def watch(patch: pytest.MonkeyPatch) -> None:
    """Looks at all lines and labels from now on."""
    line, init, labels = OnlyAllowed.__call__, MetricWrapperBase.__init__, MetricWrapperBase.labels
    names: WeakKeyDictionary[MetricWrapperBase, tuple[str, ...]] = WeakKeyDictionary()

    def watched_line(self: OnlyAllowed, logger: object, method: str, event: Mapping[str, Any]) -> dict[str, Any]:
        kept = line(self, logger, method, event)
        look_at_line(kept)
        return kept

    def noted(self: MetricWrapperBase, *more: Any, **named: Any) -> None:
        names[self] = tuple(named["labelnames"] if "labelnames" in named else more[2] if len(more) > 2 else ())
        init(self, *more, **named)

    def watched_labels(self: MetricWrapperBase, *values: Any, **named: Any) -> Any:
        look_at_labels(tuple(named) or names[self], tuple(map(str, values or named.values())))
        return labels(self, *values, **named)

    patch.setattr(OnlyAllowed, "__call__", watched_line)
    patch.setattr(MetricWrapperBase, "__init__", noted)
    patch.setattr(MetricWrapperBase, "labels", watched_labels)


def taken() -> Iterator[str]:
    """What was found, which is then forgotten."""
    while found:
        yield found.pop()
