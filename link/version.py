"""The version of the software, and that of the messages between nodes, which all nodes of a job must share."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final

WIRE_VERSION: Final = "15"


@cache
def software_version() -> str:
    """The version of comine that runs."""
    try:
        return version("comine")
    except PackageNotFoundError:
        return "unknown"
