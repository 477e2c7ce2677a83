"""The browser that tests drive, where there is one."""

from __future__ import annotations

import shutil
from typing import Final

# The shell has no windows, and takes half of the processor time of a browser that only does not show them.
_NAMES: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM: Final = next(filter(None, map(shutil.which, _NAMES)), None)
