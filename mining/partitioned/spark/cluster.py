"""A party's Spark cluster, reached through Spark Connect's thin client."""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from link.errors import ComineError, ConfigurationError, InputDataError, ResourceError
from mining.partitioned.spark.failures import is_unreadable, too_large
from mining.partitioned.spark.shipping import PACKAGES, write_packages
from mining.partitioned.spark.values import from_bytes
from mining.partitioned.spark.worker import FAILURE, FIELDS, Row, TableTask, Task, equipment, joined

RETRIES: Final = 6  # of a call that the network loses: about half a minute
BATCH_ROWS: Final = 10_000  # of a table; blocks travel one by one
_BATCH: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
_DISTRIBUTIONS: Final = {"cryptography": "cryptography", "google": "protobuf", "pydantic": "pydantic"}
_WAYS: Final = ("send", "receive")
_PROBED: Final = 100_000  # numbers, which Spark cuts into as many partitions as it runs at a time


class Cluster:
    """A session on a cluster, with the packages that kernels need.

    Args:
        url: `sc://HOST:PORT`, perhaps with parameters as Spark Connect knows them.
        retries: Of a call that the network loses.

    Attributes:
        name: How sentences call it; without parameters, which may be secrets.
        cores: How many tasks run at a time.
        lacking: Packages that workers lack, of those that some jobs need.
        client: Spark's.
        spark: The session.

    Raises:
        ConfigurationError: Spark's client is not installed, or the workers have another Python.
        ResourceError: The cluster cannot be reached.
    """

    def __init__(self, url: str, retries: int = RETRIES) -> None:
        place = urlsplit(url)
        self.name = f"the engine spark at {place.hostname}:{place.port or 15002}"
        self.client = Client()
        with self._sentences():
            self.spark = self.client.session(url, retries)
            self.spark.conf.set("spark.sql.adaptive.enabled", "false")  # blocks that are made again are cut alike
            self.batches_of(1)
            with tempfile.TemporaryDirectory() as folder:
                self.spark.addArtifacts(str(write_packages(Path(folder))), pyfile=True)
        found = [from_bytes(value) for _, _, value, _ in self.rows(self.task(self.numbers(_PROBED), Task(equipment)))]
        self.cores, self.lacking = len(found), {name for _, names in found for name in names}
        own = ".".join(map(str, sys.version_info[:2]))
        if other := {python for python, _ in found} - {own}:
            raise ConfigurationError(
                f"the workers of {self.name} run Python {min(other)}, and this node runs Python {own}; set "
                "PYSPARK_PYTHON at the cluster to the same version"
            )

    def check_has(self, *packages: str) -> None:
        """Makes sure that the workers have some packages, which only some jobs need.

        Raises:
            ConfigurationError: They lack one.
        """
        if lacking := sorted(self.lacking & set(packages)):
            raise ConfigurationError(
                f"the workers of {self.name} lack {' and '.join(map(_DISTRIBUTIONS.__getitem__, lacking))}, which jobs "
                "that perturb records or read tables need there; install comine at all workers"
            )

    # -- frames --------------------------------------------------------------------------------------------------------
    def numbers(self, count: int, partitions: int | None = None) -> Any:
        """A frame of numbers from 0, in a column `id`."""
        return self.spark.range(0, count, 1, partitions)

    def query(self, sql: str) -> Any:
        """The frame of a query; nothing is read yet."""
        with self._sentences():
            frame = self.spark.sql(sql)
            frame.schema  # noqa: B018  # which makes Spark look at it
            return frame

    def task(self, frame: Any, work: Task | TableTask) -> Any:
        """The frame of what is computed from another at the workers, where each partition lies.

        Raises:
            ResourceError: The cluster is lost, or has ended the session.
        """
        self.client.ship(work)
        with self._sentences():
            return frame.mapInArrow(work, self.client.form())

    def keep(self, frame: Any) -> Any:
        """The same frame, kept at the workers once it is computed, on their disks where it exceeds their memory."""
        with self._sentences():
            return frame.persist(self.client.kept())

    def compute(self, frame: Any, tag: str) -> None:
        """Computes a frame that is kept; errors of the cluster as of `rows`."""
        with self._sentences(), self._tagged(tag):
            frame.count()

    def batches_of(self, rows: int) -> None:
        """How many rows a batch has in frames that are computed from now on; errors as of `task`."""
        with self._sentences():
            self.spark.conf.set(_BATCH, str(rows))

    # -- running -------------------------------------------------------------------------------------------------------
    def rows(self, frame: Any, tag: str = "") -> Iterator[Row]:
        """Computes a frame of `FIELDS`, and gives its rows in order.

        Args:
            frame: What `task` gave.
            tag: By which `interrupt` ends it, and Spark shows it.

        Raises:
            InputDataError: A worker says so.
            ResourceError: A worker says so, the cluster is lost, or the work was interrupted.
        """
        with self._sentences(), self._tagged(tag):
            for place, rows, value, names in joined(frame.select(*FIELDS).toLocalIterator()):
                if place == FAILURE:
                    raise _failure(self.name, value, names)
                yield place, rows, value, names

    def interrupt(self, tag: str) -> None:
        """Ends what runs under a tag on the cluster, from whatever thread; whoever waits for it gets an error."""
        with suppress(ResourceError), self._sentences():  # a cluster that is lost runs nothing
            self.spark.interruptTag(tag)

    def forget(self, frame: Any) -> None:
        """Makes the workers drop what they keep of a frame; a cluster that is lost has dropped it."""
        with suppress(ResourceError), self._sentences():
            frame.unpersist()

    def close(self) -> None:
        """Ends the session, and with it all that it keeps."""
        with suppress(ResourceError), self._sentences():
            self.spark.stop()

    @contextmanager
    def _tagged(self, tag: str) -> Iterator[None]:
        if not tag:
            yield
            return
        self.spark.addTag(tag)  # of this thread
        try:
            yield
        finally:
            self.spark.removeTag(tag)

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        """Turns whatever Spark's client raises into one sentence; Spark's own might be about data."""
        try:
            yield
        except (ComineError, GeneratorExit):
            raise
        except Exception as error:
            condition = self.client.condition(error)
            if is_unreadable(condition):
                raise InputDataError(
                    f"{self.name} cannot read the query ({condition}); check it there as the node's user"
                ) from None
            if sentence := too_large(str(error)):
                raise ResourceError(f"{self.name} cannot do it: {sentence}") from None
            raise ResourceError(
                f"{self.name} is lost or refuses the work ({condition}); look into its log, and run the job again"
            ) from None


