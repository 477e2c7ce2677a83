"""Frequency oracles, one family a module."""
