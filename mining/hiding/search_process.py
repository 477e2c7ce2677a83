"""`python -m mining.hiding.search_process`: one exact search, which ends with its time limit whatever the solver does.

The task comes pickled on standard input, from the process that started this one; what was found leaves the same way.
"""

from __future__ import annotations

import pickle
import signal
import sys
import time

from mining.hiding.exact import GRACE_S, Task, searched


def main() -> None:
    """Does what the task says."""
    task: Task
    task, deadline = pickle.load(sys.stdin.buffer)  # noqa: S301 - of the process that started this one
    # The system's clock ends the process, also inside the solver, and where nobody waits for it any more.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, max(1e-3, deadline + GRACE_S - time.monotonic()))
    found = pickle.dumps(searched(task, deadline))
    sys.stdout.buffer.write(found)


if __name__ == "__main__":
    main()
