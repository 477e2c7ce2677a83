"""Simulates seeds: `python -m tests.chaos SEED`, or several: `SEED SEED …`, `FIRST:NUMBER`."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator

from tests.chaos import clock


def main(arguments: list[str]) -> int:
    """Prints the course of one seed, or a line of JSON for each of several."""
    if os.environ.get("PYTHONHASHSEED") != "0":  # sets of texts are in an order of their own otherwise
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.chaos", *arguments])
    computing = time.process_time
    clock.install()
    from tests.chaos.simulation import Usual, simulate
    from tests.chaos.world import install, make_template

    install()
    seeds, failed = [*_seeds(arguments)], 0
    template = make_template()
    gc.collect()
    gc.freeze()
    gc.disable()  # so that what the dead have left is collected where it does no harm
    try:
        usual = Usual(template)
        for place, seed in enumerate(seeds):
            began = computing()
            course = simulate(template, usual, seed)
            failed += bool(course.failure)
            if len(seeds) == 1:
                faults, how = map(str, course.faults), course.failure or "all is well"
                print(course.job, *faults, *course.trace, course.logs, how, sep="\n")
            else:
                digest = hashlib.sha256("\n".join(course.trace).encode()).hexdigest()[:16]
                said = {"seed": seed, "job": course.job, "faults": [each.kind for each in course.faults]}
                said |= {"end": course.end, "steps": course.steps, "trace": digest}
                said |= {"cpu_s": round(computing() - began, 3), "failure": course.failure}
                print(json.dumps(said), flush=True)
            if place % 10 == 9:
                gc.collect()
    finally:
        shutil.rmtree(template.folder, ignore_errors=True)
    return 1 if failed else 0


def _seeds(arguments: list[str]) -> Iterator[int]:
    for argument in arguments:
        first, _, number = argument.partition(":")
        yield from range(int(first), int(first) + int(number or 1))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
