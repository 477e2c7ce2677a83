"""A device may stop at any moment: no report is drawn twice, none counted twice, no budget exceeded."""

from __future__ import annotations

import contextlib
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from client.budget import Budget
from client.outcome import Status
from client.reporter import CollectionKey, FrequencyClient
from client.store import FILE, ClientStore
from ldp.domain import Domain
from ldp.longitudinal.bit_flip import BitFlip
from ldp.registry import oracle
from link.errors import ConfigurationError
from link.transports.grpc_errors import ConnectionBroken
from tests.client.devices import DAY, KEY, Crash, device, grr
from tests.client.node import BEGIN, HOUR, LABELS, PARTY, Direct, Node, homepages
from tests.errors import fails
from tests.examples import examples, spread

pytestmark = pytest.mark.turn(3)


# -- crashes ----------------------------------------------------------------------------------------------------------
def crashing(store: ClientStore, at: int) -> None:
    """The device stops at the given statement, before or (for negative numbers) after it is done."""
    run: Callable[..., Any] = store.execute
    countdown = iter(range(abs(at) - 1, -1, -1))

    def execute(statement: str, *values: Any) -> Any:
        left = next(countdown, -1)
        if left == 0 and at > 0:
            raise Crash
        done = run(statement, *values)
        if left == 0:
            raise Crash
        return done

    store.execute = execute  # type: ignore[method-assign]


def statements(work: Callable[[FrequencyClient], object], client: FrequencyClient) -> int:
    run, count = client.store.execute, 0

    def execute(statement: str, *values: Any) -> Any:
        nonlocal count
        count += 1
        return run(statement, *values)

    client.store.execute = execute  # type: ignore[method-assign]
    work(client)
    client.store.execute = run  # type: ignore[method-assign]
    return count


@pytest.mark.costly
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_crash_at_every_step_of_a_report(tmp_path: Path, after: bool) -> None:
    """Either nothing is there, or the report with its charge, and then it is the only one."""
    mechanism = oracle("l-grr", Domain(4, LABELS), 1.0)
    node = Node(homepages(mechanism))
    template = tmp_path / "template"
    device(template, node).close()
    client = device(tmp_path / "counted", node)
    steps = statements(lambda each: each.report(KEY, "south"), client)
    assert steps > 10
    for step in (1 + place for place in spread(steps, 8, steps)):
        folder = tmp_path / f"crash-{step}"
        shutil.copytree(template, folder)
        client = FrequencyClient.open(folder, clock=lambda: node.now)
        crashing(client.store, -step if after else step)
        with pytest.raises(Crash):
            client.report(KEY, "south")
        client.close()
        client = FrequencyClient.open(folder, clock=lambda: node.now)
        done = client.waiting()
        assert client.spent() == done * Fraction(mechanism.exact_permanent_epsilon)  # type: ignore[attr-defined]
        assert client.report(KEY, "south").status is (Status.ALREADY if done else Status.REPORTED)
        assert client.waiting() == 1
        client.close()


@pytest.mark.costly
def test_a_crash_at_every_step_of_a_delivery(tmp_path: Path) -> None:
    kept = homepages(grr())
    node = Node(kept)
    template = tmp_path / "template"
    client = device(template, node)
    client.report(KEY, "south")
    client.close()
    shutil.copytree(template, tmp_path / "counted")
    client = FrequencyClient.open(tmp_path / "counted", clock=lambda: node.now)
    steps = statements(lambda each: each.deliver(Direct(node)), client)
    for step in (1 + place for place in spread(steps, 8, steps)):
        kept.received.clear()
        kept.counted.clear()
        folder = tmp_path / f"crash-{step}"
        shutil.copytree(template, folder)
        client = FrequencyClient.open(folder, clock=lambda: node.now)
        crashing(client.store, step)
        with pytest.raises(Crash):
            client.deliver(Direct(node))
        client.close()
        client = FrequencyClient.open(folder, clock=lambda: node.now)
        client.deliver(Direct(node))
        assert client.waiting() == 0
        assert len(kept.counted) == 1
        assert len(set(kept.received)) == 1
        client.close()


