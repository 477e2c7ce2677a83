"""Supports by oblivious transfer: needs nobody's trust, and is fast on any network."""
