"""Primitives and protocols beside their peers."""
