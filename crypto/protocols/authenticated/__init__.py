"""Secure computation between two parties on authenticated bits, which withstand a party that deviates."""
