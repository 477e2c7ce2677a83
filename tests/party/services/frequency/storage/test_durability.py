from __future__ import annotations

import random
import time
from pathlib import Path

import numpy as np
import pytest

from protos.v1.frequency_pb2 import COUNTED, DUPLICATE
from tests.examples import in_turn
from tests.party.services.frequency import killed
from tests.party.services.frequency.forking import forking

KILLS = 50
LONGEST_S = 0.2  # beyond, more was written, and nothing else happened


def written(folder: Path) -> int:
    """Bytes of the journal."""
    path = folder / "journal"
    return path.stat().st_size if path.exists() else 0


@pytest.mark.slow
@pytest.mark.parametrize("seldom", in_turn([False, True], 2))
def test_a_node_that_is_killed_loses_no_acknowledged_report_and_counts_none_twice(tmp_path: Path, seldom: bool) -> None:
    random.seed(int(seldom))
    again: list[int] = []
    following = 0
    answered_in_all = 0
    for number in range(KILLS // 2):
        before = written(tmp_path)
        child = forking().Process(target=killed.take, args=(tmp_path, again, following, 10_000, seldom))
        child.start()
        while number % 2 and child.is_alive() and written(tmp_path) == before:  # the others may die as they begin
            time.sleep(0.001)
        time.sleep(random.uniform(0, LONGEST_S))
        child.kill()
        child.join()
        child.close()
        begun, answered = set[int](), set[int]()
        sure = np.zeros(killed.CLIENTS, bool)
        for kind, batch, statuses in killed.journal(tmp_path):
            if kind == killed.STARTED:
                begun.add(batch)
            else:
                answered.add(batch)
                assert set(statuses.tolist()) <= {COUNTED, DUPLICATE}
                sure[killed.clients_of(batch)] = True
        possible = np.zeros(killed.CLIENTS, bool)
        for batch in begun:
            possible[killed.clients_of(batch)] = True
        tally = killed.counted(tmp_path)
        assert tally.max() <= 1
        assert np.all(tally[sure] == 1)
        assert not tally[~possible].any()
        again, following = sorted(begun - answered), max(begun, default=-1) + 1
        answered_in_all = len(answered)
    assert answered_in_all > KILLS  # it did come to something

    # A client that knows of no answer at all sends everything once more: nothing changes but what was missing.
    killed.take(tmp_path, list(range(following)), following, 0, True)
    everyone = np.zeros(killed.CLIENTS, np.int64)
    for batch in range(following):
        everyone[killed.clients_of(batch)] = 1
    assert killed.counted(tmp_path).tolist() == everyone.tolist()
    first_answers = np.zeros(killed.CLIENTS, np.int64)
    for kind, batch, statuses in killed.journal(tmp_path):
        if kind == killed.ANSWERED:
            np.add.at(first_answers, killed.clients_of(batch)[statuses == COUNTED], 1)
    assert first_answers.max() <= 1  # nobody was told twice that it was counted