ACTIONS = st.one_of(
    st.tuples(st.just("report"), st.sampled_from(["first", "second"]), st.sampled_from(LABELS)),
    st.tuples(st.just("crash"), st.integers(-25, 25).filter(bool), st.sampled_from(LABELS)),
    st.tuples(st.just("deliver"), st.lists(st.booleans(), max_size=4), st.just("")),
    st.tuples(st.just("wait"), st.sampled_from([HOUR / 3, HOUR, 9 * HOUR, -2 * HOUR]), st.just("")),
)


@examples(4, 40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=st.lists(ACTIONS, max_size=30), epsilons=st.tuples(*[st.sampled_from(["0.3", "0.5", "1"])] * 2))
def test_whatever_happens(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[Any, ...]], epsilons: tuple[str, str]
) -> None:
    """No report is drawn twice or counted twice, and in no span of a day more than the budget is charged."""
    folder = tmp_path_factory.mktemp("device")
    most, span = Fraction(2), DAY
    mechanisms = [grr(float(epsilon)) for epsilon in epsilons]
    names = ["first", "second"]
    node = Node(*(homepages(each, name, grace=3 * HOUR) for each, name in zip(mechanisms, names, strict=True)))
    client = device(folder, node, budget=Budget(most, days=1))
    reported = dict.fromkeys(names, 0)
    for what, how, value in actions:
        if what == "report":
            reported[how] += client.report(CollectionKey(PARTY, how), value).reported
        elif what == "crash":
            crashing(client.store, how)
            with contextlib.suppress(Crash):
                client.report(CollectionKey(PARTY, "first"), value)
                client.deliver(Direct(node))
            client.close()
            client = FrequencyClient.open(folder, clock=lambda: node.now)
        elif what == "deliver":
            with contextlib.suppress(ConnectionBroken):
                client.deliver(Direct(node, how))
        else:
            node.now = max(node.now + how, BEGIN)
    client.deliver(Direct(node))
    charges = list(client.store.execute("SELECT at, collection, epsilon FROM charges"))
    for at, _, _ in charges:
        assert sum(Fraction(epsilon) for when, _, epsilon in charges if at - span < when <= at) <= most
    for name, mechanism in zip(names, mechanisms, strict=True):
        kept = node.collections[name]
        charged = [Fraction(epsilon) for _, which, epsilon in charges if which == kept.id]
        assert set(charged) <= {Fraction(mechanism.epsilon)}
        assert len(charged) >= reported[name]
        # Whatever came under one name is one report, bit for bit; and there is a charge for each.
        assert len(set(kept.received)) == len({(number, who) for number, who, _ in kept.received}) <= len(charged)
        assert len(kept.counted) == len(set(kept.received))
    client.close()


