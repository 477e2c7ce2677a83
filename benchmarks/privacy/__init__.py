"""Mechanisms of local and distributed privacy."""
