"""Loading: no garbage collection inside, and as it was before afterwards."""

from __future__ import annotations

import gc

import pytest

from comine.command import run
from coordinator.loading import loading


@pytest.mark.parametrize("collects", [True, False])
def test_collection_rests_and_is_as_it_was_afterwards(collects: bool) -> None:
    try:
        gc.enable() if collects else gc.disable()
        with loading():
            assert not gc.isenabled()
        assert gc.isenabled() == collects
        with pytest.raises(ModuleNotFoundError), loading():
            raise ModuleNotFoundError
        assert gc.isenabled() == collects
    finally:
        gc.enable()


def test_what_a_command_has_loaded_is_never_searched_again() -> None:
    before = gc.get_freeze_count()
    try:
        with loading():
            kept = [[] for _ in range(1000)]
        assert gc.get_freeze_count() == before
        with loading(for_good=True):
            kept += [[] for _ in range(1000)]
        assert gc.get_freeze_count() >= before + len(kept)
    finally:
        gc.unfreeze()


def test_a_command_inside_another_program_leaves_its_garbage_to_it() -> None:
    before = gc.get_freeze_count()
    assert run(["--version"]) == 0
    assert gc.get_freeze_count() == before
