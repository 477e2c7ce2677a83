"""Attacks on local differential privacy: fake users that promote values."""
