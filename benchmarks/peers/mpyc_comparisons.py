"""Compares shared integers with a public threshold in MPyC: `mpyc_comparisons.py -M3 --number N --width W`.

Runs in the environment of the peer and knows nothing of ours. Party 0 prints one JSON object: the seconds of the best
run, in which the numbers are shared beforehand and the outcomes stay shared.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

import numpy as np
from mpyc.runtime import mpc


async def main(number: int, width: int, repeats: int) -> None:
    integer = mpc.SecInt(width)
    values = np.random.default_rng(1).integers(0, 2 ** (width - 2), number)
    await mpc.start()
    seconds = []
    for _ in range(repeats):
        shared = mpc.input(integer.array(values.astype(object)), senders=0)
        await mpc.gather(shared)
        await mpc.barrier()
        start = time.perf_counter()
        outcome = shared >= 1000
        await mpc.gather(outcome)
        seconds.append(time.perf_counter() - start)
        await mpc.barrier()
    opened = await mpc.output(outcome)
    if not np.array_equal(np.array(opened, dtype=int), (values >= 1000).astype(int)):
        sys.exit("MPyC's comparison is wrong")
    await mpc.shutdown()
    if mpc.pid == 0:
        print(json.dumps({"seconds": min(seconds)}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--number", type=int)
    parser.add_argument("--width", type=int)
    parser.add_argument("--repeats", type=int, default=2)
    given, _ = parser.parse_known_args()
    mpc.run(main(given.number, given.width, given.repeats))
