"""The one figure of what a job costs."""

from __future__ import annotations

import pytest

from jobs.plan.cost import about, cost
from jobs.plan.forecast import forecast
from mining.public_sizes import NOTHING, PublicSizes
from tests.jobs.plan.test_forecast import JOBS, LATENCY_S, SIZES, publishing


@pytest.mark.parametrize(
    ("name", "condition"),
    [
        ("level-wise", "if each has 10,000 rows, 100 frequent items"),
        ("one-shot", "if each has 10,000 rows, 100 frequent items"),
        ("naive Bayes", "if each has 10,000 rows"),
        ("release", "if each has 10,000 rows, very roughly"),
    ],
)
def test_hidden_sizes_are_supposed(name: str, condition: str) -> None:
    """Where nobody publishes anything, the range goes from next to nothing to what limits allow: no use to anybody."""
    plan = forecast(JOBS[name], publishing(NOTHING), LATENCY_S)
    assert plan.supposed is not None
    assert plan.supposed.bytes_sent >= plan.bytes_sent
    assert cost(plan) == f"{about(plan.supposed.bytes_sent, plan.supposed.seconds)} {condition}"


def test_only_what_is_hidden_is_supposed() -> None:
    rows_alone = PublicSizes(20_000)
    plan = forecast(JOBS["level-wise"], publishing(rows_alone), LATENCY_S)
    assert plan.supposed is not None
    assert plan.supposed.condition == "if each has 100 frequent items"
    assert forecast(JOBS["naive Bayes"], publishing(rows_alone), LATENCY_S).supposed is None


def test_known_sizes_give_the_likely_figure() -> None:
    plan = forecast(JOBS["level-wise"], publishing(SIZES), LATENCY_S)
    assert plan.supposed is None
    assert cost(plan) == about(plan.bytes_sent, plan.seconds)


def test_what_depends_on_rows_is_rough() -> None:
    plan = forecast(JOBS["release"], publishing(SIZES), LATENCY_S)
    assert plan.supposed is None
    assert plan.middle is not None
    assert plan.bytes_sent < plan.middle[0] < (plan.bytes_sent_at_most or 0)
    assert cost(plan) == f"{about(*plan.middle)}, very roughly, as it depends on the rows"
    assert cost(plan.model_copy(update={"seconds_at_most": None})).startswith("more than ")


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.01, "1 s"), (100, "100 s"), (180, "3 min"), (7000, "117 min"), (9000, "2 h")]
)
def test_times_are_said_as_people_say_them(seconds: float, words: str) -> None:
    assert about(1_234_567, seconds) == f"about 1.2 MB and {words}"
