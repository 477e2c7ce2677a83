"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import pathlib
import signal
from collections.abc import Iterator

import hypothesis
import pytest

from tests.examples import USUAL, few_at_first
from tests.remembered import remember_groups_work

# Machines are shared, and no test is timed. Integration takes the same examples every time, as Hypothesis advises, so
# that it judges the change and not the draw; `make test` draws others at every run.
hypothesis.settings.register_profile("comine", deadline=None, derandomize="CI" in os.environ, max_examples=USUAL)
hypothesis.settings.load_profile("comine")

# A run in a shell's background ignores Ctrl-C; the commands that tests start and interrupt must not inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Files of ten seconds and more, the longest first. `make test` gives whole files to its workers, in order: one of these
# that began late would keep one worker busy when the others are done.
LONGEST = (
    "containers/test_containers.py",
    "integration/test_tutorials.py",
    "joint/test_acceptance.py",
    "integration/test_process_faults.py",
    "integration/test_faults.py",
    "integration/test_resume.py",
    "integration/test_demo.py",
    "integration/test_gaps.py",
    "unit/jobs/test_forecast.py",
    "integration/test_anonymization_service.py",
    "joint/test_joint_anonymisation.py",
    "joint/test_joint_anonymisation_models.py",
    "integration/test_node.py",
    "link/test_grpc.py",
    "joint/test_rare_items.py",
    "protocols/test_set_union.py",
    "fuzz/test_calls.py",
    "fuzz/test_files.py",
    "unit/test_packaging.py",
    "joint/test_plan_sizes.py",
    "joint/test_threshold.py",
    "joint/test_distributed_jobs.py",
    "joint/test_hybrid.py",
    "integration/test_consent.py",
    "integration/test_stock.py",
    "simulation/test_job_faults.py",
    "simulation/test_memory.py",
)


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest files first, leaves all others in their order, and lets properties be tried a few times."""
    tests = pathlib.Path(__file__).parent
    ranks = {tests / name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))
    few_at_first(items)


@pytest.fixture(scope="session", autouse=True)
def groups_work_once() -> Iterator[None]:
    """What tests repeat of base transfers and unions is looked up."""
    with pytest.MonkeyPatch.context() as patch:
        remember_groups_work(patch)
        yield


@pytest.fixture(scope="session")
def shared_data() -> pathlib.Path:
    """Folder of reference datasets beside the checkout; tests that need it are skipped where it is absent."""
    root = pathlib.Path(__file__).resolve().parent.parent
    given = os.environ.get("COMINE_REFERENCE_DATA")
    folder = pathlib.Path(given) if given else root.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"reference datasets are not at {folder}")
    return folder
