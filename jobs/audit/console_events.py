"""What an audit log records of people at a node's console: who comes, who may, what they change, who is told."""

from __future__ import annotations

from pydantic import Field

from jobs.audit.events import Event, Id


class PolicyChanged(Event):
    """A person has rules changed in the node's file; where the node runs, it takes them up or refuses them next."""

    event = "policy-changed"
    by: str = Field(description="Who.")
    before: Id = Field(description="SHA-256 of party.toml before.")
    after: Id = Field(description="SHA-256 of it with the change.")
    changed: tuple[str, ...] = Field(description="Which rules, by their place in the file.")
    looser: tuple[str, ...] = Field(description="Those of them that allow more than before, or may do so.")

    def __str__(self) -> str:
        looser = f"; looser: {', '.join(self.looser)}" if self.looser else ""
        return f"by {self.by}: {', '.join(self.changed)}{looser}; party.toml has the SHA-256 {self.after.hex()}"


class PolicyPutBack(Event):
    """The node did not take up a change of its policy, and its file is again what it was."""

    event = "policy-put-back"
    by: str = Field(description="Who had asked for the change.")
    file: Id = Field(description="SHA-256 of party.toml.")
    code: str = Field(description="Of what kept the node from it.")

    def __str__(self) -> str:
        return f"what {self.by} had asked for ({self.code}); party.toml has the SHA-256 {self.file.hex()}"


class ConsoleEntered(Event):
    """Somebody has logged in at the console."""

    event = "console-entered"
    by: str = Field(description="Who.")
    role: str = Field(description="As what.")
    provider: bool = Field(description="Whether a provider of OpenID Connect vouches for them; else an account does.")

    def __str__(self) -> str:
        return f"{self.by} as {self.role}" + (", by the provider" if self.provider else "")


class ConsoleLeft(Event):
    """Somebody has logged out; sessions that end by themselves are not recorded."""

    event = "console-left"
    by: str = Field(description="Who.")

    def __str__(self) -> str:
        return self.by


class ConsoleRefused(Event):
    """Logins that failed, of about a minute; who it was that tried, nobody knows."""

    event = "console-refused"
    number: int = Field(ge=1, description="How many.")
    waited: int = Field(ge=0, description="How many of them came too often, and were not looked at.")

    def __str__(self) -> str:
        waited = f", {self.waited} of them too often" if self.waited else ""
        return f"{self.number} login{'' if self.number == 1 else 's'}{waited}"


class AccountAdded(Event):
    """An account of the console is made."""

    event = "account-added"
    by: str = Field(description="Who makes it.")
    account: str = Field(description="Whose it is.")
    role: str

    def __str__(self) -> str:
        return f"{self.account} as {self.role}, by {self.by}"


class AccountChanged(Event):
    """An account gets another password, and perhaps another role."""

    event = "account-changed"
    by: str = Field(description="Who changes it.")
    account: str = Field(description="Whose it is.")
    role: str
    before: str = Field(description="The role before.")

    def __str__(self) -> str:
        role = f"{self.role} as before" if self.role == self.before else f"{self.role}, before {self.before}"
        return f"{self.account}, {role}, by {self.by}"


class AccountRemoved(Event):
    """An account is taken away."""

    event = "account-removed"
    by: str = Field(description="Who takes it away.")
    account: str = Field(description="Whose it was.")

    def __str__(self) -> str:
        return f"{self.account}, by {self.by}"


class NotificationsBegun(Event):
    """A browser of a person is told what awaits them."""

    event = "notifications-begun"
    by: str = Field(description="Who has asked for it.")
    service: str = Field(description="Host of the push service.")

    def __str__(self) -> str:
        return f"by {self.by}, through {self.service}"


class NotificationsEnded(Event):
    """A person wants a browser to be told no more; what ends by itself is not recorded."""

    event = "notifications-ended"
    by: str = Field(description="Who.")
    service: str = Field(description="Host of the push service.")

    def __str__(self) -> str:
        return f"by {self.by}, through {self.service}"
