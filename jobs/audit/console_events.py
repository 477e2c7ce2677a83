"""What an audit log records of the people at a node: what they change of its policy by its console."""

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
