"""The hybrid model: some users trust a curator, the others perturb their reports themselves."""
