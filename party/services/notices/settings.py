"""The `[notify]` table: whom a node tells of what."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from jobs.spec.toml import TomlTable
from jobs.spec.values import Duration, Fraction
from link.files.quantities import seconds

Occasion = Literal["inbox", "held", "end", "expiry", "budget"]

OCCASIONS: Final[tuple[Occasion, ...]] = ("inbox", "held", "end", "expiry", "budget")
MOST_S: Final = 60


class Occasions(TomlTable):
    """What people are told of, however they are told.

    Attributes:
        events: On which occasions.
        certificate_days: How many days before its end the party's certificate is an occasion.
        budget_share: From which share of a limit on it is an occasion that the limit is used up.
    """

    events: tuple[Occasion, ...] = OCCASIONS
    certificate_days: int = Field(default=30, ge=1, le=365)
    budget_share: Fraction = Field(default=Decimal("0.8"), gt=0, le=1)


class NotifySection(Occasions):
    """The `[notify]` table.

    Attributes:
        command: A program and its arguments; it gets the notice on its standard input. No shell looks at it.
        webhook: An https URL, to which the notice is posted.
        webhook_ca: The authorities that the webhook's certificate may be of; those of the system, where absent.
        timeout: For which the command or the webhook may take.
    """

    command: Annotated[tuple[str, ...], Field(min_length=1, max_length=64)] | None = None
    webhook: str | None = None
    webhook_ca: Path | None = None
    timeout: Duration = "10s"

    @field_validator("command")
    @classmethod
    def _can_be_run(cls, command: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if command is not None and (not command[0] or any("\0" in word for word in command)):
            raise ValueError('must be a program and its arguments, as in ["/usr/local/bin/tell-us", "urgent"]')
        return command

    @field_validator("webhook")
    @classmethod
    def _is_https(cls, webhook: str | None) -> str | None:
        if webhook is not None and (not webhook.isprintable() or " " in webhook or not _is_https(webhook)):
            raise ValueError('must be a URL such as "https://chat.example/hooks/42"; notices are not sent in the clear')
        return webhook

    @field_validator("timeout")
    @classmethod
    def _is_short(cls, timeout: str) -> str:
        if seconds(timeout) > MOST_S:
            raise ValueError(f"must be at most {MOST_S}s")
        return timeout

    @model_validator(mode="after")
    def _tells_somebody(self) -> NotifySection:
        if (self.command is None) == (self.webhook is None):
            raise ValueError("needs either a command or a webhook")
        if self.webhook_ca is not None and self.webhook is None:
            raise ValueError("webhook_ca means nothing without a webhook")
        return self

    def beside(self, folder: Path) -> NotifySection:
        """The same with relative paths taken from `folder`; a program without any is looked for as a shell would."""
        command = self.command
        if command is not None and "/" in command[0]:
            command = (str(folder / command[0]), *command[1:])
        ca = None if self.webhook_ca is None else folder / self.webhook_ca
        return self.model_copy(update={"command": command, "webhook_ca": ca})


def _is_https(url: str) -> bool:
    try:
        found = urlsplit(url)
        return found.scheme == "https" and bool(found.hostname) and (found.port or 1) > 0
    except ValueError:
        return False
