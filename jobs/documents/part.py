"""What all models of JSON that comine writes have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """A part of a document: frozen, and with no key but its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)
