"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import pathlib
import signal
from collections.abc import Iterator

import hypothesis
import pytest

from crypto.protocols import alignment, set_union, union_costs, union_lists
from crypto.protocols.union_lists import common_fakes
from jobs.kinds.rows import plan_sizes
from tests.examples import USUAL, few_at_first
from tests.remembered import remember_groups_work

# Machines are shared, and no test is timed. Integration takes the same examples every time, as Hypothesis advises, so
# that it judges the change and not the draw; `make test` draws others at every run.
hypothesis.settings.register_profile("comine", deadline=None, derandomize="CI" in os.environ, max_examples=USUAL)
hypothesis.settings.load_profile("comine")

# A run in a shell's background ignores Ctrl-C, and one under nohup ignores SIGHUP, which the commands that tests start
# must not inherit: what is handled here, if only by doing nothing, has its usual meaning for them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda number, frame: None)

FEW = 200.0  # an ε at which every pair of parties has exactly one common fake

# Files of fifteen seconds and more, the longest first. `make test` and `make test-slow` give whole files to their
# workers, in order: one of these that began late would keep one worker busy when the others are done.
LONGEST = (
    "integration/test_guilty_network.py",
    "containers/test_containers.py",
    "integration/test_gaps.py",
    "integration/test_init_policy.py",
    "integration/test_faults.py",
    "integration/test_guilty.py",
    "integration/test_storage_faults.py",
    "integration/test_process_faults.py",
    "joint/test_joint_anonymisation_models.py",
    "integration/test_resume.py",
    "integration/test_tutorials.py",
    "joint/test_joint_mondrian.py",
    "joint/test_acceptance.py",
    "simulation/test_altered_frames.py",
    "integration/test_guilty_table.py",
    "shuffler/test_killed.py",
    "integration/test_lifecycle.py",
    "simulation/test_job_faults.py",
    "integration/test_anonymization_service.py",
    "integration/test_joint_anonymisation.py",
    "integration/test_floods.py",
    "link/test_conformance.py",
    "joint/test_joint_anonymisation.py",
    "joint/test_plan_accuracy.py",
    "ldp/test_sets_svim.py",
    "integration/test_coordinator_view.py",
    "link/test_grpc.py",
    "joint/test_joint_class_keys.py",
    "integration/test_node.py",
    "integration/test_consent.py",
    "joint/test_joint_anonymisation_plan.py",
    "protocols/test_union_holders.py",
    "joint/test_joint_oblivious.py",
    "simulation/test_memory.py",
    "hiding/test_hiding.py",
    "unit/jobs/test_report_job_file.py",
    "integration/test_trust.py",
    "joint/test_vertical_run_sizes.py",
    "frequency/test_durability.py",
    "joint/test_threshold.py",
    "unit/jobs/test_report_browser.py",
    "frequency/test_kill_under_load.py",
    "joint/test_joint_anonymisation_jobs.py",
    "integration/test_queue.py",
    "integration/test_demo.py",
    "integration/test_plan_tells_nothing.py",
    "protocols/test_paillier_dot.py",
    "unit/test_packaging.py",
    "unit/jobs/test_forecast.py",
    "joint/test_statement.py",
    "joint/test_hidden_universe.py",
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


@pytest.fixture
def few_fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unions in this process have one common fake a pair, which spares half of the work of a small job.

    For tests of what happens around a union at nodes, and of no number that a union tells.
    """
    for module in (union_lists, set_union, union_costs, alignment, plan_sizes):
        monkeypatch.setattr(module, "common_fakes", lambda _: common_fakes(FEW))


@pytest.fixture(scope="session")
def shared_data() -> pathlib.Path:
    """Folder of reference datasets beside the checkout; tests that need it are skipped where it is absent."""
    root = pathlib.Path(__file__).resolve().parent.parent
    given = os.environ.get("COMINE_REFERENCE_DATA")
    folder = pathlib.Path(given) if given else root.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"reference datasets are not at {folder}")
    return folder
