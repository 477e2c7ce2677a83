"""Defences against fake users: normalisation, detection, recovery."""
