"""Anonymisation: tables, hierarchies, privacy models, algorithms, risk and utility."""
