"""Cryptography of comine: `primitives` are pure and vectorised, `protocols` combine them over a Session.

`params` names the parameter sets; `AUDIT.md` lists the known concerns with their status.
"""