class Client:
    """Spark's client, loaded when a cluster is used; it is no part of what comine needs otherwise."""

    def __init__(self) -> None:
        try:
            with warnings.catch_warnings(), _not_taken_for_doctests():
                warnings.simplefilter("ignore", FutureWarning)  # of versions of pandas, which is not used here
                from pyspark import cloudpickle
                from pyspark.errors import PySparkException
                from pyspark.sql.connect.client.core import DefaultChannelBuilder
                from pyspark.sql.connect.client.retries import DefaultPolicy
                from pyspark.sql.connect.session import SparkSession
                from pyspark.sql.types import BinaryType, LongType, StructField, StructType
                from pyspark.storagelevel import StorageLevel
        except ImportError:
            raise ConfigurationError(
                'engine = "spark" needs Spark\'s thin client, which is not installed here; run '
                "pip install 'comine[spark]'"
            ) from None
        self._session, self._policy, self._error = SparkSession, DefaultPolicy, PySparkException
        self._channels = DefaultChannelBuilder
        self._cloudpickle = cloudpickle
        kinds = (LongType(), LongType(), BinaryType(), BinaryType())
        self._form = StructType([StructField(name, kind) for name, kind in zip(FIELDS, kinds, strict=True)])
        self._kept = StorageLevel.MEMORY_AND_DISK

    def session(self, url: str, retries: int) -> Any:
        """A session of a cluster."""
        # A connection that sessions share would still wait, once the cluster is back, as it did while it was away.
        # How much a message may have, the cluster's own settings say.
        own = [("grpc.use_local_subchannel_pool", 1), *((f"grpc.max_{way}_message_length", -1) for way in _WAYS)]
        channels = self._channels(url, own)
        session = self._session(channels, userId="comine")
        session.client.set_retry_policies([self._policy(max_retries=retries, max_backoff=10_000)])
        return session

    def form(self) -> Any:
        """The columns of what kernels return."""
        return self._form

    def kept(self) -> Any:
        """Where frames are kept."""
        return self._kept

    def condition(self, error: Exception) -> str:
        """What Spark calls an error, without its words."""
        named = error.getCondition() if isinstance(error, self._error) else None
        return named or type(error).__name__

    def ship(self, work: object) -> None:
        """Makes classes of kernels that are in none of the shipped packages travel whole."""
        for part in _parts(work):
            module = sys.modules.get(getattr(part, "__module__", None) or "")
            if module is not None and module.__name__.partition(".")[0] not in (*PACKAGES, "numpy", "builtins"):
                self._cloudpickle.register_pickle_by_value(module)


@contextmanager
def _not_taken_for_doctests() -> Iterator[None]:
    """Spark's client takes a process without a main file (`python -c`) for its doctests, unless interactive."""
    if hasattr(sys, "ps1"):
        yield
        return
    sys.ps1 = ""
    try:
        yield
    finally:
        del sys.ps1


def _parts(work: object) -> Iterator[Any]:
    """What a task calls."""
    part = getattr(work, "work", work)
    while part is not None:
        yield getattr(part, "func", part)
        part = getattr(part, "kernel", None)


def _failure(name: str, code: bytes, message: bytes) -> ComineError:
    sentence = message.decode(errors="replace")
    if code == InputDataError.code.encode():
        return InputDataError(sentence)
    return ResourceError(f"a worker of {name} cannot go on: {sentence}")
