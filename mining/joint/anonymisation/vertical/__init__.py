"""Anonymising aligned rows whose columns lie at several parties, as if they lay in one table."""
