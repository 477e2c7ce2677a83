"""What several jobs reveal together: attacks as sequences of jobs, each of which ends refused under `min_group`.

Jobs give what mining the pooled rows gives, which other tests show of the protocols; here that is counted directly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from decimal import Decimal
from itertools import combinations, count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobs.kinds.charge import charge
from jobs.spec.job import JobSpec
from link.errors import PolicyDenied
from party.config import PartyConfig
from party.data.sources import Rows
from party.policy.budget import budget, budget_text
from party.policy.joint_result import UNKNOWN, joint_result, other_columns, tells_of_few, too_close
from party.policy.judge import Judge
from party.policy.policy import verdicts
from party.policy.policy_input import Version
from party.policy.privacy_budget import DatasetBudget
from party.policy.several_jobs import check_version
from party.services.anonymization.releases import Releases
from party.state.ledger import Entry, Ledger
from party.state.store import Store
from protos.v1.control_pb2 import JobState
from tests.errors import fails
from tests.party.files import party_toml
from tests.party.policy.test_policy import columns, facts, job, judge, policy, private
from tests.party.state.test_store import record

ALL = ("north", "south", "east", "west", "centre", "coast")
ABC, ABCD = ALL[:3], ALL[:4]
TWIN = '[[dataset]]\nname = "twin"\nkind = "transactions"\nsource = "{}.dat"\nformat = "basket"\n'


# -- sums over sets of parties ----------------------------------------------------------------------------------------
def tells_by_definition(new: frozenset[int], before: set[frozenset[int]], least: int) -> bool:
    """Whether some combination that takes the new sum is not nothing, and of fewer parties than `least`."""
    sets = [new, *(before - {new})]
    names = sorted(frozenset().union(*sets))
    matrix = np.array([[name in each for name in names] for each in sets], float)
    for size in range(least):
        for few in combinations(range(len(names)), size):
            outside = np.delete(matrix, few, axis=1)
            left = np.linalg.svd(outside.T)
            rank = int(np.sum(left.S > 1e-9))
            weights = left.Vh[rank:]  # all combinations that leave nobody else in
            if np.abs(weights[:, 0]).max(initial=0) > 1e-9 and np.abs(weights @ matrix).max(initial=0) > 1e-9:
                return True
    return False


SETS = st.frozensets(st.integers(0, 5), min_size=2)


@given(new=SETS, before=st.sets(SETS, max_size=4), least=st.integers(2, 4))
@example(new=frozenset({0, 1, 2, 3, 4, 5}), before={frozenset({0, 1, 2}), frozenset({3, 4, 5})}, least=3)
@example(new=frozenset({0, 1}), before={frozenset({0, 1}), frozenset({0, 1, 2})}, least=2)
@example(new=frozenset({0, 1, 2}), before={frozenset({0, 1, 3}), frozenset({2, 4}), frozenset({3, 5})}, least=2)
def test_sums_tell_of_few_parties_just_where_a_combination_does(
    new: frozenset[int], before: set[frozenset[int]], least: int
) -> None:
    def named(parties: frozenset[int]) -> tuple[str, ...]:
        return tuple(ALL[number] for number in sorted(parties))

    found = tells_of_few(named(new), [named(each) for each in before], least)
    assert found == tells_by_definition(new, before, least)


def test_what_is_too_much_to_look_at_counts_as_told() -> None:
    names = [f"p{number}" for number in range(32)]
    same = [names[:20]] * 50
    assert not tells_of_few(names[:20], same, 15)  # the same parties every time are no work at all
    many = [[name for number, name in enumerate(names) if number >> bit & 1] for bit in range(5)]
    assert tells_of_few(names, many, 15)
    assert not tells_of_few(names, many, 2)


# -- hidden supports --------------------------------------------------------------------------------------------------
@given(low=st.integers(1, 60), high=st.integers(1, 60), least=st.integers(1, 12), support=st.integers(0, 70))
def test_verdicts_leave_at_least_so_many_supports_open(low: int, high: int, least: int, support: int) -> None:
    if too_close(str(low), str(high), least, None) or low == high:
        return
    verdicts = [support >= low, support >= high]
    alike = [each for each in range(71) if [each >= low, each >= high] == verdicts]
    assert len(alike) >= min(least, low, high, 11)


@given(n=st.integers(1, 500), first=st.integers(1, 999), second=st.integers(1, 999), least=st.integers(1, 20))
def test_fractions_are_as_far_apart_as_of_the_fewest_rows(n: int, first: int, second: int, least: int) -> None:
    if not too_close(f"0.{first:03}", f"0.{second:03}", least, n) and first != second:
        assert abs(-(-first * n // 1000) - -(-second * n // 1000)) >= least


def test_thresholds_that_nobody_can_compare_are_too_close() -> None:
    assert not too_close("", "5", 10, None)  # a job that opens supports pins nothing
    assert not too_close("0.5", "0.5", 10, None)
    assert too_close("0.5", "0.1", 10, None)
    assert too_close("0.5", "50", 10, 1000)
    assert too_close("5", UNKNOWN, 1, 1000)


def test_what_counts_of_a_job() -> None:
    hidden = {"disclose": "frequent"}
    assert joint_result(job(parties=["south", "north"])) == (("north", "south"), True, "", "")
    assert [joint_result(job(itemsets={**hidden, "min_support": s})).threshold for s in (7, Decimal("0.010"))] == [
        "7",
        "0.01",
    ]
    assert not joint_result(columns("south")).sums


# -- whole nodes ------------------------------------------------------------------------------------------------------
class World:
    """Nodes, their rows, and a neighbour who keeps every result."""

    def __init__(self, folder: Path, stack: ExitStack, rules: str) -> None:
        self.rows = {name: [{"bread"} for _ in range(20 + 7 * at)] for at, name in enumerate(ALL)}
        self._folder, self._stack, self._rules = folder, stack, rules
        self._nodes: dict[str, tuple[Judge, Store, Ledger]] = {}
        self._ids = (number.to_bytes(32, "big") for number in count(1))

    def _node(self, name: str) -> tuple[Judge, Store, Ledger]:
        if name not in self._nodes:
            path = self._folder / f"{name}.toml"
            path.write_text(party_toml(name, policy=self._rules).replace("[policy]", f"{TWIN.format(name)}[policy]"))
            store = self._stack.enter_context(closing(Store.open(self._folder / f"{name}.db")))
            ledger = self._stack.enter_context(closing(Ledger.open(self._folder / f"{name}.db")))
            releases = self._stack.enter_context(closing(Releases.open(self._folder / f"{name}.releases", name)))
            judge = Judge(PartyConfig.load(path), ALL, store, ledger, releases)
            self._nodes[name] = judge, store, ledger
        return self._nodes[name]

    def run(self, *parties: str, item: str = "bread", dataset: str = "baskets", coordinator: str = "analyst") -> int:
        """The support of an item, as a job opens it.

        Raises:
            PolicyDenied: A node refuses the job.
        """
        spec, job_id = job(parties=list(parties), dataset=dataset, itemsets={"min_support": 1}), next(self._ids)
        for name in parties:
            self._node(name)[0].decide(spec, coordinator, job_id=job_id)
        for name in parties:  # as `charge_start` and `_check_data` do
            rules, store, ledger = self._node(name)
            ledger.note_result(dataset, joint_result(spec))
            begun = {"dataset": dataset, "started": float(job_id[-1]), "parties": parties, "state": JobState.RUNNING}
            assert store.add(record(1, **begun | {"job_id": job_id}))
        for name in parties:
            rules, store, ledger = self._node(name)
            rows = self._read(name)

            async def read(_: str, rows: Rows = rows) -> Rows:
                return rows

            asyncio.run(rules.check_data(spec, rows, read, job_id))
            ledger.note_version(dataset, Version(*rows))
            store.note_data(job_id, *rows)
        return sum(item in row for name in parties for row in self.rows[name])

    def _read(self, name: str) -> Rows:
        return Rows(len(self.rows[name]), repr([sorted(row) for row in self.rows[name]]).encode())


@pytest.fixture
def worlds(tmp_path: Path) -> Iterator[Callable[[str], World]]:
    with ExitStack() as stack:

        def world(rules: str) -> World:
            folder = tmp_path / str(abs(hash(rules)))
            folder.mkdir()
            return World(folder, stack, rules)

        yield world


def one_party_more(world: World) -> tuple[int, int]:
    """Two sums over sets that differ by west give west's number; none of west's rules can know of the first."""
    return world.run(*ABCD[:3]) - world.run(*ABCD), -sum("bread" in row for row in world.rows["west"])


def one_party_less_for_another_coordinator(world: World) -> tuple[int, int]:
    first = world.run(*ABCD)
    return first - world.run(*ABC, coordinator="other"), len(world.rows["west"])


def a_pair_of_which_one_colludes(world: World) -> tuple[int, int]:
    """South tells its own number: of the pair the difference names, west's is left."""
    together = world.run("north", "east", "centre", "south", "west") - world.run("north", "east", "centre")
    return together - len(world.rows["south"]), len(world.rows["west"])


