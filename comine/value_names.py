"""What the help of all commands calls the values of options and arguments that their commands have no name for."""

from __future__ import annotations

from typing import Any, Final

_NAMES: Final = {
    "--batch": "N",
    "--by": "NAME",
    "--ca": "FILE",
    "--certificate": "FILE",
    "--confidence": "SHARE",
    "--connections": "N",
    "--coordinator": "NAME",
    "--crl": "FILE",
    "--dataset": "NAME",
    "--expires": "DURATION",
    "--federation": "FILE",
    "--id": "COLUMN",
    "--item": "COLUMN",
    "--job": "ID",
    "--last": "N",
    "--min-confidence": "SHARE",
    "--min-support": "SHARE",
    "--out": "DIR",
    "--party": "NAME",
    "--query": "SQL",
    "--reason": "TEXT",
    "--reports": "N",
    "--runs": "N",
    "--seed": "N",
    "--serial": "HEX",
    "--threshold": "SHARE",
    "--top": "N",
}
"""By option; another one's value is called as the option is."""


def name_values(command: Any) -> None:
    """Names the values of a command's options and arguments, and of those of its sub-commands."""
    for parameter in command.params:
        if parameter.metavar is None and not getattr(parameter, "is_flag", False):
            called = parameter.opts[-1]
            parameter.metavar = _NAMES.get(called, called.lstrip("-").replace("-", "_").upper())
    for each in getattr(command, "commands", {}).values():
        name_values(each)