# -- the folder -------------------------------------------------------------------------------------------------------
def test_only_the_owner_may_open_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "device"
    FrequencyClient.open(folder).close()
    (folder / FILE).chmod(0o644)
    FrequencyClient.open(folder).close()
    assert stat.S_IMODE((folder / FILE).stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_copy_of_the_folder_goes_on(tmp_path: Path) -> None:
    kept = homepages(BitFlip(Domain(4, LABELS), 1.0, sampled=4))
    node = Node(kept)
    client = device(tmp_path / "old", node)
    client.report(KEY, "south")
    client.close()
    shutil.copytree(tmp_path / "old", tmp_path / "new")
    client = FrequencyClient.open(tmp_path / "new", clock=lambda: node.now)
    assert client.report(KEY, "south").status is Status.ALREADY
    client.deliver(Direct(node))
    node.now += HOUR
    assert client.report(KEY, "south").charge == 0
    client.deliver(Direct(node))
    assert len({data for _, _, data in kept.received}) == 1


@pytest.mark.parametrize("content", [b"no database at all, but long enough to be none" * 30, b"\0" * 5000])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(ConfigurationError):
        FrequencyClient.open(tmp_path)


def test_another_version_is_refused(tmp_path: Path) -> None:
    client = FrequencyClient.open(tmp_path)
    client.store.execute("PRAGMA user_version = 9")
    client.close()
    with fails("E100"):
        FrequencyClient.open(tmp_path)


def test_a_folder_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with fails("E103"):
        FrequencyClient.open(tmp_path / "file" / "device")


TWICE = """
import sys
from client.reporter import CollectionKey, FrequencyClient
folder, begin = sys.argv[1], float(sys.argv[2])
now = begin
client = FrequencyClient.open(folder, clock=lambda: now)
made = 0
for _ in range(15):
    made += client.report(CollectionKey("north", "homepages"), "south").reported
    now += 3600
print(made)
"""


def test_two_processes_share_a_folder(tmp_path: Path) -> None:
    node = Node(homepages(grr(0.1)))
    device(tmp_path, node).close()
    command = [sys.executable, "-c", TWICE, str(tmp_path), str(BEGIN)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    made = [int(each.communicate()[0]) for each in running]
    assert sum(made) == 15
    client = FrequencyClient.open(tmp_path, clock=lambda: node.now)
    assert client.waiting() == 15
    assert client.spent() == 15 * Fraction(0.1)


ON_AND_ON = """
import sys
from client.reporter import CollectionKey, FrequencyClient
now = float(sys.argv[2])
client = FrequencyClient.open(sys.argv[1], clock=lambda: now)
while True:
    client.report(CollectionKey("north", "homepages"), "south")
    print(flush=True)
    now += 3600
"""


def test_a_process_that_is_killed_leaves_whole_reports(tmp_path: Path) -> None:
    """Every report in the outbox has its charge, and every charge its report; what was told of is there."""
    node = Node(homepages(grr(0.001)))
    device(tmp_path, node, budget=Budget(100)).close()
    waiting = 0
    for turn in (0, 3):
        begin = BEGIN + waiting * HOUR
        command = [sys.executable, "-c", ON_AND_ON, str(tmp_path), str(begin)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
            assert running.stdout is not None
            for _ in range(turn + 1):
                running.stdout.readline()
            running.kill()
            told = turn + 1 + len(running.stdout.read())
        with FrequencyClient.open(tmp_path, clock=lambda: node.now) as client:
            assert waiting + told <= client.waiting() <= waiting + told + 1
            waiting = client.waiting()
            assert client.store.spent(0) == waiting * Fraction(0.001)
            (latest,) = client.store.execute("SELECT max(round) FROM outbox").fetchone()
            assert latest == waiting - 1


LIGHT = """
import sys
from pathlib import Path
from client import FrequencyClient
from client.fleet import Fleet
from ldp.registry import COLLECTED
from ldp.domain import Domain
from ldp.registry import ORACLES, oracle
from ldp.rappor.mechanism import Rappor
from client.drawing import Turn, drawn
from fractions import Fraction
from ldp.streams.allocation import budgets
from ldp.streams.sampled import Sampled
from crypto.primitives.randomness import Randomness
for name in ORACLES:
    drawn(oracle(name, Domain(5), 1.0), 3, None, Randomness.from_os())
drawn(Rappor.for_budget(1.0, 2.0), "text", None, Randomness.from_os())
drawn(oracle("l-grr", Domain(5), 1.0), 3, None, Randomness.from_os(), Turn(5, Fraction(4), 7))
drawn(Sampled.for_budget("auto", Domain(5), 1.0, Fraction(1, 2)), 3, None, Randomness.from_os())
budgets("p-series", 1.0)
budgets("by-error", 1.0, errors=(1.0, 2.0))
FrequencyClient.open(Path(sys.argv[1])).close()
heavy = "scipy pyarrow duckdb pydantic typer rich gmpy2 rbcl structlog jinja2 pandas jobs mining party coordinator"
print(sorted(set(heavy.split()) & {name.partition(".")[0] for name in sys.modules}))
"""


def test_it_is_light(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIGHT, str(tmp_path / "device")]
    assert subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout == "[]\n"
