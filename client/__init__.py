"""What an app embeds: a service learns frequencies from it and no values, which are perturbed on the device."""

from client.budget import Budget
from client.connection import Connection
from client.outcome import Delivery, LedgerState, Outcome, Status
from client.reporter import CollectionKey, FrequencyClient

__all__ = ["Budget", "CollectionKey", "Connection", "Delivery", "FrequencyClient", "LedgerState", "Outcome", "Status"]
