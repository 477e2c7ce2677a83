"""Frequent items where some parties' people trust them to count, and the others' rows are perturbed."""
