"""Runs a job again and again, each time with parties that deviate with another plan, and judges every end."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

from protos.v1.link_pb2 import Frame
from tests.crypto.protocols.replicated.deviating_world import Alter, Ends, run_deviating
from tests.crypto.protocols.replicated.scheming import Recorded, Scheming, opened_by_honest, other_shares
from tests.crypto.protocols.replicated.test_verified_sums import unaltered
from tests.world import Role

Parties = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Campaign:
    """A job among three that compute, and who may deviate in it.

    Attributes:
        parties: Of the job.
        three: Who computes on replicated shares, if anybody does.
        role: What each does.
        declared: The labels that may be opened.
        coalitions: Who deviates, one of these at a time.
        judge: Holds an end against what may come out where these deviate, and says whether somebody noticed.
        is_as_stated: Whether what honest parties open of shares has to be what they open where nobody deviates.
    """

    parties: Parties
    three: Parties
    role: Role[Any]
    declared: Any
    coalitions: Sequence[Parties]
    judge: Callable[[Ends, Parties], bool]
    is_as_stated: Callable[[Ends], bool] = lambda ends: True

    def run(self, deviating: Parties, alter: Alter, seed: int, observe: Callable[[Frame], None]) -> Ends:
        return run_deviating(
            self.parties, self.role, deviating, alter, declared=self.declared, seed=seed, observe=observe
        )

    def against(self, seeds: range) -> Counter[str]:
        """How many of the attacks ended how: caught, with right results, with honest parties that wait, or never begun.

        Half are plans about frames, half are lies about shares where one of three deviates, some are both.
        """
        found = Counter[str]()
        for seed in seeds:
            try:
                found[self.attacked(seed)] += 1
            except AssertionError as error:
                raise AssertionError(seed) from error
        return found

    def attacked(self, seed: int) -> str:
        """How an attack ended."""
        chance = random.Random(seed)
        deviating = chance.choice(self.coalitions)
        clean, foreign = (_recorded(self, deviating, other) for other in (-1, -2))
        cheats = [each for each in deviating if each in self.three]
        plan, seen, lies = Scheming(seed, deviating, clean, foreign), Recorded(), bool(cheats) and chance.random() < 0.5
        alter: Alter = unaltered if lies and chance.random() < 0.7 else plan

        def observe(frame: Frame) -> None:
            plan.observe(frame)
            seen(frame)

        with other_shares(seed, cheats) if lies else nullcontext(list[int]()) as done:
            ends = self.run(deviating, alter, seed, observe)
        caught = self.judge(ends, deviating)
        if self.is_as_stated(ends):
            stated = opened_by_honest(clean.frames, self.three, deviating)
            for key, values in opened_by_honest(seen.frames, self.three, deviating).items():
                assert values == stated[key], key
        begun = done or (alter is plan and plan.altered)
        return "never" if not begun else "caught" if caught else "right" if ends.results else "waits"


def noticed(ends: Ends, deviating: Parties, codes: Collection[str]) -> bool:
    """Whether somebody noticed; errors name who deviates or nobody, and evidence convicts nobody else.

    Args:
        ends: Of a run.
        deviating: Who deviates in it.
        codes: That an error may have.
    """
    for error in ends.errors.values():
        assert error.code in codes, error
        assert error.party is None or error.party in deviating, error
    for found in ends.evidence.values():
        assert all(words.origin.sender in deviating for each in found for words in each.words)
    return bool(ends.errors)


@cache
def _recorded(campaign: Campaign, deviating: Parties, seed: int) -> Recorded:
    """A session in which nobody deviates."""
    found = Recorded()
    assert not campaign.run(deviating, unaltered, seed, found).errors
    return found
