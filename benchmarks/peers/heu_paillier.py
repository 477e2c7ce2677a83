"""Paillier in sf-heu, one ciphertext at a time: `heu_paillier.py --bits 2048 --number N`.

Runs in the environment of the peer and knows nothing of ours. Prints one JSON object: processor time in seconds of an
encryption of a long plaintext and of a bit, of an addition and of a decryption, of the fastest of some runs.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable

from heu import phe

LONG = (1 << 850) - 1


def each(work: Callable[[], object], number: int) -> float:
    """Seconds of one of `number`."""
    seconds = []
    for _ in range(3):
        start = time.thread_time()
        for _ in range(number):
            work()
        seconds.append((time.thread_time() - start) / number)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bits", type=int)
    parser.add_argument("--number", type=int)
    given = parser.parse_args()
    kit = phe.setup(phe.SchemaType.ZPaillier, given.bits)
    encryptor, decryptor, evaluator = kit.encryptor(), kit.decryptor(), kit.evaluator()
    long, one = (phe.Plaintext(phe.SchemaType.ZPaillier, number) for number in (LONG, 1))
    ciphertext, other = encryptor.encrypt(long), encryptor.encrypt(one)
    if int(decryptor.decrypt(evaluator.add(ciphertext, other))) != LONG + 1:
        sys.exit("sf-heu's sum is wrong")
    costs = {
        "encryption": each(lambda: encryptor.encrypt(long), given.number),
        "encryption of a bit": each(lambda: encryptor.encrypt(one), given.number),
        "adding ciphertexts": each(lambda: evaluator.add(ciphertext, other), 100 * given.number),
        "decryption": each(lambda: decryptor.decrypt(ciphertext), given.number),
    }
    print(json.dumps(costs))


if __name__ == "__main__":
    main()
