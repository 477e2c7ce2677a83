"""Rows that lie in blocks, and are counted where they lie.

`rows.PartitionedRows` is `mining.data.rows.Rows`, as `Transactions` is in memory. It holds the dictionary and the
items' counts, and asks a `runner.Runner` for everything else:

    rows.total(kernel)   the sum over all blocks of what a kernel gives for each: an array of one shape
    rows.placed_total(kernel)   the same of a kernel that is also told the number of a block's first row
    rows.parts(kernel)   what a kernel gives for each block, in order, with the number of its first row

A kernel is a picklable callable over `Transactions` without names: a function of a module, `functools.partial` of one,
or an object with `__call__`, which may keep for the next block what it has prepared. It runs in memory on all rows at
once, and here on a block at a time. Those of joint mining are in `kernels` and `mining.counting`.

What the rows are seen on, after `onto`, `without` or `renumbered`, is a table of item numbers, `runner.View`, that is
applied to each block when it is read; nothing is encoded again.

A runner keeps a list of sources, each of which reads one `blocks.Block` where it lies. `in_process.InProcess` counts
one after the other, `processes.Processes` in processes of this machine, whose death costs a retry of their part.
`close` ends at once what runs.

`mining.local_counts` chooses: `counter_of(rows)` for levels of candidates, `frequent_itemsets(rows, …)` for all that
are frequent here. `mining.counting.count_itemsets` takes any `Rows`.
"""
