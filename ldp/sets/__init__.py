"""Mechanisms and mining where every user has a set of items."""
