"""Anonymisation, alone and jointly."""
