"""Fixtures shared by all tests."""

from __future__ import annotations

import atexit
import gc
import os
import pathlib
import signal
from collections.abc import Iterator

import hypothesis
import pytest
from hypothesis.internal import charmap
from hypothesis.internal.conjecture import providers

from tests import guarded
from tests.base_transfers import with_groups, without_groups
from tests.examples import FEW, FIRST_SEED, TURN, by_turns, few_at_first, files_in_turn
from tests.remembered import (
    remember_commands,
    remember_groups_work,
    remember_speed,
    remember_what_workers_load,
)

# Machines are shared, and no test is timed. Integration takes the same examples every time, as Hypothesis advises, so
# that it judges the change and not the draw; `make test` draws others at every run.
hypothesis.settings.register_profile("comine", deadline=None, derandomize="CI" in os.environ, max_examples=FEW)
hypothesis.settings.load_profile("comine")

# A run in a shell's background ignores Ctrl-C, and one under nohup ignores SIGHUP, which the commands that tests start
# must not inherit: what is handled here, if only by doing nothing, has its usual meaning for them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda number, frame: None)

# Tests and what they import stay until the end: a quarter of the time of a collection is spent on finding that out.
gc.disable()
atexit.register(gc.unfreeze)  # else duckdb fills the screen with what was kept; earlier, pytest would look at it

# Files of twelve seconds and more, the longest first, and such as mostly wait beside such as mostly compute.
# A run gives whole files to its workers, in order: one of these that began late would keep one worker busy when the
# others are done, and while all wait the processors would rest.
LONGEST = (
    "containers/test_containers.py",
    "integration/test_tutorials.py",
    "integration/test_spark.py",
    "integration/faults/test_process_faults.py",
    "chaos/test_seeds.py",
    "integration/faults/test_resume.py",
    "integration/faults/test_gaps.py",
    "integration/test_page_commands.py",
    "integration/test_lifecycle.py",
    "integration/faults/test_cut_lines.py",
    "crypto/protocols/alignment/test_long_lists.py",
    "anonymize/clustering/test_maa_slie.py",
    "repository/test_site.py",
    "integration/kinds/test_joint_anonymisation.py",
    "repository/test_packaging.py",
    "integration/hostile/test_init_policy.py",
    "crypto/protocols/replicated/test_verified_sums.py",
    "integration/consent/test_guards.py",
    "integration/test_blocks.py",
    "comine/test_other_systems.py",
    "integration/faults/test_resume_noise.py",
    "jobs/report/test_browser.py",
    "integration/kinds/test_models.py",
    "integration/test_quickstart.py",
    "party/services/frequency/storage/test_kill_under_load.py",
    "integration/test_demo.py",
    "repository/test_imports.py",
    "integration/kinds/test_hybrid.py",
    "party/console/test_jobs.py",
    "coordinator/console/test_jobs.py",
    "mining/joint/vertical/test_grouped.py",
    "mining/partitioned/test_memory.py",
    "party/state/test_ledger.py",
    "crypto/protocols/comparison/test_two_party.py",
    "integration/anonymization/test_runs.py",
    "integration/node/test_descriptions.py",
    "integration/faults/test_guilty.py",
    "crypto/protocols/alignment/test_zero_shares.py",
    "integration/node/test_jobs.py",
    "coordinator/simulation/test_job_faults.py",
    "integration/faults/test_rolling_upgrade.py",
    "mining/joint/anonymisation/test_bins.py",
    "mining/joint/vertical/test_broken_alignments.py",
    "integration/test_soak.py",
    "mining/joint/test_acceptance.py",
    "party/services/frequency/storage/test_durability.py",
    "integration/anonymization/test_commands.py",
    "mining/joint/anonymisation/test_anonymisation_models.py",
    "integration/node/test_starts.py",
    "integration/faults/test_failed_jobs.py",
    "link/test_grpc_losses.py",
    "integration/hostile/test_strangers.py",
    "integration/faults/test_killed_processes.py",
    "integration/hostile/test_trust.py",
    "integration/test_privacy_ledger.py",
    "integration/faults/test_history.py",
    "integration/test_remote_sources.py",
    "integration/faults/test_guilty_network.py",
    "mining/joint/anonymisation/test_class_keys.py",
    "cli/frequency/test_frequency_service.py",
    "relay/test_jobs.py",
    "integration/faults/test_faults.py",
    "integration/faults/test_lost_parties.py",
    "link/test_conformance.py",
    "ldp/sets/test_svim.py",
    "integration/hostile/test_log_pressure.py",
    "integration/test_column_groups.py",
    "party/console/test_inbox.py",
    "jobs/audit/test_manifest.py",
    "integration/kinds/test_distributed.py",
    "repository/test_sentences.py",
    "mining/joint/anonymisation/test_anonymisation.py",
    "mining/joint/anonymisation/test_anonymisation_vertical.py",
    "cli/job/test_job.py",
    "integration/kinds/test_anonymise_columns.py",
    "coordinator/simulation/test_memory.py",
    "integration/node/test_calls.py",
    "party/services/shuffler/test_commands.py",
    "integration/consent/test_decisions.py",
    "integration/test_consoles.py",
    "party/services/shuffler/test_service.py",
    "integration/test_audit.py",
    "party/services/shuffler/test_killed.py",
    "integration/test_query_service.py",
    "crypto/protocols/alignment/test_shared_positions.py",
    "party/test_check.py",
    "party/policy/test_policy.py",
    "coordinator/test_driver.py",
    "mining/joint/test_hidden_universe.py",
    "mining/joint/anonymisation/test_mondrian.py",
    "coordinator/simulation/test_single_rows.py",
    "crypto/protocols/paillier/test_dot_views.py",
    "deploy/test_chart.py",
    "mining/partitioned/test_columns.py",
    "mining/joint/distributed/test_distributed_jobs.py",
    "jobs/audit/test_across.py",
    "integration/hostile/test_unread.py",
    "mining/joint/models/test_kmeans.py",
    "repository/test_docs.py",
    "crypto/protocols/alignment/test_oprf_intersection.py",
    "coordinator/test_frequency_simulation.py",
    "deploy/test_units.py",
    "coordinator/test_store.py",
    "ldp/streams/test_simulation.py",
    "mining/joint/anonymisation/test_oblivious.py",
    "ldp/reconstruction/test_mining.py",
    "mining/joint/anonymisation/test_anonymisation_plan.py",
    "integration/consent/test_holds.py",
    "fuzz/test_calls.py",
    "extensions/test_engine.py",
)

