"""A whole federation in one process, on simulated time, network, disks and clocks, under faults that a seed decides.

See docs/chaos.md.
"""
