"""Stands for `comine` in a shell: what has loaded already forks the command, with this process's streams.

    python -I -S forked_command.py DESCRIPTOR ARGUMENTS…

The descriptor is that of the socket of `tests.integration.preloaded`, which this does not import, to
begin at once.
"""

import json
import os
import socket
import sys


def main() -> int:
    """Its exit code, as a shell has it."""
    number, *arguments = sys.argv[1:]
    request = {"arguments": arguments, "cwd": os.getcwd(), "environment": dict(os.environ)}
    told, ended = os.pipe()
    server = socket.socket(fileno=int(number))
    socket.send_fds(server, [json.dumps(request).encode()], [1, 2, 0, ended])
    server.recv(32)
    os.close(ended)
    code = int(os.read(told, 32))
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(main())