# Files of three seconds of processor time and more. `make test` takes a quarter of them, others at every run: all would
# be half of its work. Integration and `make test-slow` take all. What every change must keep is not here: the wire,
# policies, events, answers that are refused.
COSTLIEST = (
    "anonymize/clustering/test_gpkc.py",
    "anonymize/clustering/test_maa_slie.py",
    "anonymize/utility/test_analyses.py",
    "cli/frequency/test_frequency_service.py",
    "cli/job/test_compare.py",
    "cli/job/test_job.py",
    "cli/simulate/test_hybrid.py",
    "cli/simulate/test_simulate.py",
    "cli/test_interrupt.py",
    "cli/test_outlet.py",
    "client/test_crashes.py",
    "coordinator/simulation/test_altered_frames.py",
    "coordinator/simulation/test_job_faults.py",
    "coordinator/simulation/test_single_rows.py",
    "coordinator/test_frequency_simulation.py",
    "coordinator/test_party_files.py",
    "coordinator/test_stands.py",
    "coordinator/test_store.py",
    "crypto/protocols/alignment/test_oprf_intersection.py",
    "crypto/protocols/alignment/test_shared_count.py",
    "crypto/protocols/alignment/test_shared_positions.py",
    "crypto/protocols/alignment/test_zero_shares.py",
    "crypto/protocols/comparison/test_two_party.py",
    "crypto/protocols/paillier/test_dot_views.py",
    "crypto/protocols/paillier/test_kept.py",
    "crypto/protocols/replicated/test_verified_sums.py",
    "crypto/protocols/transfers/test_extension_check.py",
    "crypto/protocols/transfers/test_oprf.py",
    "crypto/protocols/union/test_prefix_union.py",
    "extensions/test_engine.py",
    "integration/anonymization/test_commands.py",
    "integration/anonymization/test_counted.py",
    "integration/anonymization/test_runs.py",
    "integration/consent/test_commands.py",
    "integration/consent/test_decisions.py",
    "integration/consent/test_guards.py",
    "integration/consent/test_holds.py",
    "integration/faults/test_history.py",
    "integration/faults/test_older_copies.py",
    "integration/kinds/test_dealing.py",
    "integration/kinds/test_joint_releases.py",
    "integration/node/test_calls.py",
    "integration/node/test_jobs.py",
    "integration/node/test_starts.py",
    "integration/test_audit.py",
    "integration/test_blocks.py",
    "integration/test_load.py",
    "integration/test_plan.py",
    "integration/test_privacy_ledger.py",
    "integration/test_queue.py",
    "jobs/audit/test_across.py",
    "jobs/audit/test_manifest.py",
    "jobs/audit/test_recorder.py",
    "jobs/plan/test_forecast.py",
    "jobs/plan/test_vertical.py",
    "ldp/accounting/test_shuffling.py",
    "ldp/context/test_context.py",
    "ldp/defences/test_defences.py",
    "ldp/heavy_hitters/test_prefix_extending.py",
    "ldp/rappor/test_rappor.py",
    "ldp/reconstruction/test_mining.py",
    "ldp/sets/test_svim.py",
    "ldp/streams/test_sampled.py",
    "ldp/streams/test_simulation.py",
    "ldp/test_blankets.py",
    "link/test_process_executor.py",
    "mining/data/test_copied_sources.py",
    "mining/data/test_mysql.py",
    "mining/data/test_postgres.py",
    "mining/data/test_tables.py",
    "mining/joint/anonymisation/test_anonymisation.py",
    "mining/joint/anonymisation/test_anonymisation_checks.py",
    "mining/joint/anonymisation/test_anonymisation_jobs.py",
    "mining/joint/anonymisation/test_anonymisation_models.py",
    "mining/joint/anonymisation/test_anonymisation_plan.py",
    "mining/joint/anonymisation/test_anonymisation_vertical.py",
    "mining/joint/anonymisation/test_anonymisation_vertical_view.py",
    "mining/joint/anonymisation/test_bins.py",
    "mining/joint/anonymisation/test_class_keys.py",
    "mining/joint/anonymisation/test_grouped_releases.py",
    "mining/joint/anonymisation/test_insiders.py",
    "mining/joint/anonymisation/test_mondrian.py",
    "mining/joint/anonymisation/test_oblivious.py",
    "mining/joint/distributed/test_distributed.py",
    "mining/joint/distributed/test_distributed_jobs.py",
    "mining/joint/hybrid/test_hybrid.py",
    "mining/joint/hybrid/test_hybrid_shuffle.py",
    "mining/joint/hybrid/test_hybrid_sizes.py",
    "mining/joint/hybrid/test_spool.py",
    "mining/joint/models/test_kmeans.py",
    "mining/joint/test_hidden_universe.py",
    "mining/joint/test_model_jobs.py",
    "mining/joint/vertical/test_broken_alignments.py",
    "mining/joint/vertical/test_grouped.py",
    "mining/partitioned/test_columns.py",
    "mining/partitioned/test_encoding.py",
    "mining/partitioned/test_processes.py",
    "mining/test_hybrid_budget.py",
    "party/jobs/test_plan_estimate.py",
    "party/jobs/test_spooled_reports.py",
    "party/node/test_reload.py",
    "party/services/frequency/storage/test_store.py",
    "party/services/frequency/test_estimates.py",
    "party/services/frequency/test_hostile.py",
    "party/services/frequency/test_intake.py",
    "party/services/frequency/test_readers.py",
    "party/services/frequency/test_service.py",
    "party/services/notices/test_notices.py",
    "party/services/shuffler/test_commands.py",
    "party/services/shuffler/test_service.py",
    "party/services/shuffler/test_store.py",
    "party/state/test_ledger.py",
)


