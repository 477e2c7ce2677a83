"""Shuffling: sealed layers, batches in secret order, and statements by which every hop can be held to its counts."""
