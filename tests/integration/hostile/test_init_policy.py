"""Policies as `comine init` writes them, approving at once, against coordinators that look for what they must not know.

Real nodes run with them, in processes of their own; the attacks are jobs and plans that a coordinator may well send.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import grpc
import pytest

from coordinator.demo.loopback import LoopbackFederation
from coordinator.member import load_federation
from jobs.loading import load_job
from link.transports.grpc_channel import dial
from party.config import PartyConfig
from party.init_files import render_party
from protos.v1.control_pb2_grpc import ControlStub
from protos.v1.plan_pb2 import EstimateRequest
from tests.examples import crossed
from tests.integration.processes import Process, command

pytestmark = [pytest.mark.slow, pytest.mark.turn(3)]

PARTIES = ("north", "south", "east")
MADE = {"bread": 0.5, "milk": 0.4, "tea": 0.2}
JOB = """
[job]
name = "probe"
task = "itemsets"
parties = [{parties}]
dataset = "baskets"
recipients = ["coordinator"]
"""
NOISY = """
[privacy]
model = "distributed"
epsilon = {epsilon}
delta = {delta}
{more}
"""


def rows(number: int, seed: int) -> list[list[str]]:
    made = random.Random(seed)
    return [[item for item, share in MADE.items() if made.random() < share] or ["filler"] for _ in range(number)]


@dataclass(frozen=True)
class Ran:
    code: int
    err: str
    out: Path


class World:
    """A federation whose nodes run, and the coordinator's folder."""

    def __init__(self, federation: LoopbackFederation) -> None:
        self.federation, self.folder, self.number = federation, federation.folder / "coordinator", 0

    def run(self, itemsets: str, privacy: str = "", verb: str = "run", parties: Sequence[str] = PARTIES) -> Ran:
        self.number += 1
        job, out = self.folder / f"{self.number}.toml", self.folder / f"out-{self.number}"
        job.write_text(JOB.format(parties=", ".join(map(json.dumps, parties))) + f"[itemsets]\n{itemsets}\n{privacy}")
        files = ("--federation", self.federation.file, *(["--out", out] * (verb == "run")))
        found = command("job", verb, job, *files, cwd=self.folder)
        return Ran(found.code, found.err, out)

    def spent(self, party: str) -> dict[str, Decimal]:
        told = command("party", "budget", "party.toml", "--json", cwd=self.federation.folder / party).out
        (dataset,) = json.loads(told)["datasets"]
        return {key: Decimal(value) for key, value in dataset["spent"].items()}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One row of the south holds a withheld item, and another one that no catalogue below names."""
    data = {name: rows(number, seed) for seed, (name, number) in enumerate(zip(PARTIES, (300, 250, 200), strict=True))}
    data["south"][9].append("hiv")
    data["south"][10].append("zz rare".replace(" ", "-"))
    for place in range(6):
        data["north"][place] = ["seven"]
    data["south"][0] = ["seven"]
    folder, sources = tmp_path_factory.mktemp("organisations"), {}
    for name, baskets in data.items():
        sources[name] = folder / f"{name}.dat"
        sources[name].write_text("\n".join(map(" ".join, baskets)) + "\n")
    federation = LoopbackFederation.prepare(folder / "federation", "baskets", sources)
    for name in PARTIES:
        written = render_party(
            name, listen="127.0.0.1:1", dataset="baskets", source={"source": "a", "format": "basket"}
        )
        policy = written[written.index("[dataset.privacy]") : written.index("# What coordinators may collect")]
        policy = policy.replace('approve = "manual"', 'approve = "auto"  ').replace("# withhold", "withhold")
        file = federation.folder / name / "party.toml"
        text = file.read_text()
        file.write_text(text[: text.index("[policy]")] + policy)
        assert PartyConfig.load(file).policy.withhold == ("hiv*",)
    (federation.folder / "coordinator" / "catalogue.txt").write_text("bread\nmilk\n")
    (federation.folder / "coordinator" / "rare.txt").write_text("absent\nseven\n")
    (federation.folder / "coordinator" / "withheld.txt").write_text("bread\nhiv\n")
    nodes = [Process("party", "serve", "party.toml", cwd=federation.folder / name) for name in PARTIES]
    try:
        for node in nodes:
            node.until(" is ready at ")
        yield World(federation)
    finally:
        for node in nodes:
            node.kill()


TOP = 'top_k = 2\nmax_length = 1\nuniverse = "rare.txt"\nexclude = ["hiv*"]'


@pytest.mark.parametrize(
    ("epsilon", "delta", "more", "code"),
    [
        ("0.001", "0.99999", "", 10),  # no noise is left, and next to nothing is spent
        ("0.001", "0.001", "", 10),
        ("100", "0.999", "", 10),
        ("0.99", "0.999999999", "contributions = [1]", 10),
        ("0.001", "1e-4", "", 30),  # above the total of delta
        ("100", "1e-6", "", 30),
        ("2.1", "1e-6", "contributions = [1]", 30),
        ("0.1", "1e-6", "colluding = 0", 30),
    ],
)
def test_noise_that_hides_nothing_is_refused_and_spends_nothing(
    world: World, epsilon: str, delta: str, more: str, code: int
) -> None:
    before = [world.spent(name) for name in PARTIES]
    ran = world.run(TOP, NOISY.format(epsilon=epsilon, delta=delta, more=more))
    assert (ran.code, ran.out.exists()) == (code, False), ran.err
    assert [world.spent(name) for name in PARTIES] == before


def test_many_noisy_jobs_end_at_the_totals(world: World) -> None:
    codes = [world.run(TOP, NOISY.format(epsilon="0.6", delta="2e-6", more="")).code for _ in range(5)]
    assert codes == [0, 0, 0, 30, 30]  # of 2.0
    for name in PARTIES:
        spent = world.spent(name)
        assert (spent["epsilon"], spent["delta"]) == (Decimal("1.8"), Decimal("6e-6"))


HIV = '"[!bh]*", "h", "h[!i]*", "hi", "hi[!v]*", "hiv?*"'  # all but the item itself


@pytest.mark.parametrize(
    ("itemsets", "verb"),
    crossed(
        [
            "",
            'universe = "hidden"',
            'universe = "catalogue.txt"',  # a catalogue that does not name the item, so that who has it would stand out
            'universe = "withheld.txt"',
            f'universe = "catalogue.txt"\nexclude = [{HIV}]',
            f'universe = "withheld.txt"\nexclude = [{HIV}]',
            'exclude = ["HIV*"]',
            'exclude = ["hiv"]',
        ],
        ["run", "plan"],
    ),
)
def test_a_job_or_plan_that_does_not_exclude_what_is_withheld_is_refused_by_what_it_says(
    world: World, itemsets: str, verb: str
) -> None:
    ran = world.run(f"min_support = 100\n{itemsets}", verb=verb)
    assert ran.code == 30, ran.err
    assert "rule withhold" in ran.err
    assert "items that" not in ran.err


@pytest.mark.parametrize("universe", ["catalogue.txt", "withheld.txt", "frequent-items", "hidden-all"])
def test_a_job_that_excludes_it_succeeds_as_if_nobody_had_it(world: World, universe: str) -> None:
    """Nor does an item that a catalogue does not name end the job: that would name who has it."""
    ran = world.run(f'min_support = 100\nuniverse = "{universe}"\nexclude = ["hiv*"]')
    assert ran.code == 0, ran.err
    found = (ran.out / "itemsets.csv").read_text()
    assert "bread" in found
    assert "hiv" not in found
    assert "zz" not in found


@pytest.mark.parametrize("support", ["1", "9", "0.0009"])
def test_floors_hold_for_exact_jobs(world: World, support: str) -> None:
    assert world.run(f'min_support = {support}\nexclude = ["hiv*"]').code == 30


@pytest.mark.parametrize(
    ("itemsets", "verb"),
    crossed(
        [
            'min_support = 10\ndisclose = "candidates"\nuniverse = "rare.txt"\nmax_length = 1',  # a single row
            'min_support = 0.5\ndisclose = "candidates"',
            'min_support = 10\nuniverse = "all-items"',  # the name of an item that one row has
            'min_support = 100\nuniverse = "all-items"\nexclude = ["hiv*", "[bmtf]*"]',
        ],
        ["run", "plan"],
    ),
)
def test_floors_hold_towards_parties_too(world: World, itemsets: str, verb: str) -> None:
    """A job that opens sums, or names items, below the floors to those who take part, though its result holds none."""
    ran = world.run(itemsets if "exclude" in itemsets else f'{itemsets}\nexclude = ["hiv*"]', verb=verb)
    assert (ran.code, "has a floor (rule min_support)" in " ".join(ran.err.split())) == (30, True), ran.err


@pytest.mark.parametrize("more", ["", 'universe = "rare.txt"', 'universe = "hidden-all"', 'disclose = "frequent"'])
def test_the_most_frequent_of_few_items_are_no_way_below_the_floors(world: World, more: str) -> None:
    """Seven rows hold one of the two items of the catalogue, and nobody the other: `top_k` would tell both numbers."""
    ran = world.run(f'top_k = 2\nmax_length = 1\nexclude = ["hiv*", "[bmtf]*"]\n{more}')
    assert ran.code != 0 or "seven" not in (ran.out / "itemsets.csv").read_text(), ran.err


@pytest.mark.parametrize("pair", [("north", "south"), ("south", "east")])
def test_two_parties_are_too_few(world: World, pair: tuple[str, str]) -> None:
    ran = world.run('min_support = 100\nexclude = ["hiv*"]', parties=pair)
    assert (ran.code, "rule min_parties" in ran.err) == (30, True), ran.err


def test_a_row_more_or_less_between_two_jobs_is_too_little(world: World) -> None:
    """Jobs on other days: the difference would be the row of one person."""
    job = 'min_support = 100\nexclude = ["hiv*"]'
    assert world.run(job).code == 0
    config = PartyConfig.load(world.federation.folder / "south" / "party.toml")
    source = Path(str(config.dataset[0].source))
    whole = source.read_text()
    for changed in (whole + "bread milk\n", "".join(whole.splitlines(keepends=True)[:-1])):
        source.write_text(changed)
        ran = world.run(job)
        assert (ran.code != 0, ran.out.exists()) == (True, False), ran.err
    source.write_text(whole)
    assert world.run(job).code == 0


def test_plans_that_close_in_on_a_number_say_the_same_and_come_to_an_end(world: World) -> None:
    """Of an item that seven rows hold, one that nobody holds, a common one, and pairs; until no plan is answered."""
    one = {"seven": '"[!s]*", "s[!e]*"', "absent": '"[!a]*"', "bread": '"[!b]*"', "pair": '"[!bm]*"'}
    specs = []
    for exclude in one.values():
        for support in range(10, 18):
            job = world.folder / "closing-in.toml"
            job.write_text(
                JOB.format(parties='"north", "south", "east"') + f"[itemsets]\nmin_support = {support}\n"
                f'exclude = ["hiv*", {exclude}]\n'
            )
            specs.append(load_job(job).canonical())
    for party in PARTIES:
        told, refused = asyncio.run(planned(world, party, specs * 4))
        assert len(set(told)) == 1
        assert len(told) <= 100
        assert all("rule max_plans" in sentence for sentence in refused)
        assert refused


async def planned(world: World, party: str, specs: list[bytes]) -> tuple[list[bytes], list[str]]:
    """What a party answers to plans, but for the speed of its machine; and how it refuses them."""
    known, identity = load_federation(world.federation.file)
    channel = dial(identity, party, known.addresses[party])
    told, refused = list[bytes](), list[str]()
    for spec in specs:
        try:
            answer = await ControlStub(channel).Estimate(EstimateRequest(spec=spec))
        except grpc.aio.AioRpcError as error:
            refused.append(error.details() or "")
        else:
            answer.ClearField("speed")
            told.append(answer.SerializeToString(deterministic=True))
    await channel.close()
    return told, refused
