"""The page of a simulated collection in headless Chromium, where it is installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from coordinator.frequency.report import report
from coordinator.frequency.simulation import Request, simulate
from coordinator.frequency.values import Collection
from ldp.domain import Domain
from tests.browser import CHROMIUM
from tests.jobs.report.test_browser import seen

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed; the page is not looked at"),
]


@pytest.mark.parametrize("width", [360, 1600])
@pytest.mark.parametrize("mechanisms", [("olh",), ("grr", "olh", "hr")])
def test_everything_is_drawn_without_a_complaint(tmp_path: Path, width: int, mechanisms: tuple[str, ...]) -> None:
    values = [f"value {place}" for place in range(40)] + ["</script><script>alert(1)</script>"]
    codes = np.repeat(np.arange(len(values)), np.arange(len(values))[::-1] ** 2)
    request = Request(mechanisms, 1.0, seed=1, post_processing="norm-sub" if len(mechanisms) > 1 else None)
    simulation = simulate(request, Collection(Domain(len(values), values), codes, True))
    dumped = seen(tmp_path, report(simulation), width=width)
    assert dumped.count("<canvas") >= 2
    assert dumped.count("tabulator-row ") >= 10
    assert ('id="estimates-choices" aria-label="Choose the mechanism" hidden' in dumped) == (len(mechanisms) == 1)