def three_sums(world: World) -> tuple[int, int]:
    """No two of the sets differ by one party."""
    first, second = world.run("north", "south", "east", "west"), world.run("north", "south", "centre", "coast")
    both = world.run("north", "east", "west", "centre", "coast")
    pair = first + second - both  # north and twice south
    return (pair - len(world.rows["north"])) // 2, len(world.rows["south"])


def one_row_more(world: World) -> tuple[int, int]:
    before = world.run(*ABC, item="milk")
    world.rows["north"].append({"milk"})
    return world.run(*ABC, item="milk") - before, 1


def many_rows_and_back(world: World) -> tuple[int, int]:
    """Each step changes enough rows; the first and the last job differ by one."""
    before, kept = world.run(*ABC, item="milk"), list(world.rows["north"])
    world.rows["north"] = kept + [{"bread"} for _ in range(30)]
    world.run(*ABC)
    world.rows["north"] = [*kept, {"milk"}]
    return world.run(*ABC, item="milk") - before, 1


def under_another_name(world: World) -> tuple[int, int]:
    first = world.run(*ABCD)
    return first - world.run(*ABC, dataset="twin"), len(world.rows["west"])


ATTACKS = [
    one_party_more,
    one_party_less_for_another_coordinator,
    a_pair_of_which_one_colludes,
    three_sums,
    one_row_more,
    many_rows_and_back,
    under_another_name,
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_gives_the_number_without_the_rule_and_is_refused_with_it(
    worlds: Callable[[str], World], attack: Callable[[World], tuple[int, int]]
) -> None:
    found, truth = attack(worlds("min_parties = 3\n"))
    assert found == truth
    with fails("E300"):
        attack(worlds("min_parties = 3\nmin_group = 5\n"))


def test_harmless_series_go_on(worlds: Callable[[str], World]) -> None:
    world = worlds("min_parties = 3\nmin_group = 5\n")
    for _ in range(4):  # daily, with new rows at some
        world.run(*ABC)
        world.run(*ABC, item="milk", coordinator="other")
        world.rows["north"] += [{"milk"} for _ in range(5)]
        world.rows["south"] += [{"bread"} for _ in range(500)]
    world.run(*ALL)  # three more parties
    world.run(*ALL[3:], dataset="twin")
    world.run(*ABC)


def test_what_failed_has_perhaps_been_opened(worlds: Callable[[str], World]) -> None:
    """The second job ends where its rows are looked at; its sums count nevertheless."""
    world = worlds("min_parties = 2\nmin_group = 5\n")
    world.run("north", "coast")
    world.rows["north"].append({"bread"})
    with fails("E300"):
        world.run(*ALL[:5])
    world.rows["north"].pop()
    with fails("E300"):
        world.run(*ABCD)
    world.run(*ALL[:5])


# -- one policy -------------------------------------------------------------------------------------------------------
RULES: dict[str, Any] = {"min_group": 10, "disclose": ["frequent"]}


def hidden(support: Any, **changes: Any) -> JobSpec:
    return job(itemsets={"min_support": support, "disclose": "frequent"}, **changes)


def test_a_threshold_that_moves_by_one_pins_a_hidden_support() -> None:
    """Frequent at 50, and not at 51: 50 rows have the itemset."""
    before = [joint_result(hidden(50))]
    assert judge(policy(**RULES), hidden(50), results=before) == "auto"
    assert judge(policy(**RULES), hidden(60), results=before) == "auto"
    assert judge(policy(**RULES | {"disclose": ["frequent", "supports"]}), hidden(51), results=before) == "auto"
    for support in (51, 41):
        with fails("E300", party="north"):
            judge(policy(**RULES), hidden(support), results=before)


def test_fractions_are_compared_over_the_rows_that_are_published() -> None:
    before = [joint_result(hidden(Decimal("0.02")))]
    assert judge(policy(**RULES), hidden(Decimal("0.01")), results=before, published_rows=2000) == "auto"
    for rows in (500, None):
        with fails("E300", party="north"):
            judge(policy(**RULES), hidden(Decimal("0.01")), results=before, published_rows=rows)


def test_jobs_that_open_more_than_sums_have_the_same_parties() -> None:
    """Over columns, the rows that all have in common are others with each set of parties."""
    rules = policy(min_group=10, min_parties=2)
    pair, three = columns("south"), columns("south", "east")
    assert judge(rules, pair, results=[joint_result(pair)]) == "auto"
    for first, then in ((pair, three), (pair, job()), (job(parties=["north", "south"]), three)):
        with fails("E300", party="north"):
            judge(rules, then, results=[joint_result(first)])


def cut_at(*cuts: int, **tables: Any) -> JobSpec:
    return columns("south", itemsets={"min_support": 50, "cuts": {"age": list(cuts)} if cuts else {}}, **tables)


def test_jobs_over_columns_that_count_other_people_are_refused() -> None:
    """Of people of 30 there is one. As much tells of whom trimmed ids alone have in common."""
    rules, before = policy(min_group=10, tasks=["itemsets", "align"]), [joint_result(cut_at(30, 60))]
    ages = [*range(20, 30)] * 8 + [30] + [*range(31, 60)] * 3
    assert sum(age < 31 for age in ages) - sum(age < 30 for age in ages) == 1
    assert judge(rules, cut_at(30, 60), results=before) == "auto"
    assert judge(rules, columns("south", task="align"), results=before) == "auto"
    others = [
        cut_at(31, 60),
        cut_at(30),
        cut_at(),
        columns("south", itemsets={"min_support": 50, "quantiles": {"age": 4}}),
        cut_at(30, 60, align={"trim": True}),
        columns("south", task="align", align={"case": "fold"}),
    ]
    for spec in others:
        with fails("E300", party="north"):
            judge(rules, spec, results=before)
        assert judge(policy(tasks=["itemsets", "align"]), spec, results=before) == "auto"


def test_columns_that_nobody_can_read_any_more_are_others() -> None:
    assert other_columns(joint_result(cut_at(30)).columns, UNKNOWN)
    assert not other_columns(joint_result(cut_at(30)).columns, "")  # of a job over rows
    assert (
        joint_result(cut_at(30)).columns == joint_result(columns("south", itemsets={"cuts": {"age": ["30.0"]}})).columns
    )


def test_items_that_a_job_excludes_change_no_count() -> None:
    """Rows stay, empty or not; so a job without them and one with them give the same numbers of everything else."""
    before = [joint_result(job())]
    assert judge(policy(min_group=10), job(itemsets={"exclude": ["hiv*"]}), results=before) == "auto"


def test_noise_that_totals_bound_stands_in_for_the_rule() -> None:
    budget = DatasetBudget(epsilon=1, delta="1e-5")  # type: ignore[arg-type]
    before = [joint_result(job(parties=list(ABCD)))]
    assert judge(policy(min_group=10), private("distributed"), results=before, budget=budget) == "auto"
    with fails("E300", party="north"):
        judge(policy(min_group=10), private("distributed"), results=before)


def test_the_verdict_says_what_may_follow() -> None:
    (said,) = [each for each in verdicts(policy(min_group=10), facts(job())) if each.rule == "min_group"]
    assert said.later
    assert said.allows == (
        "with all jobs before it, numbers of at least 2 parties, and the rows of an earlier job or at least 10 more or "
        "fewer than in each"
    )


# -- what is kept -----------------------------------------------------------------------------------------------------
def test_rows_that_nobody_knows_refuse_until_a_job_ran_without_the_rule(tmp_path: Path) -> None:
    rules = policy(min_group=5)
    with closing(Ledger.open(tmp_path / "node.db")) as ledger:
        ledger.note_version("baskets", Version(None, b""))
        ledger.note_version("baskets", Version(100, b"a"))

        def check(n_rows: int, digest: bytes) -> None:
            before = ledger.versions("baskets")
            check_version(rules, me="north", n_rows=n_rows, data_digest=digest, before=before)

        check(100, b"a")
        with fails("E300", party="north"):
            check(200, b"b")
        ledger.note_version("baskets", Version(100, b"a"), forgive=True)
        check(200, b"b")
        with pytest.raises(PolicyDenied):
            check(104, b"c")


def test_the_ledger_shows_what_is_taken_together(tmp_path: Path) -> None:
    path = tmp_path / "north.toml"
    path.write_text(party_toml("north").replace("[policy]", f"{TWIN.format('north')}[policy]"))
    with closing(Ledger.open(tmp_path / "node.db")) as ledger:
        ledger.record(Entry(bytes(32), 1, 0.0, "baskets", "weekly", "analyst", charge(job())))
        ledger.note_result("baskets", joint_result(hidden(50)))
        cut = {"cuts": {"age": [Decimal(30), Decimal("50.0")]}, "quantiles": {"income": 4}}
        ledger.note_result("twin", joint_result(columns("south", itemsets=cut, align={"case": "fold"})))
        ledger.note_result("twin", joint_result(columns("south"))._replace(columns=UNKNOWN))
        ledger.note_version("twin", Version(10, b"a"))
        (found, _) = budget(PartyConfig.load(path), ledger, None, 1.0).datasets
        text = budget_text(budget(PartyConfig.load(path), ledger, "baskets", 1.0))
    assert found.together.model_dump() == {
        "sums": [["east", "north", "south"]],
        "more": [["north", "south"]],
        "thresholds": ["50"],
        "columns": [
            None,
            {
                "trim": False,
                "case": "fold",
                "unicode": "none",
                "groups": [],
                "intervals": {"age": ["30", "50"], "income": 4},
            },
        ],
        "versions": 1,
    }
    assert (
        "  what min_group takes together of exact jobs, on one version of the rows\n    sums of east, north, south\n"
        "    more than sums of north, south\n    hidden supports at 50\n"
        "    over columns, in a way that is not known any more\n"
        '    over columns, ids by trim = false, case = "fold", unicode = "none"; \'age\' cut at 30, 50; '
        "'income' in 4 quantiles\n"
    ) in text
