"""Mining sets under local differential privacy: what is found of the reference baskets, and processor time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations, product

import numpy as np

from benchmarks.datasets import Case, available, lines
from benchmarks.settings import Settings
from benchmarks.table import Table
from crypto.primitives.randomness import Randomness
from ldp.bias_aware import NORMAL
from ldp.certify import spent_epsilon
from ldp.oracles.direct_encoding import DirectEncoding
from ldp.sets.baskets import Baskets
from ldp.sets.itemset_candidates import Itemset, contained, largest_itemset
from ldp.sets.ldp_miner import LDPMiner
from ldp.sets.metrics import f1, ncr, variance_of_found
from ldp.sets.padding import PaddingAndSampling, amplified
from ldp.sets.plan import FoundItemset, MiningPlan, MiningServer
from ldp.sets.svim import ItemMining
from ldp.sets.svsm import ItemsetMining

EPSILONS = (1.0, 2.0, 4.0)
K = 32
COPIES = 10
SEEDS = {"SVIM": 6, "LDPMiner": 2, "SVSM": 20, "coverage": 6}
COVERAGE_CASES = tuple(Case(name, Decimal(1)) for name in ("kosarak36k", "retail"))
COVERAGE_COPIES = (1, 10)
COVERAGE_EPSILONS = (0.5, 1.0, 2.0, 4.0)

# Measured beforehand, with simulated reports: F1, NCR and the variance of found items.
SIMULATED = {
    "SVIM": {1.0: (0.318, 0.496, 1.0e-2), 2.0: (0.599, 0.782, 7.8e-3), 4.0: (0.911, 0.970, 3.4e-4)},
    "LDPMiner": {1.0: (0.109, 0.204, 5.2e-2), 2.0: (0.141, 0.250, 1.0e-2), 4.0: (0.328, 0.533, 2.5e-3)},
}
# What the code reaches that the authors of SVSM published: F1 and NCR.
PUBLISHED = {1.0: (0.094, 0.172), 2.0: (0.406, 0.608), 4.0: (0.656, 0.822)}

Truth = dict[Itemset, float]
"""The k most frequent itemsets and their frequencies, the most frequent first."""


@dataclass(frozen=True)
class Score:
    """Means over seeds.

    Attributes:
        f1: F1.
        f1_error: Its standard error.
        ncr: Normalised cumulative rank.
        ncr_error: Its standard error.
        variance: Mean squared error of the frequencies of what was rightly found.
        length: L of the last phase.
        seconds: Processor time of a search.
    """

    f1: float
    f1_error: float
    ncr: float
    ncr_error: float
    variance: float
    length: float
    seconds: float


def run(settings: Settings) -> list[Table]:
    """Items and itemsets, where the data are here."""
    tables = []
    large, small = (Case(name, Decimal(1)) for name in ("kosarak100k", "kosarak36k"))
    if available((large,)):
        baskets = _baskets(large)
        users = baskets if settings.quick else baskets[np.tile(np.arange(len(baskets)), COPIES)]
        tables.append(_items(users, settings))
    if available((small,)):
        tables.append(_itemsets(_baskets(small), settings))
    tables += [_coverage(case, settings) for case in available(COVERAGE_CASES)]
    return tables


def _items(users: Baskets, settings: Settings) -> Table:
    table = Table(
        f"The {K} most frequent items of {len(users):,} users' sets (kosarak100k), {users.size:,} items",
        ("method, ε", "F1", "± se", "before", "NCR", "± se", "before", "variance", "before", "L", "s"),
        notes=[
            f"means of {SEEDS['SVIM']} seeds, LDPMiner of {SEEDS['LDPMiner']}; before: measured with simulated reports",
            "variance: mean squared error of what was rightly found; s: processor time of all clients and the server",
        ],
    )
    truth, most = _items_of(users), int(np.quantile(users.sizes, 0.9))
    for epsilon in EPSILONS:
        plans: tuple[tuple[str, MiningPlan], ...] = (
            ("SVIM", ItemMining(users.size, epsilon, K)),
            ("LDPMiner", LDPMiner(users.size, epsilon, K, most)),
        )
        for method, plan in plans:
            settings.tell(f"{method}, ε = {epsilon:g}")
            score = _scored(plan, users, truth, 1 if settings.quick else SEEDS[method])
            before = SIMULATED[method][epsilon]
            table.add(
                f"{method}, ε = {epsilon:g}",
                *(score.f1, score.f1_error, before[0]),
                *(score.ncr, score.ncr_error, before[1]),
                *(score.variance, before[2], score.length, score.seconds),
            )
    return table


def _coverage(case: Case, settings: Settings) -> Table:
    """How many of the 95 % intervals hold the true share, by the number of users and ε."""
    baskets, most = _baskets(case), 1 if settings.quick else SEEDS["coverage"]
    table = Table(
        f"95 % intervals that cover, {case.data}, {baskets.size:,} items, k = {K}",
        ("search, users, ε", "coverage", "too low", "too high", "F1", "± se", "L", "deviation"),
        notes=[f"means of {most} seeds; too low: the whole interval lies below the truth"],
    )
    truths = {"SVIM": _items_of(baskets), "SVSM": _itemsets_of(baskets)}
    for copies in COVERAGE_COPIES[: 1 if settings.quick else None]:
        users = baskets[np.tile(np.arange(len(baskets)), copies)]
        for name, epsilon in product(truths, COVERAGE_EPSILONS):
            settings.tell(f"coverage, {case.data}, {name}, {len(users):,} users, ε = {epsilon:g}")
            plan = ItemMining(users.size, epsilon, K) if name == "SVIM" else ItemsetMining(users.size, epsilon, K)
            off, scores, lengths, deviations = [], [], [], []
            for seed in range(most):
                found, mechanism = _searched(plan, users, seed)
                true = _shares(baskets, [each.items for each in found])
                deviations += [each.deviation for each in found]
                off += [(each.frequency - share) / each.deviation for each, share in zip(found, true, strict=True)]
                scores.append(f1([each.items for each in found], truths[name]))
                lengths.append(mechanism.length)
            low, high = (float(np.mean(np.array(off) * side > NORMAL)) for side in (-1, 1))
            error = float(np.std(scores, ddof=1)) / most**0.5 if most > 1 else 0.0
            table.add(
                f"{name}, {len(users):,}, ε = {epsilon:g}",
                *(1 - low - high, low, high, float(np.mean(scores)), error),
                *(float(np.mean(lengths)), float(np.mean(deviations))),
            )
    return table


def _searched(plan: MiningPlan, users: Baskets, seed: int) -> tuple[list[FoundItemset], PaddingAndSampling]:
    """What a search of one seed finds, and the mechanism of its last phase."""
    rng, server = Randomness.from_seed(seed), MiningServer(plan)
    groups = plan.assign(len(users), rng) if plan.divides_users else None
    while not server.finished:
        asked = users if groups is None else users[groups == server.phase.number]
        server.add(server.phase.mechanism.privatise(asked, rng))
        server.advance()
    assert isinstance(server.phase.mechanism, PaddingAndSampling)
    return server.found(), server.phase.mechanism


def _shares(baskets: Baskets, itemsets: list[Itemset]) -> list[float]:
    """The true shares of users with each of some itemsets."""
    ordered = sorted(itemsets)
    counts = dict(zip(ordered, (contained(baskets, ordered).counts() / len(baskets)).tolist(), strict=True))
    return [counts[each] for each in itemsets]


def _itemsets(baskets: Baskets, settings: Settings) -> Table:
    table = Table(
        f"The {K} most frequent itemsets of {len(baskets):,} users' sets (kosarak36k), {baskets.size:,} items",
        ("SVSM, ε", "F1", "± se", "published", "NCR", "± se", "published", "L", "ε", "with one dummy", "s"),
        notes=[
            f"means of {SEEDS['SVSM']} seeds; published: by the code of SVSM's authors",
            "ε: spent, by enumeration over all sets of three items for that L; with one dummy, as published, for l = 4",
        ],
    )
    truth = _itemsets_of(baskets)
    for epsilon in EPSILONS:
        settings.tell(f"SVSM, ε = {epsilon:g}")
        plan = ItemsetMining(baskets.size, epsilon, K)
        score = _scored(plan, baskets, truth, 1 if settings.quick else SEEDS["SVSM"])
        length, published = round(score.length), PUBLISHED[epsilon]
        table.add(
            f"ε = {epsilon:g}",
            *(score.f1, score.f1_error, published[0]),
            *(score.ncr, score.ncr_error, published[1]),
            score.length,
            spent_epsilon(PaddingAndSampling(3, epsilon, length, oracle="grr").channel()),
            # The empty set reports the one dummy as if it were a value.
            spent_epsilon(DirectEncoding(3 + 1, amplified(epsilon, 4)).channel()),
            score.seconds,
        )
    return table


def _scored(plan: MiningPlan, users: Baskets, truth: Truth, seeds: int) -> Score:
    """Searches of several seeds, each with a new assignment of users."""
    scores, lengths = [], []
    began = time.process_time()
    for seed in range(seeds):
        searched, mechanism = _searched(plan, users, seed)
        found = {each.items: each.frequency for each in searched}
        variance = variance_of_found(found, truth)
        scores.append((f1(found, truth), ncr(found, list(truth)), np.nan if variance is None else variance))
        lengths.append(mechanism.length)
    spent = (time.process_time() - began) / seeds
    means = np.nanmean(scores, axis=0).tolist()
    errors = (np.std(scores, axis=0, ddof=1) / np.sqrt(seeds)).tolist() if seeds > 1 else [0.0, 0.0]
    return Score(means[0], errors[0], means[1], errors[1], means[2], float(np.mean(lengths)), spent)


def _items_of(baskets: Baskets, k: int = K) -> Truth:
    counts = baskets.counts()
    best = np.argsort(-counts, kind="stable")[:k].tolist()
    return {(item,): counts[item] / len(baskets) for item in best}


def _itemsets_of(baskets: Baskets) -> Truth:
    """The k most frequent itemsets, level by level: all items of one are among the k most frequent items."""
    known = _items_of(baskets)
    for size in range(2, largest_itemset(K) + 1):
        least = sorted(known.values())[-K]
        alive = [each for each in known if len(each) == size - 1 and known[each] >= least]
        joined = {tuple(sorted({*one, *other})) for one, other in combinations(alive, 2)}
        candidates = sorted(each for each in joined if len(each) == size)
        if not candidates:
            break
        counts = contained(baskets, candidates).counts()
        known.update(zip(candidates, (counts / len(baskets)).tolist(), strict=True))
    best = sorted(known, key=lambda each: (-known[each], each))[:K]
    return {each: known[each] for each in best}


def _baskets(case: Case) -> Baskets:
    rows = [line.split() for line in lines(case)]
    _, codes = np.unique(np.array([int(item) for row in rows for item in row]), return_inverse=True)
    owners = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    return Baskets.of_occurrences(owners, codes.astype(np.int64), len(rows), int(codes.max()) + 1)
