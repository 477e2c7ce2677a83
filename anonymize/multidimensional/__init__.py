"""Mondrian: multidimensional recoding by recursive partitioning."""
