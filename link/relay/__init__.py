"""Connections through a relay, for nodes that nobody can call: both ends of what `comine relay serve` serves."""
