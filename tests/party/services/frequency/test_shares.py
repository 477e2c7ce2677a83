"""Collections whose reports share ε by a series, a secret coin, or answers that wait: files, rounds, and the node."""

from __future__ import annotations

import asyncio
import json
import re
import tomllib
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from client.description import Description
from jobs.collections.mechanism import budgets_of, mechanism_of_round, report_epsilon
from jobs.collections.spec import CollectionSpec, labels_of
from jobs.spec.toml import validate
from ldp.budget import LEAST_EPSILON, float_below
from ldp.documents import mechanism_of
from ldp.domain import Domain
from ldp.streams.sampled import Sampled
from link.errors import ConfigurationError
from party.services.frequency.policy import FrequencySection, check_creation
from party.services.frequency.schedule import Windows, schedule_of
from protos.v1 import frequency_pb2 as pb
from tests.clock import Clock
from tests.errors import fails
from tests.party.services.frequency.nodes import batch, running
from tests.party.services.frequency.specs import spec_of
from tests.party.services.frequency.test_schedule import CREATED, Moves, Run

HOURS = {"length": "1h"}
SERIES: dict[str, dict[str, Any]] = {
    "uniform": {"window": {"length": "90s", "periods": 7}},
    "geometric": {"more": {"ratio": "0.75"}},
    "taylor": {},
    "p-series": {"more": {"exponent": "1.5"}, "window": {"length": "90s", "grace": "1m", "periods": 6}},
    "telescoping": {},
    "by-error": {"more": {"errors": [1, "20.5", 3]}},
}


def series_of(name: str, epsilon: str = "1.0", **more: Any) -> CollectionSpec:
    given = SERIES[name]
    window = given.get("window", {"length": "90s"})
    return spec_of(epsilon=epsilon, window=window, budget={"series": name, **given.get("more", {})}, **more)


# -- files ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", SERIES)
@pytest.mark.parametrize("epsilon", ["0.3", "1.0", "2.718"])
def test_windows_have_the_budgets_of_their_series(name: str, epsilon: str) -> None:
    spec = series_of(name, epsilon)
    assert CollectionSpec.from_canonical(spec.canonical()) == spec
    series = budgets_of(spec)
    assert series is not None
    assert sum(series) <= Fraction(epsilon)
    for number, term in enumerate(series):
        mechanism = mechanism_of_round(spec, Domain(8), number)
        assert Fraction(mechanism.epsilon) == term >= LEAST_EPSILON
    assert report_epsilon(spec) == max(series)


@pytest.mark.parametrize("name", SERIES)
def test_a_series_and_a_coin_go_together(name: str) -> None:
    spec = series_of(name, "0.8", sampling={"probability": 0.5})
    for number, term in enumerate(budgets_of(spec) or ()):
        mechanism = mechanism_of_round(spec, Domain(8), number)
        assert isinstance(mechanism, Sampled)
        assert term * Fraction(9999, 10000) < Fraction(mechanism.epsilon) <= term


def test_a_probability_may_be_written_either_way() -> None:
    spec = spec_of(sampling={"probability": "3/8"})
    assert spec == spec_of(sampling={"probability": 0.375}) == spec_of(sampling={"probability": "0.375"})
    assert json.loads(spec.canonical())["sampling"] == {"probability": "3/8"}


def test_collections_without_these_tables_keep_their_form() -> None:
    """What a node of an earlier version has stored is still in canonical form."""
    assert set(json.loads(spec_of().canonical())) == {"collection", "window", "access", "continual"}


@pytest.mark.parametrize(
    "tables",
    [
        {"budget": {"series": "geometric"}},
        {"budget": {"series": "x"}, "window": HOURS},
        {"budget": {"series": "uniform"}, "window": HOURS},
        {"budget": {"series": "by-error"}, "window": HOURS},
        {"budget": {"series": "by-error", "errors": []}, "window": HOURS},
        {"budget": {"series": "by-error", "errors": [0]}, "window": HOURS},
        {"budget": {"series": "taylor", "ratio": 0.5}, "window": HOURS},
        {"budget": {"series": "geometric", "ratio": 1}, "window": HOURS},
        {"budget": {"series": "p-series", "exponent": 1}, "window": HOURS},
        {"budget": {"series": "geometric"}, "window": HOURS | {"periods": 10}},
        {"budget": {"series": "taylor"}, "window": HOURS, "mechanism": "l-grr"},
        {"budget": {"series": "taylor"}, "window": HOURS, "continual": {"method": "lpu", "w": 3}},
        {"sampling": {"probability": 0.3}},
        {"sampling": {"probability": 1}},
        {"sampling": {"probability": "1/0"}},
        {"sampling": {"probability": "1e999999999"}},
        {"sampling": {"probability": 0.125}, "epsilon": "4"},
        {"sampling": {"probability": 0.5}, "mechanism": "l-grr"},
        {"sampling": {"probability": 0.5}, "mechanism": "sfp", "text_bytes": 4, "k": 3},
        {"memo": {"w": 5, "epsilon": "4"}, "window": HOURS},
        {"memo": {"w": 5, "epsilon": "4"}, "window": HOURS, "mechanism": "rappor"},
        {"memo": {"w": 5, "epsilon": "4"}, "mechanism": "l-grr"},
        {"memo": {"w": 5, "epsilon": "1.5"}, "window": HOURS, "mechanism": "l-grr"},
        {"memo": {"w": 0, "epsilon": "4"}, "window": HOURS, "mechanism": "l-grr"},
    ],
    ids=lambda each: each if isinstance(each, str) else None,
)
def test_tables_that_do_not_fit_are_refused(tables: dict[str, Any]) -> None:
    with fails("E100"):
        spec_of(**tables)


