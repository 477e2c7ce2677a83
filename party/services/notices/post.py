"""Posts one notice to a webhook: a process of its own, which the node ends where that takes too long.

The request is one JSON object on standard input: `url`, `ca` (a file, or null) and `body`. It exits 0 only if the
other end has answered that it took the notice. No redirection is followed.
"""

from __future__ import annotations

import json
import ssl
import sys
import urllib.error
import urllib.request
from typing import Any, Final

FAILED: Final = 1


class _Here(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Nowhere else."""


def main() -> int:
    """Posts what standard input says; the exit code."""
    asked = json.load(sys.stdin)
    context = ssl.create_default_context(cafile=asked["ca"])
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _Here)
    request = urllib.request.Request(  # noqa: S310  # party.toml takes https alone
        asked["url"],
        asked["body"].encode(),
        {"Content-Type": "application/json", "User-Agent": "comine"},
        method="POST",
    )
    try:
        with opener.open(request):
            return 0
    except (urllib.error.URLError, OSError, ValueError):
        return FAILED


if __name__ == "__main__":
    sys.exit(main())
