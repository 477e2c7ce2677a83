"""Blocks on a party's own Spark cluster, through Spark Connect's thin client.

`encoding.SparkEncoding`, and `table_encoding.SparkTableEncoding` of tables, read a source at the workers, each row
group or partition where it lies, and keep the blocks in Spark's own cache; `runner.OnSpark` counts them. A cluster gets
the party's rows, names of items, the public candidates, and keys of noise for these rows; whatever comes back is read
as arrays, texts and numbers, and never unpickled, so that a cluster cannot run code in the node.

`cluster.Cluster` is the only module that knows Spark's client, which is optional. What runs at the workers is in
`worker` and `table_worker`; it travels with the packages that it needs (`shipping`), so that workers need no comine,
only Python in the version of the node, numpy and pyarrow, and for tables and noise the packages that `worker` names.
"""
