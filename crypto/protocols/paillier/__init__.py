"""Dot products of private columns by Paillier encryption."""
