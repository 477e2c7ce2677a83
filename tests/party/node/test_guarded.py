"""What looks at logs and labels in all tests sees what may not be there."""

from __future__ import annotations

import io

import pytest
from prometheus_client import CollectorRegistry, Counter

from link.errors import ConfigurationError
from party.node.logs import open_log
from tests import guarded


@pytest.mark.parametrize("sentence", ["the item item3 is rare", "item_7 occurs 12 times"])
def test_an_item_in_a_sentence_is_seen(sentence: str) -> None:
    open_log("north", io.StringIO()).error("job failed", error=ConfigurationError(sentence))
    assert list(guarded.taken()) == [f"the log has sentence = {sentence!r}"]


@pytest.mark.parametrize(
    ("label", "value"),
    [("dataset", "baskets"), ("peer", "item3"), ("step", "itemsets of 3"), ("code", "E12"), ("task", "0123456789ab")],
)
def test_a_label_that_says_too_much_is_seen(label: str, value: str) -> None:
    Counter("comine_told", "A counter.", (label,), registry=CollectorRegistry()).labels(value).inc()
    assert list(guarded.taken()) == [f"a metric has the label {label} = {value!r}"]


def test_what_may_be_there_is_not_seen() -> None:
    open_log("north", io.StringIO()).info("job started", job="ab" * 32, task="itemsets", peers=2)
    Counter("comine_told", "A counter.", ("peer", "code"), registry=CollectorRegistry()).labels("north", "E200").inc()
    assert list(guarded.taken()) == []
