"""The version of the software, and that of what nodes say to each other; nodes with different ones do not talk."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final

WIRE_VERSION: Final = "7"


@cache
def software_version() -> str:
    """The version of comine that runs."""
    try:
        return version("comine")
    except PackageNotFoundError:
        return "unknown"
