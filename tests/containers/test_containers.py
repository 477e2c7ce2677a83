"""The image, and three organisations in containers of it that mine together, lose one of them and find it again.

All is built and brought up as `docs/tasks/containers.md` tells users to, by `Dockerfile`, `prepare.sh`, `compose.yaml`.
"""

from __future__ import annotations

import csv
import json
import os
import secrets
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from pathlib import Path

import pytest

from mining.reference.pooled import brute_force
from mining.reference.rules import rules as every_rule
from tests.containers.engine import Docker, engine
from tests.containers.image import OWN_BASE, build, build_again
from tests.integration.kinds.joined_tables import joined
from tests.integration.processes import Ran

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]  # the engine and the base image may have to be fetched

PARTIES = ("north", "south", "east")
CUTS = {"age": (30, 50), "spends": (25, 60)}  # of examples/cards
LONG = 20_000  # items of each party; their union keeps three nodes busy for far longer than it takes to cut one off
FLOWING = 200_000  # bytes that a node has received of a job that is well under way
WAIT_S = 120.0

LONG_DATASET = """
[[dataset]]
name = "long"
kind = "transactions"
source = "/data/long.dat"
format = "basket"

[dataset.policy]
disclose = ["supports", "candidates"]  # so that all items may be named, which takes its time
"""
LONG_JOB = """
[job]
name = "long"
task = "itemsets"
parties = ["north", "south", "east"]
dataset = "long"
recipients = ["coordinator"]
deadline = "5m"
[itemsets]
min_support = 0.5
max_length = 1
universe = "all-items"
"""


SELDOM = "30s"  # between two looks at the health of a node, each of which takes a second of processor time
OVERRIDE = json.dumps({"services": {party: {"healthcheck": {"interval": SELDOM}} for party in PARTIES}})


@dataclass(frozen=True)
class Shops:
    """The federation of `docker/compose.yaml`, up and healthy.

    Attributes:
        docker: The engine.
        folder: A copy of the repository's folder `docker`, with what `prepare.sh` has made.
        compose: The compose command and the project.
        environment: For it.
    """

    docker: Docker
    folder: Path
    compose: tuple[str, ...]
    environment: dict[str, str]

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Starts a compose command."""
        return subprocess.Popen(
            [*self.compose, *arguments],
            cwd=self.folder,
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> Ran:
        """Runs a compose command to its end."""
        return ended(self.begin(*arguments))

    def coordinator(self, *arguments: str) -> tuple[str, ...]:
        """The compose command that runs `comine` at the coordinator, whatever state the nodes are in."""
        return ("run", "--rm", "--no-deps", "-T", "coordinator", *arguments)

    def job(self, name: str, out: str) -> tuple[str, ...]:
        """The compose command that runs a job, which ends when it loses a party."""
        files = (f"{name}.toml", "--federation", "federation.toml", "--out", f"/results/{out}", "--retries", "0")
        return self.coordinator("job", "run", *files)

    def up(self) -> None:
        """Brings the nodes up and waits until all are healthy."""
        ran = self.run("up", "--detach", *PARTIES)
        assert ran.code == 0, ran.err
        for party in PARTIES:
            self.until_healthy(party)

    def until_healthy(self, party: str) -> None:
        end = time.monotonic() + WAIT_S
        container = self.container(party)
        shown = "{{.State.Status}} {{.State.Health.Status}}"
        while (state := self.docker("inspect", "--format", shown, container)) != "running healthy":
            assert state.startswith("running "), self.log(party)  # unhealthy at first, on a busy machine
            assert time.monotonic() < end, self.log(party)
            time.sleep(0.2)

    def container(self, party: str) -> str:
        """The id of a party's container, running or not."""
        labels = {"project": self.compose[-1], "service": party, "oneoff": "False"}
        filters = (f"--filter=label=com.docker.compose.{label}={value}" for label, value in labels.items())
        (container,) = self.docker("ps", "--all", "--quiet", *filters).split()
        return container

    def inside(self, party: str, *command: str) -> Ran:
        """Runs a command in a party's container."""
        return self.docker.run("exec", self.container(party), *command)

    def log(self, party: str) -> str:
        ran = self.docker.run("logs", self.container(party))
        return ran.out + ran.err

    def received(self, party: str) -> int:
        """Bytes that have come to a party over the network."""
        lines = self.inside(party, "cat", "/proc/net/dev").out.splitlines()
        return sum(int(line.split(":")[1].split()[0]) for line in lines if line.strip().startswith("eth"))

    def itemsets(self, out: str) -> dict[frozenset[str], int]:
        with (self.folder / "federation" / "coordinator" / "results" / out / "itemsets.csv").open() as file:
            return {frozenset(json.loads(row["itemset"])): int(row["count"]) for row in csv.DictReader(file)}


