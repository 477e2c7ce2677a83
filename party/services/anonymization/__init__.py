"""Anonymised releases of a node's tables, made beside the data and as its policy allows."""
