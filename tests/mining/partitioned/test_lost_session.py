"""A cluster that has forgotten the session: one sentence, after which the node connects anew."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from mining.partitioned.encoding.source import TableSource, TransactionSource
from mining.partitioned.spark.cluster import Client, Cluster
from mining.partitioned.spark.table_encoding import SparkTableEncoding
from mining.partitioned.spark.worker import Task, seals
from party.data import spark_blocks
from party.data.spark_blocks import SparkBlocks
from tests.errors import fails


class Forgotten:
    """A frame, or the settings, of a session that is not there any more."""

    def __init__(self, words: str = "no such session") -> None:
        self.words = words

    def mapInArrow(self, *_: object) -> None:  # noqa: N802 - the word of Spark's client
        raise RuntimeError(self.words)

    def set(self, *_: object) -> None:
        raise RuntimeError("no such session")


class Session:
    conf = Forgotten()

    def range(self, *_: object) -> Forgotten:
        return Forgotten()


def forgotten(*_: object) -> Cluster:
    cluster = object.__new__(Cluster)
    cluster.name, cluster.client, cluster.spark = "the engine spark at north:15002", Client(), Session()
    return cluster


def test_it_is_told_in_one_sentence() -> None:
    cluster = forgotten()
    with fails("E103"):
        cluster.task(Forgotten(), Task(seals))
    with fails("E103"):
        cluster.batches_of(1)


@pytest.mark.parametrize(
    "words",
    [
        "Total size of results of 8 tasks (1029.2 MiB) is bigger than spark.driver.maxResultSize (1024.0 MiB)",
        "status = StatusCode.RESOURCE_EXHAUSTED details = gRPC message exceeds maximum size 134217728: 134220032",
        "Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times: ExecutorLostFailure (executor 2 exited)",
    ],
)
def test_what_was_too_large_is_told_without_the_words_of_spark(words: str) -> None:
    with fails("E103") as raised:
        forgotten().task(Forgotten(words), Task(seals))
    assert words not in str(raised.value)


def test_the_node_connects_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[Any]()

    def connected(url: str) -> Cluster:
        made.append(url)
        return forgotten()

    monkeypatch.setattr(spark_blocks, "Cluster", connected)
    blocks = SparkBlocks("sc://north", TransactionSource("/lake/*.parquet", "parquet"), ())
    with fails("E103"):
        blocks.loading("first").run()
    assert len(made) == 1
    blocks.cluster = forgotten()
    with fails("E103"):
        blocks.loading("second").run()
    assert len(made) == 2


def test_workers_that_lack_a_package_are_told_before_they_need_it() -> None:
    cluster = forgotten()
    cluster.lacking = {"cryptography", "google"}
    cluster.check_has("pydantic")
    with fails("E100"):
        cluster.check_has("cryptography")
    with fails("E100"):
        SparkTableEncoding(cluster, TableSource("/lake/*.parquet", "parquet"), (), "job").run()


def test_the_client_loads_in_a_process_without_a_main_file() -> None:
    script = "from mining.partitioned.spark.cluster import Client; Client(); import sys; print(hasattr(sys, 'ps1'))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "False\n"), ran.stderr
