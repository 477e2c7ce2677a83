"""Who uses a console, and what they may do there."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

Role = Literal["viewer", "approver", "administrator"]
ROLES: Final[tuple[Role, ...]] = ("viewer", "approver", "administrator")
"""Each may do what those before it may: look, decide on jobs, change what the node goes by."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.@+-]{0,63}")
OPERATOR: Final = "operator"
"""Who acts by a command and does not say who they are."""

_TAKEN: Final = frozenset({"policy", OPERATOR})  # who decides where no person with an account does


class Person(NamedTuple):
    """Somebody who has logged in.

    Attributes:
        name: As in the audit log.
        role: What they may do.
    """

    name: str
    role: Role

    def may(self, role: Role) -> bool:
        """Whether they may do what needs a role."""
        return ROLES.index(self.role) >= ROLES.index(role)


def is_name(name: str) -> bool:
    """Whether a person can be called so: what the audit log shows must be nobody else's name."""
    return _NAME.fullmatch(name) is not None and name.strip() == name and name.lower() not in _TAKEN
