"""Plain pooled algorithms: oracles for the fast and the joint ones."""
