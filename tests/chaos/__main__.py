"""Simulates seeds: `python -m tests.chaos SEED`, or several: `SEED,SEED,…`, `FIRST:NUMBER`.

Each argument has a process of its own, forked from one that has loaded what all need and knows what each job gives.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from tests.chaos import clock

if TYPE_CHECKING:
    from tests.chaos.simulation import Course


def main(arguments: list[str]) -> int:
    """Prints the course of one seed, or a line of JSON for each of several."""
    if os.environ.get("PYTHONHASHSEED") != "0":  # sets of texts are in an order of their own otherwise
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.chaos", *arguments])
    groups = [_seeds(argument) for argument in arguments]
    clock.install()
    from tests.chaos.simulation import Usual, job_of, simulate
    from tests.chaos.world import install, make_template

    install()
    template = make_template()
    try:
        usual = Usual(template)
        for seed in chain(*groups):
            usual.of(job_of(template, seed))
        gc.collect()
        gc.freeze()
        gc.disable()  # so that what the dead have left is collected where it does no harm

        def course_of(seed: int) -> Course:
            return simulate(template, usual, seed)

        if len(groups) == 1:
            return _simulated(groups[0], course_of)
        ended = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in _forked(groups, course_of)]
        return max(ended, key=abs)
    finally:
        shutil.rmtree(template.folder, ignore_errors=True)


def _forked(groups: Sequence[Sequence[int]], course_of: Callable[[int], Course]) -> list[int]:
    """The ids of processes that simulate a group each."""
    processes = []
    for group in groups:
        process = os.fork()
        if not process:
            ended = 2  # where an exception comes, which nobody else would tell
            try:
                ended = _simulated(group, course_of)
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                sys.stdout.flush()
                os._exit(ended)
        processes.append(process)
    return processes


def _simulated(seeds: Sequence[int], course_of: Callable[[int], Course]) -> int:
    """Tells the courses of seeds; 1 where one has failed, and 0 otherwise."""
    failed = 0
    for place, seed in enumerate(seeds):
        began = time.process_time()
        course = course_of(seed)
        failed += bool(course.failure)
        if len(seeds) == 1:
            faults, how = map(str, course.faults), course.failure or "all is well"
            print(course.job, *faults, *course.trace, course.logs, how, sep="\n")
        else:
            digest = hashlib.sha256("\n".join(course.trace).encode()).hexdigest()[:16]
            said = {"seed": seed, "job": course.job, "faults": [each.kind for each in course.faults]}
            said |= {"end": course.end, "steps": course.steps, "trace": digest}
            said |= {"cpu_s": round(time.process_time() - began, 3), "failure": course.failure}
            sys.stdout.write(f"{json.dumps(said)}\n")  # at once, beside what other processes say
            sys.stdout.flush()
            if course.failure:
                print(f"python -m tests.chaos {seed}: {course.failure}", file=sys.stderr)
        if place % 10 == 9:
            gc.collect()
    if len(seeds) > 1:
        print(f"{len(seeds)} seeds from {seeds[0]} on, of which {failed} failed", file=sys.stderr)
    return int(failed > 0)


def _seeds(argument: str) -> list[int]:
    seeds = list[int]()
    for part in argument.split(","):
        first, _, number = part.partition(":")
        seeds += range(int(first), int(first) + int(number or 1))
    return seeds


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
