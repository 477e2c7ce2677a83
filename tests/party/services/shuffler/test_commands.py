"""`comine shuffle …` against real nodes: from devices through two shufflers to the estimates of a collection."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coordinator.shuffle.collect import padded_reports
from coordinator.shuffle.routes import CollectorFolder, nodes_of, read_state, route_status, write_durably
from crypto.primitives.randomness import Randomness
from jobs.collections.route import RouteSpec
from ldp.registry import oracle
from ldp.shuffling.onion import wrap
from ldp.shuffling.rows import rows_of
from link.pki.authority import write_identity
from link.pki.identity import Identity
from protos.v1.shuffle_pb2 import SealedReports
from tests.errors import fails
from tests.integration.processes import Organisations, Ran, command

pytestmark = pytest.mark.turn(5)

LABELS = ["milk", "bread", "jam"]
COUNTS = [600, 300, 100]
TABLES = '[frequency]\nmax_epsilon = 8.0\n[shuffler]\nmin_batch = 2\ngateways = ["client/fleet"]\n'
FLEET = ["--certificate", "pki/fleet.crt"]
COLLECTOR = ["--certificate", "pki/collector.crt"]
ROUTE = """[route]
name = "{name}"
shufflers = ["north", "south"]
collection = "basket"
minimum = 5
gateways = {{ fleet = 100000 }}
"""


class Shufflers(Organisations):
    """Two nodes that shuffle and collect, and the commands of those who use them."""

    def comine(self, *words: object) -> Ran:
        return command(*words, cwd=self.folder)

    def shuffle(self, *words: object) -> Any:
        ran = self.comine("shuffle", *words, "--json")
        assert ran.code == 0, ran.err
        return json.loads(ran.out)

    def route(self, name: str) -> None:
        self.write(f"{name}.toml", ROUTE.format(name=name))
        self.shuffle("create", f"{name}.toml")

    def collected(self, name: str, into: str, *words: object) -> list[dict[str, Any]]:
        """The next batches, once there are any."""
        while True:
            found = self.shuffle("collect", name, "--into", into, *COLLECTOR, *words)
            if found["batches"]:
                batches: list[dict[str, Any]] = found["batches"]
                return batches

    def counted(self, collection: str) -> int:
        listed = json.loads(self.comine("frequency", "list", "--json").out)
        (one,) = [each for each in listed["collections"] if each["name"] == collection]
        return int(one["counters"]["counted"])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shufflers]:
    folder = tmp_path_factory.mktemp("shuffle")
    made = Shufflers.create(folder, {"north": [["a"]], "south": [["b"]]})
    assert isinstance(made, Shufflers)
    for name in ("north", "south"):
        file = folder / f"{name}.toml"
        file.write_text(file.read_text() + TABLES)
    for name in ("fleet", "collector", "phone"):
        write_identity(made.authority.issue(name, "client"), folder / "pki")
    made.write("labels.txt", "".join(f"{label}\n" for label in LABELS))
    made.write("values.txt", "".join(f"{value}\n" for value in np.repeat(LABELS, COUNTS)))
    made.write("mine.txt", "jam\n")
    try:
        made.start()
        for name, mechanism in (("basket", "grr"), ("other", "grr"), ("kept", "l-grr"), ("wide", "oue")):
            made.write(
                f"{name}-collection.toml",
                f'[collection]\nname = "{name}"\nmechanism = "{mechanism}"\nepsilon = 2.0\n'
                + ("size = 1024\n" if name == "wide" else 'domain = "labels.txt"\n')
                + "[access]\ngateways = { collector = 1000000 }\n",
            )
            ran = made.comine("frequency", "create", f"{name}-collection.toml", "--node", "south")
            assert ran.code == 0, ran.err
        made.route("shared")
        yield made
    finally:
        made.stop()


def test_from_devices_through_shufflers_to_estimates(world: Shufflers) -> None:
    world.route("weekly")
    assert (world.folder / "weekly.route/collector.key").stat().st_mode & 0o777 == 0o600
    assert world.shuffle("create", "weekly.toml")["route"] == "weekly"  # the same again
    sent = world.shuffle("submit", "weekly", "--collection", "basket", *FLEET, "--input", "values.txt", "--gateway")
    assert (sent["taken"], sent["refused"]) == (1000, 0)
    device = ["submit", "weekly", "--collection", "basket", "--certificate", "pki/phone.crt", "--input", "mine.txt"]
    assert world.shuffle(*device, "--client-folder", "phone")["taken"] == 1
    assert world.shuffle(*device, "--client-folder", "phone")["report"] == "already"
    stood = world.shuffle("status", "weekly")["shufflers"]
    assert [each["waiting"] for each in stood] == [5, 0]
    assert world.shuffle("flush", "weekly")["shufflers"][0]["batches"] == 1

    (batch,) = world.collected("weekly", "basket")
    assert (batch["received"], batch["dropped"], batch["counted"], batch["refused"]) == (1001, {}, 1001, 0)
    assert (batch["n"], batch["senders"]) == (1001, 2)
    assert 0 < batch["epsilon"] < 0.5 < batch["local_epsilon"]
    assert world.counted("basket") == 1001
    assert world.shuffle("collect", "weekly", "--into", "basket", *COLLECTOR)["batches"] == []

    ran = world.comine("frequency", "estimate", "basket", "--json")
    for row, count in zip(json.loads(ran.out)["estimates"], (600, 300, 101), strict=True):
        assert abs(row["estimate"] - count) < 5.5 * row["variance"] ** 0.5  # beyond by chance with less than 1e-6
    assert all(each["retired"] for each in world.shuffle("retire", "weekly")["shufflers"])
    late = world.comine("shuffle", *device, "--client-folder", "another")
    assert (late.code, "is retired at north and takes no more reports" in late.err) == (10, True)


def test_a_batch_whose_collection_was_interrupted_is_counted_once(world: Shufflers) -> None:
    """The file says that the batch was begun, as after a crash between the hand-over and its note."""
    world.route("again")
    for _ in range(2):
        world.shuffle("submit", "again", "--collection", "other", *FLEET, "--input", "values.txt", "--gateway")
        world.shuffle("flush", "again")
    first = world.collected("again", "other")
    while len(first) < 2:
        first += world.collected("again", "other")
    assert world.counted("other") == 2000
    state = world.folder / "again.route/collected.json"
    begun = {"batch": 2, "round": 0, "period": 0}
    write_durably(state, json.dumps({**read_state(state), "kept": 1, "begun": begun}).encode())
    repeated = world.collected("again", "other", "--colluding", 0.5)
    assert [(each["batch"], each["counted"], each["n"]) for each in repeated] == [(2, 1000, 500)]
    assert world.counted("other") == 2000


def collection(world: Shufflers, name: str, quota: int, more: str = "") -> None:
    world.write(
        f"{name}-collection.toml",
        f'[collection]\nname = "{name}"\nmechanism = "grr"\nepsilon = 2.0\ndomain = "labels.txt"\n{more}'
        f"[access]\ngateways = {{ collector = {quota} }}\n",
    )
    ran = world.comine("frequency", "create", f"{name}-collection.toml", "--node", "south")
    assert ran.code == 0, ran.err


def send(world: Shufflers, route: str, into: str, reports: int) -> None:
    """A batch that is on its way to the collector."""
    world.write("batch.txt", "milk\n" * reports)
    world.shuffle("submit", route, "--collection", into, *FLEET, "--input", "batch.txt", "--gateway")
    world.shuffle("flush", route)
    while any(each["unsent"] for each in world.shuffle("status", route)["shufflers"][:1]):
        pass


def test_a_batch_of_which_nothing_is_counted_waits(world: Shufflers) -> None:
    collection(world, "tight", 10)
    for route in ("first", "second"):
        world.route(route)
        send(world, route, "tight", 10)
    assert world.collected("first", "tight")[0]["counted"] == 10
    send(world, "first", "tight", 5)
    for route, state in (("first", 1), ("second", None)):
        for _ in range(2):  # it waits however often it is tried
            ran = world.comine("shuffle", "collect", route, "--into", "tight", *COLLECTOR)
            assert (ran.code, "south refused all" in ran.err) == (30, True), ran.err
        assert read_state(world.folder / f"{route}.route/collected.json").get("kept") == state
    assert world.counted("tight") == 10


def test_a_batch_whose_round_ended_while_it_was_interrupted_is_late(world: Shufflers) -> None:
    collection(world, "windows", 1000, '[window]\nlength = "1s"\n')
    world.route("slow")
    send(world, "slow", "windows", 5)
    (batch,) = world.collected("slow", "windows")
    before = world.counted("windows")
    assert batch["counted"] + batch["late"] == 5
    state = world.folder / "slow.route/collected.json"
    begun = {"batch": 1, "round": batch["round"], "period": batch["round"]}
    time.sleep(2)  # until the round is over
    write_durably(state, json.dumps({**read_state(state), "kept": 0, "begun": begun}).encode())
    (again,) = world.collected("slow", "windows")
    assert (again["round"], again["counted"], again["late"]) == (batch["round"], 0, 5)
    assert world.counted("windows") == before


def test_reports_that_nobody_honest_sends_are_dropped_and_told(world: Shufflers) -> None:
    """Bytes of a gateway of its own making; and batches that are collected after the route was retired."""
    world.route("dirty")
    pki = world.folder / "pki"
    fleet = Identity.load(pki / "ca.crt", pki / "fleet.crt", pki / "fleet.key")
    found = route_status(fleet, world.addresses, "dirty")
    rows = np.zeros((20, found.route.size), np.uint8)
    rows[:3] = 0xFF  # no value of the domain
    sealed = [row.tobytes() for row in wrap(rows, found.route, found.keys(fleet))]
    with nodes_of(fleet, world.addresses, ["north"]) as (first,):
        (receipt,) = first.submit([SealedReports(route="dirty", reports=[*sealed, sealed[0], b"short"])])
    assert receipt.taken == 20
    before = world.counted("basket")
    assert all(each["retired"] for each in world.shuffle("retire", "dirty")["shufflers"])
    (batch,) = world.collected("dirty", "basket")
    assert (batch["counted"], batch["n"], batch["received"]) == (17, 17, 22)
    assert batch["dropped"] == {"replayed": 1, "wrong_size": 1, "malformed": 3}
    assert world.counted("basket") == before + 17


def test_padding_must_be_zeros() -> None:
    mechanism = oracle("grr", LABELS, 2.0)
    made = rows_of(mechanism.privatise(LABELS, Randomness.from_seed(b"padding")))
    rows = np.zeros((3, made.shape[1] + 4), np.uint8)
    rows[:, : made.shape[1]] = made
    rows[1, -1] = 1  # a mark by which the collector would know its sender
    reports, good = padded_reports(rows, mechanism)
    assert (len(reports), good.tolist()) == (2, [True, False, True])


def test_a_device_that_has_its_report_in_the_batch_waits(world: Shufflers) -> None:
    device = ["submit", "shared", "--certificate", "pki/phone.crt", "--input", "mine.txt", "--collection", "basket"]
    assert world.shuffle(*device, "--client-folder", "first")["taken"] == 1
    ran = world.comine("shuffle", *device, "--client-folder", "second")
    assert (ran.code, "1 wait until the batch has left" in ran.err) == (0, True)
    (kept,) = (world.folder / "second/shuffled/shared").glob("*.sealed")
    before = kept.read_bytes()
    assert world.comine("shuffle", *device, "--client-folder", "second").code == 0
    assert kept.read_bytes() == before  # the very same is sent again
    ran = world.comine("shuffle", "flush", "shared")
    assert (ran.code, "fewer than 5 reports wait" in ran.err) == (30, True)


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["status", "nowhere"], 10, "no party of the federation has a route 'nowhere'"),
        (["collect", "nowhere", "--into", "basket", *COLLECTOR], 10, "nowhere.route holds no route"),
        (["collect", "shared", "--into", "basket", *COLLECTOR, "--delta", 0], 2, "--delta lies above 0"),
        (["collect", "shared", "--into", "wide", *COLLECTOR], 10, "reports to 'wide' have 128 bytes"),
        (["collect", "shared", "--into", "basket", *FLEET], 10, "takes 0 reports of the gateway 'fleet' in a period"),
        (["create", "both.toml"], 10, "name the collection whose reports go this way"),
        (["create", "few.toml"], 30, "believes client/fleet to speak for many clients, and not 'client/phone'"),
        (["create", "repeating.toml"], 10, "lets devices repeat their answers"),
        (
            ["submit", "shared", "--collection", "kept", *FLEET, "--input", "values.txt", "--gateway"],
            10,
            "repeat their",
        ),
        (["submit", "shared", "--collection", "wide", *FLEET, "--input", "numbers.txt", "--gateway"], 10, "128 bytes"),
        (["submit", "shared", "--collection", "basket", *FLEET, "--input", "values.txt"], 2, "--client-folder"),
        (
            ["submit", "shared", "--collection", "basket", *FLEET, "--input", "values.txt", "--client-folder", "x"],
            10,
            "a device has one value",
        ),
        (
            ["submit", "shared", "--collection", "basket", *COLLECTOR, "--input", "values.txt", "--gateway"],
            30,
            "north refused 999 of 1,000 reports",
        ),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(world: Shufflers, words: list[object], code: int, sentence: str) -> None:
    world.write("numbers.txt", "1\n2\n")
    world.write("both.toml", ROUTE.format(name="both") + "size = 4\n")
    world.write("few.toml", ROUTE.format(name="few").replace("fleet =", "phone ="))
    world.write("repeating.toml", ROUTE.format(name="repeating").replace('"basket"', '"kept"'))
    ran = world.comine("shuffle", *words)
    assert ran.code == code, ran.err
    assert sentence in ran.err


def test_a_folder_keeps_its_route_and_key(tmp_path: Path) -> None:
    (tmp_path / "route.toml").write_text('[route]\nname = "one"\nshufflers = ["north"]\nsize = 4\nevery = "1h"\n')
    spec = RouteSpec.load(tmp_path / "route.toml")
    folder = CollectorFolder(tmp_path / "one.route")
    route = folder.prepare(spec, 4, "coordinator/hub")
    assert (route.every, route.size, folder.route()) == (3600.0, 4, route)
    assert folder.prepare(spec, 4, "coordinator/hub") == route
    with fails("E100"):
        folder.prepare(spec, 5, "coordinator/hub")
    key = tmp_path / "one.route/collector.key"
    key.chmod(0o644)
    with fails("E100"):
        folder.private_key(route)
    key.chmod(0o600)
    key.write_text("00" * 32)
    with fails("E100"):
        folder.private_key(route)
    state = tmp_path / "state.json"
    assert read_state(state) == {}
    state.write_text("{")
    with fails("E100"):
        read_state(state)
