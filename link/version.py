"""The version of what nodes say to each other; nodes with different ones do not talk."""

from typing import Final

WIRE_VERSION: Final = "4"
