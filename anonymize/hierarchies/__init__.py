"""Generalisation hierarchies: what they are, how they are built and how they are kept in files."""
