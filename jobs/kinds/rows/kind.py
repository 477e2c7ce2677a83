"""Itemsets and rules over rows that parties hold for themselves, exact."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from jobs.kinds.itemsets_finding import FoundItemsets
from jobs.kinds.itemsets_kind import CATALOGUE, ITEMSETS, ROWS, ItemsetsKind, check_exact
from jobs.kinds.key import Key
from jobs.kinds.kind import ALL, EXACT, Disclosure, Unions
from jobs.kinds.rows.parameters import helper_of, horizontal_mining
from jobs.kinds.rows.template import template
from jobs.kinds.words import cut_to_top, exact_result, excluded, watched
from jobs.privacy_account import Charge
from jobs.spec.job import JobSpec
from link.disclosure import Learned
from link.errors import ConfigurationError
from mining.joint.collusion import NOBODY_ELSE
from mining.joint.collusion import collusion as opened_sums
from mining.joint.collusion import worst as opened_at_worst
from mining.joint.disclosure import learned, openings
from mining.joint.parameters import HorizontalMining

_ELEMENTS: Final = "nearly how many elements it has, or how long their names are together"
OF_POSITIONS: Final = f", and size classes of numbers of items, and of each union {_ELEMENTS}"
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
            "trust": ALL,
            "privacy": frozenset({"model"}),
        }

    def check(self, spec: JobSpec) -> None:
        check_exact(spec)
        if spec.is_hybrid and spec.privacy_ is None:
            raise ConfigurationError('partition = "hybrid" needs a [privacy] table with model; the table is missing')
        _check_helper(spec)
        if spec.is_verified:
            _check_verified(spec)
        horizontal_mining(spec)

    def disclosure(self, spec: JobSpec) -> Disclosure:
        task, parties = horizontal_mining(spec), spec.job.parties
        declared = openings(task, parties)
        of_unions = OF_POSITIONS if task.hides_names else ""
        if not of_unions and any(line.label in _UNIONS for line in declared):
            of_unions = f", and of each union {_ELEMENTS}"
        return Disclosure(
            exact_result(spec),
            mining_watched(spec, of_unions),
            declared,
            (*cut_to_top(spec), *learned(task, parties), *excluded(spec)),
            _collusion(spec),
            _worst(spec),
        )

    def charge(self, spec: JobSpec) -> Charge:
        return EXACT

    def resumes(self, spec: JobSpec) -> bool:
        """Where parties may deviate none is believed what it has kept: one could have another batch decided anew."""
        return not spec.is_verified

    def shares(self, spec: JobSpec) -> bool:
        return spec.itemsets.disclose != "candidates"

    def helper(self, spec: JobSpec) -> str | None:
        return helper_of(spec)

    def unions(self, spec: JobSpec) -> Unions:
        """A hidden universe aligns items as rows are aligned by union: each party works on the lists of all."""
        task = horizontal_mining(spec)
        taken = any(line.label in _UNIONS for line in openings(task, spec.job.parties))
        return Unions(taken, bound=spec.union.bound, squared=task.hides_names)

    def refusals(self, spec: JobSpec) -> frozenset[str]:
        return frozenset() if spec.itemsets.catalogue is None else frozenset({"strangers"})

    def mined_as(self, spec: JobSpec) -> HorizontalMining | None:
        return horizontal_mining(spec)


def mining_watched(spec: JobSpec, of_unions: str) -> Learned:
    """What the coordinator sees of exact mining.

    Args:
        spec: The job.
        of_unions: What it sees of unions, in the same sentence.
    """
    reveals = "which reveal the number of candidates and the greatest length of a frequent itemset"
    return watched(spec, "N", f"{reveals}{of_unions}", how="strategy")


def _check_helper(spec: JobSpec) -> None:
    """Refuses a helper that cannot compute beside the two computing parties, or has nothing to compute."""
    helper, parties = helper_of(spec), spec.job.parties
    if helper is None:
        return
    if helper not in parties or helper in spec.compute:
        raise ConfigurationError(
            f"[trust] helper: '{helper}' cannot compute beside {' and '.join(spec.compute)}; over rows, name a third "
            "party of the job"
        )
    if spec.itemsets.disclose == "candidates" and not spec.is_verified:
        raise ConfigurationError(
            '[trust] helper computes on sums that stay hidden, and disclose = "candidates" opens them all; leave the '
            "helper out"
        )


def _check_verified(spec: JobSpec) -> None:
    """Refuses what is not checked against parties that deviate."""
    given = spec.itemsets
    needs = 'security = "malicious" in [trust] needs'
    if given.disclose == "candidates":
        raise ConfigurationError(
            f'{needs} sums that stay hidden until they are checked; set [itemsets] disclose to "supports" or "frequent"'
        )
    if helper_of(spec) is None:
        _check_between_two(spec, needs)
    if horizontal_mining(spec).hides_names:
        raise ConfigurationError(
            f"{needs} items that have names, since no alignment is checked; set [itemsets] universe to "
            '"frequent-items", "all-items" or a file of items'
        )
    if given.disclose == "frequent" and spec.rules is not None:
        raise ConfigurationError(
            f'{needs} the supports of itemsets for rules, since no confidence is checked; set disclose = "supports"'
        )


def _check_between_two(spec: JobSpec, needs: str) -> None:
    """Refuses what only three computing parties check."""
    given = spec.itemsets
    if given.catalogue is None:
        raise ConfigurationError(
            f"{needs} a public catalogue where two parties compute, since they check no union; set [itemsets] universe "
            "to a file of items, or name a third computing party as [trust] helper"
        )
    if given.thin or given.strategy == "one-shot":
        raise ConfigurationError(
            f'{needs} strategy = "level-wise" without thin where two parties compute, since they check no union; set '
            "these in [itemsets], or name a third computing party as [trust] helper"
        )
    if given.disclose == "supports" and not set(spec.compute) <= set(spec.learners):
        raise ConfigurationError(
            f"{needs} both computing parties among the recipients where two compute and open supports, since each of "
            'them checks what the other opens; add them to recipients, or set [itemsets] disclose = "frequent"'
        )


def _collusion(spec: JobSpec) -> str:
    parties = spec.job.parties
    if len(parties) == 2 and spec.itemsets.disclose != "candidates":
        return "none is needed: each of the two parties is alone"
    if len(parties) == 2:
        return opened_sums(parties)
    of_items = _collusion_on_items(spec)
    if spec.itemsets.disclose == "candidates":
        return "; ".join((opened_sums(parties), *of_items))
    together = "the third party's count" if len(parties) == 3 else "the sum over the others"
    if spec.is_verified and len(parties) > 3:  # each deals shares of its own counts
        together = "each other party's count"
    first, second = spec.compute
    if (helper := helper_of(spec)) is not None:
        hidden = (
            f"sums that stay hidden withstand each of {first}, {second} and {helper}, also with parties that do not "
            f"compute; any two of these three together could learn {together} of every candidate"
        )
    else:
        hidden = (
            f"sums that stay hidden withstand all parties but {first} and {second}; these two together could learn "
            f"{together} of every candidate"
        )
    opened = () if spec.itemsets.disclose == "frequent" else (opened_sums(parties),)
    return "; ".join((hidden, *opened, *of_items))


def _collusion_on_items(spec: JobSpec) -> Iterator[str]:
    """What parties together could learn of others' items, beside counts; nothing where no union is taken."""
    if KIND.unions(spec).taken:
        if spec.is_verified:
            yield "of the unions, any two of them together could learn what each party brings"
        else:
            yield "of the unions, all parties but one learn only what none of them holds, and is the last one's"
    if horizontal_mining(spec).hides_names:
        yield "of who shares items, all parties but one learn only what the names of frequent ones say"


def _worst(spec: JobSpec) -> str:
    parties, disclose = spec.job.parties, spec.itemsets.disclose
    if disclose == "candidates":
        return opened_at_worst(parties, "count of every candidate")
    if len(parties) == 2:
        return NOBODY_ELSE if disclose == "frequent" else opened_at_worst(parties, "count of every frequent itemset")
    first, second = spec.compute
    third = "the third's count" if len(parties) == 3 else "the others' sum"
    if spec.is_verified and len(parties) > 3:
        third = "each other's count"
    pair = f"{first} and {second}"
    if (helper := helper_of(spec)) is not None:
        pair = f"any two of {first}, {second} and {helper}"
    if disclose == "frequent" or (helper is not None and len(parties) == 3):  # who know it of every candidate know it
        return f"{pair} together could compute {third} of every candidate"
    known = opened_at_worst(parties, "count of every frequent itemset")
    return f"{known}, {pair} {'' if len(parties) == 3 else f'{third} '}of every candidate"


KIND: Final = Rows()
