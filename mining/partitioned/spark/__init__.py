"""Blocks on a party's own Spark cluster, through Spark Connect's thin client.

`encoding.SparkEncoding` reads a source at the workers, each row group or partition where it lies, and keeps the blocks
in Spark's own cache; `runner.OnSpark` counts them. A cluster gets the party's rows, names of items and
the public candidates; whatever comes back is read as arrays and numbers, and never unpickled, so that a cluster cannot
run code in the node.

`cluster.Cluster` is the only module that knows Spark's client, which is optional. What runs at the workers is in
`worker`; it travels with the packages that it needs (`shipping`), so that workers need no comine, only Python in the
version of the node, numpy and pyarrow.
"""
