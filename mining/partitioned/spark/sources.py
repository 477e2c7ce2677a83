"""Sources of either kind on a cluster: what encodes them, and what is kept of them."""

from __future__ import annotations

from collections.abc import Sequence

from mining.partitioned.encoding.source import TableSource
from mining.partitioned.sources import AnySource
from mining.partitioned.spark.cluster import Cluster
from mining.partitioned.spark.encoding import SparkEncoding
from mining.partitioned.spark.runner import ClusterRows
from mining.partitioned.spark.table_encoding import SparkTableEncoding
from mining.partitioned.spark.tables import ClusterTable

Kept = ClusterRows | ClusterTable
ClusterEncoding = SparkEncoding | SparkTableEncoding


def encoding_on(cluster: Cluster, source: AnySource, withheld: Sequence[str], tag: str) -> ClusterEncoding:
    """What encodes a source on a cluster; arguments as of `encoding.SourceOnCluster`."""
    if isinstance(source, TableSource):
        return SparkTableEncoding(cluster, source, withheld, tag)
    return SparkEncoding(cluster, source, withheld, tag)
