"""Frequent values of domains that nobody can list: texts, addresses, long numbers."""
