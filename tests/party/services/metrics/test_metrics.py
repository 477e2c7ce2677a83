"""What a node shows Prometheus: how it fares, in few labels, and nothing of rows, items or ids."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from prometheus_client import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from jobs.metrics_section import LISTEN, MetricsSection
from jobs.spec.toml import validate
from link.costs import Costs
from link.errors import DeadlineExceeded, JobCancelled, PeerError, UnexpectedMessage
from link.runtime.exposition import Exposition
from party.node.methods import METHODS
from party.services.metrics.metrics import CLIENTS, LABELS, MOST_STEPS, OTHERS, Metrics
from party.services.metrics.steps import StepTimes
from protos.v1 import control_pb2 as control
from tests.errors import fails
from tests.party.nodes import Nodes, running, weekly

COSTS = Costs(1000, 2000, 3, 1.5)
CALLS = "rpc_server_call_duration_seconds"
SHOWN = '[metrics]\nlisten = "127.0.0.1:0"\n'


def families(metrics: Metrics) -> list[Metric]:
    return list(text_string_to_metric_families(generate_latest(metrics.registry).decode()))


def sample(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def labels(found: list[Metric]) -> Iterator[tuple[str, str]]:
    for family in found:
        for each in family.samples:
            yield from ((name, value) for name, value in each.labels.items() if name != "le")


def test_what_ends_is_counted_by_task_and_code() -> None:
    metrics = Metrics()
    metrics.ended("itemsets", None, COSTS)
    metrics.ended("itemsets", DeadlineExceeded("too late", party="south"), COSTS)
    metrics.ended("rules", PeerError("south is away", party="south"), COSTS)
    assert sample(metrics, "comine_job_duration_seconds_count", task="itemsets", code="OK") == 1
    assert sample(metrics, "comine_job_duration_seconds_sum", task="itemsets", code="E600") == 1.5
    assert sample(metrics, "comine_job_sent_bytes_total", task="itemsets") == 2000
    assert sample(metrics, "comine_job_received_bytes_total", task="rules") == 2000
    assert sample(metrics, "comine_peer_lost_total", peer="south", code="E200") == 1


def test_clients_are_one_peer() -> None:
    metrics = Metrics()
    for number in range(1000):
        metrics.called("client", f"client-{number}")
        metrics.answered("client", f"client-{number}", "Submit", "OK", 0.1)
    metrics.answered(None, "", "Submit", "E201", 0.1)
    assert {value for name, value in labels(families(metrics)) if name == "peer"} == {CLIENTS, ""}
    assert sample(metrics, "rpc_server_call_duration_seconds_count", peer=CLIENTS, step="Submit", code="OK") == 1000


def test_steps_are_measured_once_each() -> None:
    metrics, shown = Metrics(), list[Any]()
    with StepTimes(metrics, "itemsets", lambda *progress: shown.append(progress)) as progress:
        for length in (1, 2, 13):
            progress(f"itemsets of {length}", 0, 1)
            progress("/task/sums", 3, 9)
            progress(f"itemsets of {length}", 1, 1)
        progress("rules", 0, 1)
    assert len(shown) == 10
    assert sample(metrics, "comine_step_duration_seconds_count", task="itemsets", step="itemsets of N") == 3
    assert sample(metrics, "comine_step_duration_seconds_count", task="itemsets", step="rules") == 1


def test_steps_with_ever_new_names_do_not_add_up() -> None:
    metrics = Metrics()
    for number in range(4 * MOST_STEPS):
        metrics.stepped("toy", f"step {'x' * number}", 0.1)
    found = {value for name, value in labels(families(metrics)) if name == "step"}
    assert len(found) == MOST_STEPS + 1
    assert OTHERS in found


@pytest.mark.parametrize("listen", ["localhost", "127.0.0.1:many"])
def test_a_place_is_a_host_and_a_port(listen: str) -> None:
    with fails("E100"):
        validate(MetricsSection, {"listen": listen}, "party.toml")


def test_a_place_is_on_this_machine_unless_it_says_otherwise() -> None:
    assert MetricsSection().listen == LISTEN
    assert LISTEN.startswith("127.")


def test_an_address_of_another_machine_ends_the_start_with_a_sentence() -> None:
    with fails("E103"):
        Exposition("192.0.2.1:9464", Metrics().registry)


def scraped(nodes: Nodes, name: str) -> str:
    address = nodes.nodes[name].metrics_address
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


def test_a_node_shows_how_it_fares_and_nothing_of_its_rows(tmp_path: Path) -> None:
    async def test() -> str:
        async with running(tmp_path, party=SHOWN, policy='max_jobs = 4\nmax_jobs_period = "1d"\n') as nodes:
            _, told = await nodes.run(weekly())
            assert not any(event.error_code for event in told.values())
            return await asyncio.to_thread(scraped, nodes, "north")

    text = asyncio.run(test())
    found = {family.name: family for family in text_string_to_metric_families(text)}
    value = {(each.name, *sorted(each.labels.values())): each.value for f in found.values() for each in f.samples}
    assert value["comine_job_duration_seconds_count", "OK", "itemsets"] == 1
    assert value["comine_job_sent_bytes_total", "itemsets"] > 0
    assert value["rpc_server_call_duration_seconds_count", "OK", "Propose", "analyst"] == 1
    assert value["comine_peer_last_call_timestamp_seconds", "analyst"] > 1.7e9
    assert value["comine_jobs_running",] == value["comine_jobs_waiting",] == value["comine_jobs_undecided",] == 0
    assert value["comine_budget_used_ratio",] == 0.25
    assert value["comine_state_free_bytes",] > 0
    assert value["comine_certificate_expiry_timestamp_seconds",] > 1.7e9
    told_labels = set(labels(list(found.values())))
    assert {name for name, _ in told_labels} <= set(LABELS)
    methods = {call for calls in METHODS.values() for call in calls}
    steps = {text for name, text in told_labels if name == "step"}
    assert steps <= methods | {"itemsets of N", "local mining"}
    assert {text for name, text in told_labels if name == "peer"} <= {"analyst", "north", "south", "east"}
    assert not any(word in text for word in ("item0", "baskets", "weekly"))


def test_metrics_are_as_prometheus_wants_them() -> None:
    if (promtool := shutil.which("promtool")) is None:
        pytest.skip("promtool is not installed (Debian's package prometheus has it)")
    metrics = Metrics()
    metrics.ended("itemsets", PeerError("south is away", party="south"), COSTS)
    metrics.called("party", "south")
    metrics.answered("party", "south", "Check", "OK", 0.1)
    metrics.stepped("itemsets", "rules", 0.1)
    text = generate_latest(metrics.registry)
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_calls_that_are_refused_or_given_up_are_measured(tmp_path: Path) -> None:
    """Of a call that is over gRPC knows no caller, and the process would die of the question."""

    async def test() -> tuple[float | None, float | None]:
        async with running(tmp_path) as nodes:
            client, metrics = nodes.clients["north"], nodes.nodes["north"].metrics
            job_id, _ = await client.decide(weekly())

            def found() -> tuple[float | None, float | None]:
                refused, given_up = (
                    sample(metrics, f"{CALLS}_count", peer="analyst", step="Watch", code=code)
                    for code in (UnexpectedMessage.code, JobCancelled.code)
                )
                return refused, given_up

            for _ in range(50):
                leaving = nodes.client(client.identity)
                await leaving.stub.Watch(control.WatchRequest(job_id=job_id)).read()
                await leaving.channel.close()
                with pytest.raises(grpc.aio.AioRpcError):
                    await client.watch(bytes(32))
            for _ in range(600):
                if found() == (50, 50):
                    break
                await asyncio.sleep(0.05)
            return found()

    assert asyncio.run(test()) == (50, 50)
