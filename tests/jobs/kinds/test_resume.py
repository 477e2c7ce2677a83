"""Jobs that die after any of their steps go on from there, find the same, and reveal nothing by it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, groupby
from typing import Any, Final

import pytest

from crypto.primitives.randomness import Randomness
from jobs.data import Data
from jobs.kinds.conformance import Example
from jobs.kinds.kind import Resources
from jobs.kinds.registry import kind_of, kinds
from jobs.run import PartyRun, run_party
from jobs.spec.job import JobSpec
from jobs.statement import statement
from link.disclosure import Opened
from link.errors import ComineError, PeerError
from link.executor import ThreadExecutor
from link.journal import MemoryJournal, Step
from link.pki.authority import Authority
from link.steps import LABEL, MAX_ATTEMPTS
from link.transcripts.receipts import Account
from link.transcripts.words import Evidence
from link.transports.memory import Hub
from tests.errors import fails
from tests.jobs.audit import kinds as examples
from tests.jobs.audit.world import PARTIES
from tests.link.kept_steps import results
from tests.mining.joint import model_jobs_world as models
from tests.mining.joint.anonymisation import anonymisation_jobs_world as releases

pytestmark = pytest.mark.turn(6)

Kept = dict[str, tuple[Step, ...]]
Made = tuple[JobSpec, Mapping[str, Data]]


def _rows(helper: str = "none", **itemsets: Any) -> Callable[[], Made]:
    return lambda: (examples.basket_job("itemsets", itemsets=itemsets, trust={"helper": helper}), examples.baskets())


def _model(task: models.Task, partition: str, mode: str = "intersection") -> Callable[[], Made]:
    def made() -> Made:
        rows = models.people(40, 1)
        if partition == "horizontal":
            return models.job(task), dict(models.parted(rows, [10, 20], PARTIES))
        attributes = ["weight", "height"] if task == "k-means" else ["smoker", "town"]
        holder = dict(zip(["class", *attributes], PARTIES, strict=False))
        tables = models.columns(rows, holder, {"north": {3}, "south": set(), "east": set()})
        return models.job(task, partition="vertical", align={"mode": mode}, attributes=attributes), dict(tables)

    return made


def _release(**changes: Any) -> Callable[[], Made]:
    return lambda: (releases.job(**changes), examples.JOBS["release"][0]()[1])


JOBS: Final[Mapping[str, Callable[[], Made]]] = {
    "candidates, thinned": _rows(disclose="candidates", thin=True, strategy="level-wise"),
    "supports, hidden": _rows(disclose="supports", universe="hidden"),
    "supports, three compute": _rows(helper=PARTIES[2], disclose="supports"),
    "one-shot": _rows(disclose="supports", strategy="one-shot"),
    "tree of rows": _model("decision-tree", "horizontal"),
    "k-means of rows": _model("k-means", "horizontal"),
    "tree of columns": _model("decision-tree", "vertical"),
    "hidden clusters of columns": _model("k-means", "vertical", "union"),
    "release by regions": _release(algorithm="mondrian"),
    "release of a hidden node": _release(disclose="node", max_suppression="0.1"),
    "release with suppression": _release(max_suppression="0.1"),
}
EACH: Final = "tree of rows"


@cache
def _example(name: str) -> Example:
    return Example(*JOBS[name]())


def found(runs: Mapping[str, PartyRun]) -> dict[str, Any]:
    outcomes = {party: run.outcome for party, run in runs.items()}
    return {p: (o.n_rows, None if o.finding is None else o.finding.canonical().pack()) for p, o in outcomes.items()}


@pytest.mark.parametrize("name", JOBS)
def test_a_job_goes_on_after_its_steps(name: str) -> None:
    """After each of them where that costs little; elsewhere amid them."""
    example = _example(name)
    journals = {party: MemoryJournal() for party in example.spec.job.parties}
    first = found(example.attempt(journals, 1))
    kept = {party: tuple(Step.unpack(step.pack()) for step in journal.kept) for party, journal in journals.items()}
    (number,) = {len(steps) for steps in kept.values()}
    assert number >= 3
    for one, other in combinations(kept, 2):
        of_pair = zip(kept[one], kept[other], strict=True)
        assert all(mine.frames[other] == theirs.frames[one] for mine, theirs in of_pair)
    for came in range(1, number) if name == EACH else [number // 2]:
        again = {party: MemoryJournal(steps[:came]) for party, steps in kept.items()}
        assert found(example.attempt(again, 2)) == first
        for party, steps in kept.items():
            drawn = {step.name for step in steps if step.name.endswith("/union")}  # whose positions are of a session
            assert results(each for each in again[party].kept if each.name not in drawn) == results(
                each for each in steps if each.name not in drawn
            )


@pytest.mark.parametrize("name", ["one-shot", "tree of rows"])
def test_different_results_of_a_step_end_the_job(name: str) -> None:
    example = _example(name)
    journals = {party: MemoryJournal() for party in example.spec.job.parties}
    example.attempt(journals, 1)
    liar = journals[PARTIES[1]]
    liar.kept[0] = replace(liar.kept[0], known=replace(liar.kept[0].known, public=1))
    with fails("E400"):
        example.attempt(journals, 2)


def test_every_kind_without_noise_goes_on() -> None:
    exact = {name: made()[0] for name, (made, _) in examples.JOBS.items()}
    exact = {name: spec for name, spec in exact.items() if spec.privacy.model == "exact"}
    assert {name for name, spec in exact.items() if not kind_of(spec).resumes(spec)} == set()
    assert all(any(line.label == LABEL for line in statement(spec).declared) for spec in exact.values())
    assert kinds()


# -- a coordinator that breaks and resumes -----------------------------------------------------------------------------
class Breaking(MemoryJournal):
    """A node that is killed once it has kept so many steps."""

    def __init__(self, kept: Sequence[Step], most: int) -> None:
        super().__init__(kept)
        self.most = most

    def keep(self, place: int, step: Step) -> bool:
        super().keep(place, step)
        if place + 1 >= self.most:
            raise PeerError("this node was killed", party=PARTIES[0])
        return True


class Openings:
    """What a party has opened in one session."""

    mac_secret = b"m" * 32

    def __init__(self) -> None:
        self.opened: list[tuple[str, tuple[str, ...], int]] = []

    async def began(self, session: bytes) -> None:
        pass

    async def ended(
        self,
        session: bytes,
        opened: Sequence[Opened],
        accounts: Mapping[str, Account],
        evidence: Sequence[Evidence],
        *,
        complete: bool,
    ) -> None:
        values = ((each.label, each.recipients, each.number) for each in opened if each.label != LABEL)
        for (label, recipients), of_one in groupby(values, lambda value: value[:2]):
            numbers = [number for *_, number in of_one]  # a union's many questions follow from its elements and its key
            self.opened.append((label, recipients, numbers[0] if len(numbers) == 1 else 0))


def attempt(example: Example, number: int, journals: Mapping[str, MemoryJournal]) -> dict[str, list[Any]] | None:
    """What each party has opened in an attempt."""

    async def main() -> dict[str, list[Any]]:
        hub, authority, executor = Hub(), Authority.create(), ThreadExecutor(1)
        recorders = {party: Openings() for party in example.spec.job.parties}

        async def one(party: str) -> None:
            await run_party(
                example.spec,
                example.data[party],
                hub.endpoint(party),
                job_id=bytes(32),
                attempt=number,
                identity=authority.issue(party),
                random=Randomness.from_os(),
                executor=executor,
                progress=lambda step, done, total: None,
                resources=Resources(journal=journals[party]),
                recorder=recorders[party],
            )

        try:
            ends = await asyncio.gather(*map(one, example.spec.job.parties), return_exceptions=True)
        finally:
            executor.close()
        assert all(end is None or isinstance(end, ComineError) for end in ends)
        return {party: recorder.opened for party, recorder in recorders.items()}

    return asyncio.run(main())


def test_breaking_and_resuming_a_job_opens_nothing_that_one_attempt_does_not() -> None:
    """Each attempt dies after one more step. All that is opened in any of them are values of steps that no party had
    kept, under the labels and for the receivers of an uninterrupted job, and the results that are kept are the same.
    """
    example = _example("candidates, thinned")
    whole = {party: MemoryJournal() for party in PARTIES}
    alone = attempt(example, 1, whole)
    assert alone is not None
    kept: Kept = dict.fromkeys(PARTIES, ())
    for number in range(1, MAX_ATTEMPTS + 1):
        last = number == MAX_ATTEMPTS
        journals = {party: Breaking(kept[party], 99 if last or party != PARTIES[0] else number) for party in PARTIES}
        opened = attempt(example, number, journals)
        assert opened is not None
        for party in PARTIES:
            assert _is_part(opened[party], alone[party])
            steps = results(journals[party].kept)
            assert steps == results(whole[party].kept)[: len(steps)]
        kept = {party: tuple(journal.kept) for party, journal in journals.items()}
    assert {len(steps) for steps in kept.values()} == {len(whole[PARTIES[0]].kept)}


def _is_part(some: Sequence[Any], all_of: Sequence[Any]) -> bool:
    """Whether a sequence is a run of another."""
    return any(list(all_of[start : start + len(some)]) == list(some) for start in range(len(all_of) + 1))
