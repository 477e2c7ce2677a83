"""The `comine` command, of which little is loaded here: from the first moment on Ctrl-C is a sentence, no traceback."""

from __future__ import annotations

import os

_INTERRUPTED = b"comine: interrupted (E500; comine explain E500)\n"
_EXIT = 50  # of link.errors.JobCancelled


def main() -> None:
    """Runs the command line; every end has its exit code, and no user sees a traceback."""
    try:
        import signal

        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else whoever started this wants it ignored
            signal.signal(signal.SIGINT, _leave)
        from comine.command import main as begin

        begin()
    except KeyboardInterrupt:
        _leave()


def _leave(*_: object) -> None:
    """Ends the process where nothing has begun, or all is done, so that there is nothing to put in order."""
    try:
        os.write(2, _INTERRUPTED)
    finally:
        os._exit(_EXIT)


if __name__ == "__main__":
    main()
