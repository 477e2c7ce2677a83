"""Itemsets and rules over rows that parties hold for themselves."""
