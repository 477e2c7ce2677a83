"""Paillier's additively homomorphic cryptosystem on GMP integers.

E(m) = (1 + n)^m · r^n mod n², for a plaintext m in Z_n and r uniform in Z_n^*; products of ciphertexts are
ciphertexts of sums. Nearly all the work of encrypting is in the factor r^n, an *encryption of zero*, which depends on
no plaintext: it is made ahead of time (`pool`), by one of the ways of `zeros`, which differ in who can use them and
what they assume.

    keys         public and private keys, their generation, decryption
    ciphertexts  batches of ciphertexts bound to their key, and what can be done with them
    zeros        encryptions of zero: by the key's owner, by anybody, uniform
    pool         encryptions of zero in stock
    slots        many small numbers side by side in one plaintext
    selection    products of selected ciphertexts: sums over the rows where a bit is set
    workers      the same on several cores
    interchange  keys, ciphertexts and encoded numbers of the `phe` library

Not constant time: tables are looked up at secret positions, `gmpy2.powmod` takes time that depends on its exponent.
This matters against an observer on the same machine.

Source: Paillier, "Public-Key Cryptosystems Based on Composite Degree Residuosity Classes", EUROCRYPT 1999, scheme 1;
Damgård, Jurik and Nielsen, "A generalization of Paillier's public-key system with applications to electronic voting",
International Journal of Information Security 9(6), 2010.
"""
