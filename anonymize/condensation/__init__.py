"""Condensation: groups of records kept as their moments alone, published as synthetic records."""
