"""Releases and audited queries of a node, and the folder in which rules are hidden."""
