"""The blocks of one dataset on its Spark cluster: encoded once, kept while the source stays the same."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final

from link.errors import ResourceError
from mining.partitioned.rows import PartitionedRows
from mining.partitioned.sources import AnySource
from mining.partitioned.spark.cluster import Cluster
from mining.partitioned.spark.sources import ClusterEncoding, Kept, encoding_on
from mining.partitioned.tables.rows import PartitionedTable

TAG: Final = "comine"  # before a job's id


class SparkBlocks:
    """Gives the rows of a dataset on a cluster; a cluster that was lost meanwhile is connected to again.

    Args:
        url: Of the cluster.
        source: Where its workers find the rows.
        withheld: Patterns of items that never get into a block.

    Attributes:
        cluster: Once it is connected to, and until it is lost.
    """

    def __init__(self, url: str, source: AnySource, withheld: Sequence[str]) -> None:
        self._url, self._source, self._withheld = url, source, tuple(withheld)
        self.cluster: Cluster | None = None
        self._current: Kept | None = None

    def loading(self, job: str) -> Loading:
        """What loads the rows for a job; its `close` ends that."""
        return Loading(self, f"{TAG}-{job}" if job else TAG)

    def load(self, loading: Loading) -> PartitionedRows | PartitionedTable:
        """The rows as the source is now, to be closed by whoever gets them; a query is read anew every time.

        Raises:
            ConfigurationError: Spark's client is not installed, or the workers have another Python, or lack a package.
            InputDataError: The source cannot be read, is not what its format says, or changed meanwhile.
            ResourceError: The cluster is lost, or the loading was closed.
        """
        known = self.cluster is not None
        try:
            return self._load(loading)
        except ResourceError:
            self.cluster, self._current = None, None
            if not known or loading.closed:
                raise
        return self._load(loading)

    def close(self) -> None:
        """Ends the session on the cluster, which drops the blocks."""
        cluster, self.cluster, self._current = self.cluster, None, None
        if cluster is not None:
            cluster.close()

    def _load(self, loading: Loading) -> PartitionedRows | PartitionedTable:
        if self.cluster is None:
            self.cluster = Cluster(self._url)
        encoding = encoding_on(self.cluster, self._source, self._withheld, loading.tag)
        loading.begin(encoding)
        current, origin = self._current, encoding.origin()
        if current is None or not origin or current.origin != origin:
            self._current = None
            if current is not None:
                current.forget()
            current = self._current = encoding.run()
        return current.rows(loading.tag)


class Loading:
    """One loading of the rows, which may be ended while it runs."""

    def __init__(self, blocks: SparkBlocks, tag: str) -> None:
        self.tag, self._blocks = tag, blocks
        self.closed = False
        self._encoding: ClusterEncoding | None = None

    def run(self) -> PartitionedRows | PartitionedTable:
        """The rows; see `SparkBlocks.load`."""
        return self._blocks.load(self)

    def begin(self, encoding: ClusterEncoding) -> None:
        """Makes `close` end this encoding.

        Raises:
            ResourceError: `close` was called before.
        """
        self._encoding = encoding
        if self.closed:
            raise ResourceError("the reading of the dataset was ended, since its job has ended")

    def close(self) -> None:
        """Ends the loading at once; the cluster is told by another thread."""
        self.closed = True
        if self._encoding is not None:
            threading.Thread(target=self._encoding.close, daemon=True).start()