def test_the_policy_is_about_the_largest_report() -> None:
    policy = FrequencySection.model_validate({"max_epsilon": "0.5"})
    check_creation(policy, series_of("geometric", "2.0"), "analyst", "north", running=0)  # 0.5 in its first window
    with fails("E300", party="north"):
        check_creation(policy, series_of("geometric", "3.0"), "analyst", "north", running=0)
    check_creation(policy, spec_of(epsilon="0.5", sampling={"probability": 0.5}), "analyst", "north", running=0)


# -- rounds -----------------------------------------------------------------------------------------------------------
@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(SERIES)), Moves)
def test_whatever_happens_a_window_has_its_own_budget_or_none(name: str, moves: list[tuple[float, bool, int]]) -> None:
    spec = series_of(name)
    series, run = budgets_of(spec), Run(spec)
    assert series is not None
    for _ in run.play(moves):
        pass
    numbers = [plan.number for plan in run.opened]
    assert numbers == sorted(set(numbers))
    for plan in run.opened:
        assert plan.number == plan.period == plan.step < len(series)
        assert Fraction(plan.mechanism.epsilon) == series[plan.number]
    assert sum(Fraction(plan.mechanism.epsilon) for plan in run.opened) <= 1


def test_a_series_ends_with_its_last_window() -> None:
    spec = series_of("by-error")
    schedule = schedule_of(spec, Domain(8), CREATED)
    assert isinstance(schedule, Windows)
    state = schedule.initial
    for number in range(3):
        plan = schedule.begin(state, False, CREATED + 90 * number)
        assert plan is not None
        state = plan.state
    assert schedule.begin(state, False, CREATED + 270) is None
    assert schedule.is_over(state, CREATED + 270)
    assert not schedule.is_over(schedule.initial, CREATED)


DECIMALS = st.decimals("0.05", "16", places=4, allow_nan=False)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["geometric", "taylor", "p-series", "telescoping", "uniform", "by-error"]),
    DECIMALS,
    st.decimals("0.05", "0.95", places=3),
    st.decimals("1.05", "5", places=3),
    st.lists(st.decimals("0.1", "9", places=2), min_size=1, max_size=6),
)
def test_clients_reckon_the_same_budgets_as_the_node(
    series: str, epsilon: Decimal, ratio: Decimal, exponent: Decimal, errors: list[Decimal]
) -> None:
    """A client computes them from the specification that travels; one part in 2^48 off, and it would refuse."""
    own = {"geometric": {"ratio": ratio}, "p-series": {"exponent": exponent}, "by-error": {"errors": errors}}
    window = {"length": "1h", **({"periods": 5} if series == "uniform" else {})}
    try:
        spec = spec_of(epsilon=str(epsilon), window=window, budget={"series": series, **own.get(series, {})})
    except ConfigurationError:  # a window would have less than 0.001
        reject()
    sent = pb.Collection(name="homepages", id=bytes(16), spec=spec.canonical(), state=pb.OPEN, created=CREATED)
    found = Description.read(sent.SerializeToString(), "north", "homepages")
    assert found.budgets == budgets_of(spec)
    assert found.ledger is not None
    assert sum(found.budgets or ()) <= found.ledger.epsilon <= Fraction(epsilon)


