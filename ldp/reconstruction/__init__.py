"""Perturbation by additive noise of public parameters, and mining on the distributions that are reconstructed from it.

Agrawal and Srikant, "Privacy-Preserving Data Mining", SIGMOD 2000. Its measures of privacy are no differential privacy:
for numbers under local differential privacy take `ldp.numeric`.
"""
