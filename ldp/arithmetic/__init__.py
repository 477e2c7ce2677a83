"""Exact probabilities, hash functions, transforms and packed bits, on which mechanisms are built."""