# -- the node ---------------------------------------------------------------------------------------------------------
def test_reports_of_another_windows_budget_are_foreign(tmp_path: Path) -> None:
    """Both windows are open, one in its grace; each takes reports of its own ε only."""
    clock = Clock(1_800_000_000.0)

    async def test() -> None:
        async with running(tmp_path, now=clock) as world:
            analyst = world.analyst
            spec = spec_of(window={"length": "1h", "grace": "1h"}, budget={"series": "geometric"})
            first = await analyst.create(spec)
            phone, other = world.caller("phone"), world.caller("other")
            made = batch(first, [3])
            clock.now += 3601
            both = await analyst.describe()
            assert [each.number for each in both.rounds] == [0, 1]
            wrong = batch(both, [3], round_=1, seed=2)
            wrong.reports = made.reports
            (refused,) = await phone.submit(wrong)
            assert refused.status == pb.FOREIGN
            (late,) = await phone.submit(made)
            (fresh,) = await other.submit(batch(both, [3], round_=1, seed=2))
            assert (late.counted, fresh.counted) == (1, 1)
            assert (await analyst.describe()).counters.foreign == 1
            loose, tight = [(await analyst.estimate(round=number)).variances[3] for number in (1, 0)]
            assert loose > tight  # each estimate by its own window's ε

    asyncio.run(test())


def test_a_node_that_starts_again_goes_on_with_the_series(tmp_path: Path) -> None:
    """The open round keeps its mechanism, coin and all, and the next one has the next budget."""
    clock = Clock(1_800_000_000.0)

    async def test() -> None:
        async with running(tmp_path, now=clock) as world:
            labels = [f"value-{number}" for number in range(8)]
            domain = Domain(8, labels)
            spec = spec_of(
                labelled=True, window=HOURS, budget={"series": "telescoping"}, sampling={"probability": "3/4"}
            )
            first = await world.analyst.create(spec, labels_of(labels))
            phone = world.caller("phone")
            await phone.submit(batch(first, labels[:1], domain=domain))
            await world.restart()
            after = await world.analyst.describe()
            assert after.rounds[0].mechanism == first.rounds[0].mechanism
            (receipt,) = await world.caller("other").submit(batch(after, labels[1:2], domain=domain, seed=1))
            assert receipt.counted == 1
            assert (await world.analyst.estimate()).head.reports == 2
            clock.now += 3601
            (second,) = (await world.analyst.describe()).rounds
            assert mechanism_of(second.mechanism, domain).epsilon == pytest.approx(1 / 6)

    asyncio.run(test())


def test_a_series_is_over_and_its_collection_closed(tmp_path: Path) -> None:
    clock = Clock(1_800_000_000.0)

    async def test() -> None:
        async with running(tmp_path, now=clock) as world:
            analyst = world.analyst
            created = await analyst.create(spec_of(window=HOURS, budget={"series": "by-error", "errors": [1, 8]}))
            await world.caller("phone").submit(batch(created, [1] * 1))
            clock.now += 3600
            assert (await analyst.describe()).state == pb.OPEN
            clock.now += 3600
            assert (await analyst.describe()).state == pb.CLOSED

    asyncio.run(test())


def test_a_sampled_collection_is_corrected_and_exported(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            analyst = world.analyst
            spec = spec_of(
                mechanism="olh",
                epsilon="2.0",
                size=40,
                sampling={"probability": "1/2"},
                access={"gateways": {"fleet": 10_000}},
            )
            created = await analyst.create(spec)
            (receipt,) = await world.caller("fleet").submit(batch(created, [5] * 3000 + [7] * 1000))
            assert receipt.counted == 4000
            found = await analyst.estimate()
            truth = np.zeros(40)
            truth[[5, 7]] = 3000, 1000
            # Six standard deviations for each of 40 values: false alarms have a chance of 10^-7.
            assert (np.abs(found.counts - truth) <= 6 * np.sqrt(found.variances)).all()
            exact = mechanism_of_round(spec, Domain(40))
            assert isinstance(exact, Sampled)
            assert found.variances == pytest.approx(exact.variance(truth, 4000), rel=0.2)
            files = await analyst.export(states=True)
            assert set(files) == {"collection.json", "estimates.csv", "round-0.state"}
            made = json.loads(files["collection.json"])["rounds"][0]["mechanism"]
            assert made["mechanism"] == "sampled"
            assert made["parameters"]["probability"] == {"fraction": "1/2"}

    asyncio.run(test())


def test_the_files_of_the_page_are_good() -> None:
    page = Path(__file__).resolve().parents[4] / "docs" / "protocols" / "frequency-service.md"
    files = re.findall(r"^```toml\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    named = {tomllib.loads(text)["collection"]["name"]: tomllib.loads(text, parse_float=str) for text in files}
    specs = {name: validate(CollectionSpec, contents, name) for name, contents in named.items() if name != "homepages"}
    assert set(specs) == {"survey", "deniable", "habits"}
    told = [f"{float(term):.2f}" for term in (budgets_of(specs["survey"]) or ())[:3]]
    assert f"# {told[0]}, {told[1]}, {told[2]} and so on" in files[1]


def test_budgets_follow_the_float_at_or_below() -> None:
    spec = series_of("geometric", "0.1")
    assert budgets_of(spec)[0] * 4 <= Fraction(float_below(spec.collection.epsilon))  # type: ignore[index]
