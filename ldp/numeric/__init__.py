"""Mechanisms for numbers: means, distributions, and records of numbers and categories."""
