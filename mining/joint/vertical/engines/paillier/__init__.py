"""Supports by Paillier encryption between two parties: a sixth of the traffic of transfers, thirty times the work."""
