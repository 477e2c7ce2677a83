"""Decisions on sums that stay hidden, on replicated shares of three computing parties."""
