"""The page of a collection: what it says of estimates, rounds and refusals, and that names stay text."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from crypto.primitives.randomness import Randomness
from jobs.collections.estimates import Asked, Pieces, rows
from jobs.collections.page import report
from jobs.collections.reading import Reading
from jobs.collections.spec import CollectionSpec
from ldp.aggregator import Aggregator
from ldp.documents import document
from ldp.domain import Domain
from ldp.registry import oracle
from protos.v1.frequency_pb2 import OPEN, Collection, Counters, EstimateHead, EstimatePart, Round
from tests.browser import CHROMIUM
from tests.jobs.report.pages import taken_apart
from tests.jobs.report.test_browser import seen

LABELS = ("home", "search, all", "</script><script>alert(1)</script>", "cart", "help", "about", "blog", "jobs")
WRITTEN = datetime(2026, 5, 1, tzinfo=UTC)


def reading(rounds: int = 3, processing: str = "") -> Reading:
    """Estimates of real reports, in so many rounds in which the values' shares change."""
    domain = Domain.of(LABELS)
    mechanism = oracle("grr", domain, 2.0)
    found = []
    for number in range(rounds):
        codes = np.repeat(np.arange(8), 50 * np.roll(np.arange(1, 9), number))
        aggregator = Aggregator(mechanism).add(
            mechanism.privatise([LABELS[code] for code in codes], Randomness.from_seed(number))
        )
        estimate = aggregator.estimate()
        opened = Round(
            number=number, opens=86400.0 * number, closes=86400.0 * (number + 1), mechanism=document(mechanism)
        )
        head = EstimateHead(
            collection="pages",
            round=opened,
            reports=len(aggregator),
            values=8,
            final=number < rounds - 1,
            kind="counts",
            fresh=True,
            counters=Counters(counted=len(aggregator), duplicate=7, late=number),
        )
        part = EstimatePart(
            head=head, counts=estimate.counts.tobytes(), variances=estimate.variances.tobytes(), last=True
        )
        whole = Pieces("north").add(part)
        assert whole is not None
        found.append(whole)
    spec = CollectionSpec.model_validate(
        {
            "collection": {"name": "pages", "mechanism": "grr", "epsilon": 2, "size": 8, "labelled": True},
            "window": {"length": "1d"},
        }
    )
    collection = Collection(name="pages", creator="hub", state=OPEN, rounds_ended=rounds - 1, spec=spec.canonical())
    asked = Asked()
    told = list(rows(found[-1], domain, asked))
    processed = [max(row.estimate, 0.0) for row in told] if processing else None
    return Reading(
        collection, spec, domain, asked, found[-1], mechanism, told, processing, processed, tuple(found[:-1])
    )


def test_the_page_tells_estimates_rounds_refusals_and_privacy() -> None:
    page = taken_apart(report(reading(processing="norm-sub"), written=WRITTEN))
    assert not page.unclosed
    for words in ("1,800 clients", "round 2", "so far", "over the 3 rounds", "Repeated", "norm-sub"):
        assert words in page.text, words
    assert page.data is not None
    assert len(page.data["courses"]) == 6
    assert all(len(course["estimates"]) == 3 for course in page.data["courses"])
    assert page.data["estimates"] == sorted(page.data["estimates"], reverse=True)
    assert "21" in page.text  # duplicates over three rounds


def test_one_round_has_no_course() -> None:
    page = taken_apart(report(reading(1), written=WRITTEN))
    assert page.data is not None
    assert page.data["courses"] == []
    assert "Over time" not in page.text


def test_names_stay_text() -> None:
    html = report(reading(), written=WRITTEN)
    assert "<script>alert" not in html
    page = taken_apart(html)
    assert "default-src 'none'" in page.policy
    assert len(page.code("script")) == 2


def test_pages_of_the_same_reading_are_the_same() -> None:
    assert report(reading(), written=WRITTEN) == report(reading(), written=WRITTEN)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed; the page is not looked at")
@pytest.mark.parametrize("width", [360, 1600])
def test_everything_is_drawn_without_a_complaint(tmp_path: Path, width: int) -> None:
    dumped = seen(tmp_path, report(reading(processing="norm-sub")), width=width)
    assert dumped.count("<canvas") >= 2
    assert dumped.count("tabulator-row ") >= 8