def pytest_report_header() -> str:
    """What repeats a run."""
    seeds = f"simulated faults: from seed {FIRST_SEED} on, which COMINE_CHAOS_FIRST={FIRST_SEED} repeats"
    return f"long matrices: turn {TURN}, which COMINE_TURN={TURN} repeats\n{seeds}"


def pytest_collection_finish(session: pytest.Session) -> None:
    """From here on what is left is collected again, except all that has been loaded.

    Hypothesis looks through all that is loaded for constants, and through all characters, and keeps both on the disk:
    where tests are collected alone, as before a run with several workers, it does so at once, and not at each of them.
    """
    if session.config.option.collectonly:
        providers._get_local_constants()
        charmap.charmap()
        charmap.intervals_from_codec("utf-8")
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Puts the longest files first, leaves all others in their order, and lets properties be tried a few times.

    Of what is marked `turn`, the cases of this run stay; of the costliest files, all but those of this run become slow.
    """
    tests = pathlib.Path(__file__).parent
    ranks = {tests / name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))
    files_in_turn(items, [tests / name for name in COSTLIEST], 4)
    few_at_first(items)
    chosen = by_turns(items)
    config.hook.pytest_deselected(items=[*set(items) - set(chosen)])
    items[:] = chosen


@pytest.fixture(scope="session", autouse=True)
def repeated_work_once() -> Iterator[None]:
    """What tests repeat of base transfers, unions, plans and commands is looked up; base transfers have no groups."""
    with pytest.MonkeyPatch.context() as patch:
        remember_groups_work(patch)
        remember_speed(patch)
        remember_commands(patch)
        remember_what_workers_load(patch)
        without_groups(patch)
        yield


@pytest.fixture(scope="session", autouse=True)
def logs_and_labels() -> Iterator[None]:
    """What tests let a node or a relay log, and show as a metric, is looked at."""
    with pytest.MonkeyPatch.context() as patch:
        guarded.watch(patch)
        yield


@pytest.hookimpl(wrapper=True)  # no fixture: short tests would spend a fifth of their time on it
def pytest_runtest_teardown() -> Iterator[None]:
    """No item, id or value reaches a log or a label."""
    yield
    assert not (told := list(guarded.taken())), told


@pytest.fixture(scope="module")
def real_groups() -> Iterator[None]:
    """Base transfers in this process, and of the commands that it forks, are those of nodes."""
    with pytest.MonkeyPatch.context() as patch:
        with_groups(patch)
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
