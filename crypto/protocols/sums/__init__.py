"""Sums of all parties under pairwise masks, and what is made of them."""
