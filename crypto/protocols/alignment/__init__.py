"""Alignment of rows by their identifiers."""
