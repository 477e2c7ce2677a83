"""Tables that lie in blocks: `rows.PartitionedTable` is `mining.data.table_rows.TableRows`, as `Table` is in memory.

A block has its own dictionary for each column, and is read column by column. The folder of the blocks has besides, for
each column, the distinct texts of all rows with their counts; nothing of these is in memory unless it is asked for.
"""
