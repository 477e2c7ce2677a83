"""Shares of secrets: additive, by XOR, replicated, and Shamir's; masks that cancel in sums."""
