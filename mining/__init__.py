"""Itemsets and rules: local counting and enumeration, and the joint algorithms built on them."""