def ended(process: subprocess.Popen[str]) -> Ran:
    try:
        out, err = process.communicate(timeout=WAIT_S)
    finally:
        process.kill()
    return Ran(process.returncode, out, err)


def said(ran: Ran) -> str:
    """The one sentence of comine among what compose tells."""
    (sentence,) = (line for line in ran.err.splitlines() if line.startswith("comine: "))
    return sentence


def baskets(shops: Shops) -> list[list[str]]:
    files = (shops.folder / "federation" / party / "data" / "baskets.dat" for party in PARTIES)
    return [line.split() for file in files for line in file.read_text().splitlines() if line.strip()]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Docker, str, Path]]:
    """The engine, the image's name and the copy of the repository that it was built from."""
    with engine() as docker:
        tag = f"comine-test:{secrets.token_hex(4)}"
        try:
            yield docker, tag, build(docker, tag, tmp_path_factory.mktemp("image"))
        finally:
            docker.remove_images(tag, OWN_BASE)


@pytest.fixture(scope="module")
def shops(image: tuple[Docker, str, Path]) -> Iterator[Shops]:
    docker, tag, checkout = image
    command = docker.compose()
    if command is None:
        pytest.skip("there is no docker compose here, and no root to install it")
    folder = checkout / "docker"
    environment = {**docker.environment, "COMINE_IMAGE": tag}
    made = subprocess.run(
        ["./prepare.sh"], cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    federation = folder / "federation"
    for party in PARTIES:
        with (federation / party / "etc" / "party.toml").open("a") as file:
            file.write(LONG_DATASET)
        (federation / party / "data" / "long.dat").write_text("".join(f"{party}{i}\n" for i in range(LONG)))
    (federation / "coordinator" / "etc" / "long.toml").write_text(LONG_JOB)
    (folder / "compose.override.yaml").write_text(OVERRIDE)

    project = f"comine-{secrets.token_hex(4)}"
    shops = Shops(docker, folder, (*command, "--project-name", project), environment)
    try:
        shops.up()
        yield shops
    finally:
        shops.run("down", "--volumes", "--remove-orphans", "--timeout", "10")


def test_the_image_runs_as_nobody_in_particular(image: tuple[Docker, str, Path]) -> None:
    docker, tag, _ = image
    (config,) = json.loads(docker("image", "inspect", "--format", "[{{json .Config}}]", tag))
    assert config["User"] == "10001:10001"
    assert config["Entrypoint"] == ["comine"]
    assert config["StopSignal"] == "SIGTERM"
    assert config["Healthcheck"]["Test"] == ["CMD", "comine", "party", "health", "/etc/comine/party.toml"]
    assert config["Labels"]["org.opencontainers.image.title"] == "comine"
    hardened = ("--rm", "--network", "none", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL")
    for user in ("10001:10001", "4321:4321"):
        shown = docker("run", *hardened, "--user", user, tag, "--version")
        assert shown.startswith("comine ")
    nowhere = docker.run("run", *hardened, tag, "party", "health", "/etc/comine/party.toml")
    assert nowhere.code == 10
    assert "/etc/comine/party.toml does not exist" in nowhere.sentence


def test_the_image_brings_no_tools_and_no_secrets(image: tuple[Docker, str, Path]) -> None:
    docker, tag, _ = image
    plain = ("run", "--rm", "--network", "none", "--entrypoint")
    unwanted = ("/opt/comine", "-name", "pip", "-o", "-name", "tests", "-o", "-name", "*.key")
    assert docker(*plain, "find", tag, *unwanted) == ""
    origin = "from crypto.primitives.groups.sodium import library; print(library().origin)"
    assert docker(*plain, "python", tag, "-c", origin) == "system"


def test_the_image_tells_what_is_in_it_and_serves_as_a_relay_too(image: tuple[Docker, str, Path]) -> None:
    docker, tag, _ = image
    plain = ("run", "--rm", "--network", "none", "--entrypoint")
    bill = json.loads(docker(*plain, "cat", tag, "/opt/comine/share/comine/sbom.cdx.json"))
    assert {"grpcio", "numpy"} <= {each["name"] for each in bill["components"]}
    nowhere = docker.run("run", "--rm", "--network", "none", tag, "relay", "serve", "/etc/comine/relay.toml")
    assert nowhere.code == 10
    assert "/etc/comine/relay.toml does not exist" in nowhere.sentence


def test_all_layers_of_an_image_that_is_built_again_are_the_same(image: tuple[Docker, str, Path]) -> None:
    """Names, owners, modes, times and bytes: of what pip installs, too."""
    docker, tag, context = image
    build_again(docker, f"{tag}-again", context)
    try:
        first, again = (layers(docker, each) for each in (tag, f"{tag}-again"))
        assert len(first) > 2
        if again != first:
            assert listed(docker, f"{tag}-again") == listed(docker, tag)  # so that a failure says where they differ
        assert again == first
    finally:
        docker.remove_images(f"{tag}-again")


def layers(docker: Docker, tag: str) -> list[str]:
    """The digests of an image's layers, those of its base first."""
    digests: list[str] = json.loads(docker("image", "inspect", "--format", "{{json .RootFS.Layers}}", tag))
    return digests


def listed(docker: Docker, tag: str) -> set[str]:
    """A line for each file and folder in /opt/comine, and one for the bytes of each file."""
    script = "find . -mindepth 1 -printf '%p %l %m %U %G %T@\\n'; find . -type f -exec sha256sum {} +"
    run = ("run", "--rm", "--network", "none", "--workdir", "/opt/comine", "--entrypoint", "sh", tag, "-c", script)
    return set(docker(*run).splitlines())


def test_three_organisations_mine_what_the_pooled_baskets_hold(shops: Shops) -> None:
    ran = shops.run("run", "--rm", "-T", "coordinator")  # the doctor, once all it depends on is healthy
    assert ran.code == 0, ran.err
    ran = shops.run(*shops.job("job", "groceries"))
    assert ran.code == 0, ran.err

    rows = baskets(shops)
    frequent = brute_force(rows, ceil(Fraction("0.05") * len(rows)))
    assert shops.itemsets("groceries") == frequent
    folder = shops.folder / "federation" / "coordinator" / "results" / "groceries"
    with (folder / "rules.csv").open() as file:
        found = {
            (frozenset(json.loads(row["antecedent"])), frozenset(json.loads(row["consequent"])), int(row["count"]))
            for row in csv.DictReader(file)
        }
    expected = every_rule(frequent, Fraction("0.6"), single=True)
    assert found == {(rule.antecedent, rule.consequent, rule.count) for rule in expected}
    assert json.loads((folder / "result.json").read_text())["n_rows"] == len(rows)
    assert (folder / "report.html").stat().st_size > 0


def test_three_organisations_mine_what_the_joined_tables_hold(shops: Shops) -> None:
    ran = shops.run(*shops.job("cards", "cards"))
    assert ran.code == 0, ran.err
    tables = [shops.folder / "federation" / party / "data" / "cards.csv" for party in PARTIES]
    rows = joined(tables, "card", CUTS)
    assert shops.itemsets("cards") == brute_force(rows, ceil(Fraction("0.05") * len(rows)))


def test_a_node_can_do_nothing_but_its_work(shops: Shops) -> None:
    for party in PARTIES:
        status = dict(line.split(":\t", 1) for line in shops.inside(party, "cat", "/proc/1/status").out.splitlines())
        assert "0" not in status["Uid"].split() + status["Gid"].split()
        assert {int(status[f"Cap{kind}"], 16) for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {0}
        assert status["NoNewPrivs"] == "1"
        lines = shops.inside(party, "cat", "/proc/mounts").out.splitlines()
        mounts = {line.split()[1]: line.split()[3].split(",") for line in lines}
        assert "ro" in mounts["/"]
        assert {"rw", "noexec", "nosuid", "nodev"} <= set(mounts["/tmp"])
        assert all("ro" in mounts[place] for place in ("/etc/comine", "/data", "/run/secrets/key"))
        assert "rw" in mounts["/var/lib/comine"]
        assert shops.inside(party, "ls", "/run/secrets").out.split() == ["key"]
        for place in ("/", "/etc/comine", "/data", "/opt/comine"):
            assert shops.inside(party, "touch", f"{place}/new").code != 0
        ran = shops.inside(party, "comine", "party", "health", "/etc/comine/party.toml", "--json")
        assert json.loads(ran.out) == {
            "schema": "comine.health/1",
            "party": party,
            "address": "127.0.0.1:7101",
            "ready": True,
        }
    assert shops.docker("network", "inspect", "--format", "{{.Internal}}", network(shops)) == "true"


def network(shops: Shops) -> str:
    return f"{shops.compose[-1]}_federation"


def test_a_party_that_is_cut_off_is_named_in_time_and_the_next_job_succeeds(shops: Shops) -> None:
    before = {party: shops.received(party) for party in PARTIES}
    process = shops.begin(*shops.job("long", "long"))
    try:
        end = time.monotonic() + WAIT_S
        while any(shops.received(party) - before[party] < FLOWING for party in PARTIES):
            assert process.poll() is None, ended(process)
            assert time.monotonic() < end
            time.sleep(0.2)
        east = shops.container("east")
        shops.docker("network", "disconnect", network(shops), east)
        cut_off = time.monotonic()
        ran = ended(process)
        print(f"told {time.monotonic() - cut_off:.1f} s after the cut: {said(ran)}")
        assert ran.code == 20, ran.err
        assert "east" in said(ran)
        assert not (shops.folder / "federation" / "coordinator" / "results" / "long").exists()

        ran = shops.run(*shops.job("job", "without-east"))
        assert ran.code == 20, ran.err
        assert "east" in said(ran)
    finally:
        process.kill()
        shops.docker.run("network", "connect", "--alias", "east", network(shops), shops.container("east"))

    ran = shops.run(*shops.job("job", "with-east"))
    assert ran.code == 0, ran.err
    assert shops.itemsets("with-east") == brute_force(baskets(shops), 25)


def test_a_node_ends_when_told_to_and_comes_back_with_its_state(shops: Shops) -> None:
    east = shops.container("east")
    shops.docker("stop", "--time", "10", east)
    assert shops.docker("inspect", "--format", "{{.State.ExitCode}}", east) == "0"  # 137 where it had to be killed
    ran = shops.run(*shops.coordinator("doctor", "--federation", "federation.toml"))
    assert ran.code == 20
    assert "1 of 3 parties cannot take part: east" in ran.err

    assert shops.run("rm", "--force", "east").code == 0  # as an upgrade does; the volume stays
    shops.up()
    assert shops.container("east") != east
    assert shops.inside("east", "ls", "-A", "/var/lib/comine/east").out != ""
    ran = shops.run(*shops.job("job", "after"))
    assert ran.code == 0, ran.err
