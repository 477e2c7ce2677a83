"""Cells as items, and items as bitmaps."""
