"""Primitives: randomness, the group ristretto255, the commutative cipher, encodings, masks and shares.

Everything here is a pure function of its arguments or a small value type; nothing does I/O, and no module knows of
sessions or parties' data.
"""
