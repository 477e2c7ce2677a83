"""Itemsets from sums to which the parties add noise."""
