"""Utility: what a release has lost of its table, in figures of the literature and in the results of analyses."""
