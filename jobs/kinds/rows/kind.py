"""Itemsets and rules over rows that parties hold for themselves, exact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.kinds.itemsets_finding import FoundItemsets
from jobs.kinds.itemsets_kind import CATALOGUE, ITEMSETS, ROWS, ItemsetsKind, check_exact
from jobs.kinds.key import Key
from jobs.kinds.kind import ALL, EXACT, Disclosure, Unions
from jobs.kinds.rows.parameters import horizontal_mining
from jobs.kinds.rows.template import template
from jobs.kinds.words import cut_to_top, exact_result, excluded, watched
from jobs.privacy_account import Charge
from jobs.spec.job import JobSpec
from link.disclosure import Learned
from link.errors import ConfigurationError
from mining.joint.collusion import collusion as opened_sums
from mining.joint.disclosure import learned, openings
from mining.joint.parameters import HorizontalMining

_UNIONS: Final = frozenset({"items", "candidates", "itemsets"})  # labels under which unions are opened


class Rows(ItemsetsKind):
    """Itemsets and rules over rows that parties hold for themselves, exact."""

    computation = "jobs.kinds.rows.run"
    planning = "jobs.kinds.rows.plan"
    data = "transactions"
    in_blocks = True
    finding = FoundItemsets

    def template(self, key: Key, parties: tuple[str, ...]) -> str:
        return template(key, parties)

    def tables(self, spec: JobSpec) -> Mapping[str, frozenset[str]]:
        how = {"disclose", "strategy", "prefer", "thin", "union", "lambda", "max_candidates"}
        return ROWS | {
            "itemsets": ITEMSETS | CATALOGUE | how,
            "union": ALL,
            "trust": frozenset({"compute"}),
            "privacy": frozenset({"model"}),
        }

    def check(self, spec: JobSpec) -> None:
        check_exact(spec)
        if spec.is_hybrid and spec.privacy_ is None:
            raise ConfigurationError('partition = "hybrid" needs a [privacy] table with model; the table is missing')
        horizontal_mining(spec)

    def disclosure(self, spec: JobSpec) -> Disclosure:
        task, parties = horizontal_mining(spec), spec.job.parties
        declared = openings(task, parties)
        unions = any(line.label in _UNIONS for line in declared)
        return Disclosure(
            exact_result(spec),
            mining_watched(spec, unions=unions),
            declared,
            (*cut_to_top(spec), *learned(task, parties), *excluded(spec)),
            _collusion(spec),
        )

    def charge(self, spec: JobSpec) -> Charge:
        return EXACT

    def shares(self, spec: JobSpec) -> bool:
        return spec.itemsets.disclose != "candidates"

    def unions(self, spec: JobSpec) -> Unions:
        """Where items are counted under pseudonyms, two unions may be of the very same items.

        These are all that are placed, and those that are frequent. Other unions of one job are of different things.
        """
        task, parties = horizontal_mining(spec), spec.job.parties
        taken = any(line.label in _UNIONS for line in openings(task, parties))
        merges = 0 if len(parties) == 2 or not taken else 2 if task.hides_names else 1
        return Unions(taken, merges, bound=spec.union.bound, named=True)

    def refusals(self, spec: JobSpec) -> frozenset[str]:
        return frozenset() if spec.itemsets.catalogue is None else frozenset({"strangers"})

    def mined_as(self, spec: JobSpec) -> HorizontalMining | None:
        return horizontal_mining(spec)


def mining_watched(spec: JobSpec, *, unions: bool) -> Learned:
    """What the coordinator sees of exact mining."""
    reveals = "which reveal the number of candidates and the greatest length of a frequent itemset"
    if unions:
        reveals += ", and of each union nearly how many elements all its sets hold together"
    return watched(spec, "N", reveals, how="strategy")


def _collusion(spec: JobSpec) -> str:
    parties, union = spec.job.parties, "a merger that colludes learns more of who shares what"
    first, second = spec.compute
    if spec.itemsets.disclose == "candidates":
        if len(parties) == 2:
            return opened_sums(parties)
        return f"{opened_sums(parties)}; the unions withstand single parties, and {union}"
    if len(parties) == 2:
        return "none is needed: each of the two parties is alone"
    together = "the third party's count" if len(parties) == 3 else "the sum over the others"
    hidden = (
        f"sums that stay hidden withstand all parties but {first} and {second}; these two together could learn "
        f"{together} of every candidate"
    )
    opened = "" if spec.itemsets.disclose == "frequent" else f"; {opened_sums(parties)}"
    return f"{hidden}{opened}; the unions withstand single parties, and {union}"


KIND: Final = Rows()
