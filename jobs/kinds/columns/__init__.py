"""Itemsets and rules over columns of the same rows at several parties."""
