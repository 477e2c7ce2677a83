"""The group ristretto255, what is hashed or embedded into it, and commutative encryption in it."""
