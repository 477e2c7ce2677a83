"""How many rows of all parties have how many items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.protocols.sums.costs import agreement_traffic, sum_traffic
from crypto.protocols.sums.pairwise import agree
from crypto.protocols.sums.secure_sum import declared, secure_sum
from jobs.data import Data
from jobs.kinds.data import transactions_of
from jobs.kinds.key import Key
from jobs.kinds.kind import ALL, EXACT, Disclosure, Facet, Kind, Resources, Unions
from jobs.kinds.words import watched
from jobs.plan.answer import Answer
from jobs.plan.plan import Plan
from jobs.plan.session_plan import session_plan
from jobs.privacy_account import Charge
from jobs.results.outcome import Outcome
from jobs.spec.job import JobSpec
from link.disclosure import Learned
from link.session import Session
from link.traffic import Traffic
from mining.joint.collusion import worst
from tests.extensions.basket_sizes.finding import Sizes
from tests.extensions.basket_sizes.tables import BasketSizesSection, BasketSizesSpec

LABEL: Final = "sizes"
TEMPLATE: Final = """
[basket_sizes]
longest = 20                    # rows with so many items or more are counted together
"""


class BasketSizes(Kind):
    """How many rows of all parties have how many items."""

    specification = BasketSizesSpec
    data = "transactions"
    finding = Sizes

    def template(self, key: Key, parties: tuple[str, ...]) -> str:
        return TEMPLATE if key.model == "exact" else ""

    def tables(self, spec: JobSpec) -> Mapping[str, frozenset[str]]:
        return {"basket_sizes": ALL}

    def check(self, spec: JobSpec) -> None:
        asked(spec)

    async def run(self, session: Session, spec: JobSpec, data: Data, resources: Resources) -> Outcome:
        lengths = transactions_of(spec, data, session.me).lengths
        longest = asked(spec).longest
        counts = np.bincount(np.minimum(lengths, longest), minlength=longest + 1).astype(np.uint64)
        secrets = await agree(session.lane("keys"))
        own = counts + self.noise(session, spec, len(counts)).view(np.uint64)
        total = await secure_sum(session.lane("sum"), secrets, own, label=LABEL)
        assert total is not None  # it is opened to all
        rows = np.maximum(total.view(np.int64) - self.mean(spec), 0)
        found = Sizes(tuple(rows.tolist()))
        return Outcome(found.n_rows, "secure sum", found if session.me in spec.learners else None)

    def noise(self, session: Session, spec: JobSpec, number: int) -> NDArray[np.int64]:
        """What this party adds to its counts."""
        return np.zeros(number, np.int64)

    def mean(self, spec: JobSpec) -> int:
        """What all parties together add to each count, in the mean."""
        return 0

    def disclosure(self, spec: JobSpec) -> Disclosure:
        parties, longest = spec.job.parties, asked(spec).longest
        what = f"how many rows of all parties have 0, 1, … items, those with {longest} or more together"
        sums = declared(LABEL, parties, longest + 1, what="numbers of rows of all parties", when="at the end")
        learned = Learned(parties, "result", f"the result, recipients or not: {what}").main()
        collusion = "none is needed" if len(parties) == 2 else f"all parties but two: {len(parties) - 2}"
        return Disclosure(
            what,
            watched(spec, "the number of rows"),
            (sums,),
            (learned,),
            collusion,
            worst(parties, "count of each size"),
        )

    def estimate(
        self, spec: JobSpec, answers: Mapping[str, Answer], latency_s: float, *others: str, compare: bool
    ) -> Plan:
        traffic = Traffic(spec.job.parties)
        agreement_traffic(traffic)
        sum_traffic(traffic, 8 * (asked(spec).longest + 1))
        traffic.session({party: answers[party].certificate_bytes for party in spec.job.parties})
        return session_plan(
            spec,
            {party: answers[party] for party in spec.job.parties},
            traffic,
            traffic.rounds * latency_s,
            dict.fromkeys(spec.job.parties, 1 << 20),
            n_rows=None,
            strategy="secure sum",
            batches=[],
            assumptions=list(others),
        )

    def charge(self, spec: JobSpec) -> Charge:
        return EXACT

    def facets(self, spec: JobSpec) -> frozenset[Facet]:
        return frozenset({"other"})

    def shares(self, spec: JobSpec) -> bool:
        return False

    def unions(self, spec: JobSpec) -> Unions:
        return Unions(taken=False)

    def refusals(self, spec: JobSpec) -> frozenset[str]:
        return frozenset()

    def lead(self, spec: JobSpec) -> tuple[str, str]:
        return "Sizes of baskets", "counted together; no row left its owner"

    def asks(self, spec: JobSpec) -> list[tuple[str, str]]:
        return [("longest", str(asked(spec).longest))]


def asked(spec: JobSpec) -> BasketSizesSection:
    """What the job asks for."""
    assert isinstance(spec, BasketSizesSpec)
    return spec.sizes


KIND: Final = BasketSizes()
