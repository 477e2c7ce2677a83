"""The `comine` command, of which hardly anything is loaded here: from the start Ctrl-C is a sentence, no traceback."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command line; every end has its exit code, and no user sees a traceback."""
    if sys.platform == "win32":
        sys.stderr.write(
            "comine: comine runs on Linux and macOS alone; on Windows install it in the Windows Subsystem for Linux, "
            "and start it there\n"
        )
        sys.exit(10)  # as link.errors.ConfigurationError
    try:
        from comine.command import main as begin

        begin()
    except KeyboardInterrupt:
        sys.stderr.write("comine: interrupted (E500; comine explain E500)\n")
        sys.exit(50)  # as link.errors.JobCancelled


if __name__ == "__main__":
    main()
