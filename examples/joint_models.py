"""Joint models, three clinics in one process: `python examples/joint_models.py`.

Three clinics hold patients of their own. They learn a naive Bayes model, a decision tree and clusters of all patients;
then a tree again, where every clinic holds one column of the same patients.

In a job the parties are processes of three organisations, and `Session` talks over gRPC under mutual TLS; the functions
that are called here are the same.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable
from decimal import Decimal

import numpy as np

from crypto.params import STANDARD_128
from crypto.primitives.randomness import Randomness
from crypto.protocols.comparison.two_party import pairs_of
from link.core import Terms
from link.disclosure import Declared
from link.executor import ThreadExecutor
from link.session import Session
from link.transports.memory import Hub
from mining.joint.models import decision_tree, kmeans, naive_bayes
from mining.joint.models.aligned import AlignedAttributes
from mining.models.attributes import Categorical, Intervals, LabelledRows, Numeric
from mining.models.decision_tree import TreeParameters
from mining.models.kmeans import KMeansParameters, drawn_centroids
from mining.models.naive_bayes import NaiveBayesParameters

CLINICS = ("north", "south", "east")
CUTS = (30, 50, 70)

# What all parties agree on beforehand.
OUTCOME = Categorical("outcome", ("well", "ill"))
SMOKER = Categorical("smoker", ("no", "yes"))
AGE = Numeric("age", Decimal(0), Decimal(100), 100)
BAYES = NaiveBayesParameters(OUTCOME, (SMOKER, AGE))
TREE = TreeParameters(OUTCOME, (SMOKER, Intervals("age", tuple(map(Decimal, CUTS)))), min_rows=20)
GROUPS = KMeansParameters((AGE,), drawn_centroids((AGE,), 3, seed=1))


def patients(seed: int, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Outcome, smoker and age of invented patients: who smokes at 50 and more is ill, and some others are."""
    generator = np.random.default_rng(seed)
    smoker, age = generator.integers(0, 2, number), generator.integers(20, 91, number)
    ill = ((smoker == 1) & (age >= 50)) | (generator.random(number) < 0.05)
    return ill.astype(np.int64), smoker, age


def at(clinic: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The patients of one clinic, where each has its own."""
    return patients(CLINICS.index(clinic), 400)


async def learn_bayes(session: Session) -> list[str]:
    """A clinic's part in a naive Bayes model."""
    ill, smoker, age = at(session.me)
    found = await naive_bayes.learn_horizontal(session, LabelledRows(ill, (smoker, age)), BAYES, ("east",))
    if found.model is None:
        return ["not told"]
    said = found.model.predict([np.array([1, 0]), np.array([70, 70])])
    return [f"a smoker of 70 is {OUTCOME.values[said[0]]}, a non-smoker {OUTCOME.values[said[1]]}"]


async def grow_tree(session: Session) -> list[str]:
    """A clinic's part in a decision tree."""
    ill, smoker, age = at(session.me)
    own = LabelledRows(ill, (smoker, np.searchsorted(CUTS, age, side="right")))
    return (await decision_tree.learn_horizontal(session, own, TREE)).model.lines()


async def find_groups(session: Session) -> list[str]:
    """A clinic's part in clusters of ages."""
    _, _, age = at(session.me)
    found = await kmeans.cluster_horizontal(session, age[:, None], GROUPS)
    if found.model is None:
        return ["not told"]
    return [
        f"{size} around {centre:.1f}"
        for size, (centre,) in zip(found.model.counts, found.model.numbers(GROUPS), strict=True)
    ]


async def grow_tree_of_columns(session: Session) -> list[str]:
    """A clinic's part in a decision tree, where each has one column of the same 1,000 patients."""
    ill, smoker, age = patients(9, 1000)
    columns = {
        "north": {"outcome": ill},
        "south": {"smoker": smoker},
        "east": {"age": np.searchsorted(CUTS, age, side="right")},
    }
    own = AlignedAttributes(columns[session.me], 1000)
    return (await decision_tree.learn_vertical(session, pairs_of(session.lane("pairs")), own, TREE)).model.lines()


async def together(what: str, part: Callable[[Session], Awaitable[list[str]]], declared: Iterable[Declared]) -> None:
    """All parties beside each other, joined by a hub in memory. Nothing becomes public that is not declared."""
    hub, executor, lines = Hub(), ThreadExecutor(), tuple(declared)
    job = hashlib.sha256(what.encode()).digest()

    async def run(name: str) -> list[str]:
        session = await Session.establish(
            Terms(job, 1, job, CLINICS, STANDARD_128.suite),
            name,
            hub.endpoint(name),
            random=Randomness.from_os(),
            executor=executor,
            declared=lines,
        )
        return await part(session.lane("task"))

    try:
        *_, east = await asyncio.gather(*map(run, CLINICS))
    finally:
        executor.close()
    print(f"{what}; east learns:")
    for line in east:
        print(f"  {line}")


async def main() -> None:
    """Four joint models."""
    bayes = naive_bayes.openings(BAYES, CLINICS, ("east",), vertical=False, everywhere=True)
    await together("naive Bayes", learn_bayes, bayes)
    await together("tree", grow_tree, decision_tree.openings(TREE, CLINICS, vertical=False, everywhere=True))
    await together("clusters", find_groups, kmeans.openings(GROUPS, CLINICS, CLINICS, vertical=False))
    of_columns = decision_tree.openings(TREE, CLINICS, vertical=True, everywhere=True)
    await together("tree of columns", grow_tree_of_columns, of_columns)


if __name__ == "__main__":
    asyncio.run(main())
