"""What became of a report, for the app."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from protos.v1.frequency_pb2 import OVER_QUOTA, ReportStatus


def reason(status: int, sentence: str) -> str:
    """Why a service does not take a report, for a person: by its own words where it has said something."""
    if sentence:
        return sentence
    if status == OVER_QUOTA:
        return (
            "this certificate has sent as many reports as count in the period: one of a client, and of a gateway as "
            "many as the collection's [access] gateways say"
        )
    known = status in ReportStatus.values()
    return f"the node says {ReportStatus.Name(ReportStatus.ValueType(status)).lower() if known else status}"


class Status(Enum):
    """Why a report was made, or not."""

    REPORTED = "reported"  # drawn, charged and put into the outbox
    ALREADY = "already"  # this device has reported in this period
    NOT_SELECTED = "not selected"  # its own coin keeps it out of this round
    OTHER_ROUND = "other round"  # of a search in several rounds, it drew another one
    NO_ROUND = "no round"  # none is open now, as far as it knows
    REFUSED = "refused"  # by its budget, its ledger or its owner's limits, or because the service broke the rules
    FULL = "full"  # its outbox holds as many reports as it may


@dataclass(frozen=True, slots=True)
class Outcome:
    """What `FrequencyClient.report` did.

    Attributes:
        status: In a word.
        sentence: For a person.
        charge: What it added to what the device has revealed; 0 unless reported.
    """

    status: Status
    sentence: str
    charge: Fraction = Fraction(0)

    @property
    def reported(self) -> bool:
        """Whether a report waits in the outbox now."""
        return self.status is Status.REPORTED


@dataclass(frozen=True, slots=True)
class LedgerState:
    """What the ledger of a collection says, beside the device's own budget.

    Attributes:
        step: The present one.
        spent: What is charged within the last `steps` steps.
        epsilon: What may be.
        steps: How many count together.
    """

    step: int
    spent: Fraction
    epsilon: Fraction
    steps: int


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of the reports in the outbox. No budget is given back for those that were not counted.

    Attributes:
        counted: Taken by the service.
        duplicate: Taken before: the answer to an earlier delivery was lost.
        late: Given up, since their rounds were over when they arrived.
        refused: Given up, since the service does not take them.
        expired: Given up, since they lay in the outbox for too long.
        waiting: Left in the outbox for the next time, since their rounds have not begun by the service's clock.
        sentences: What the service said to the refused ones.
    """

    counted: int = 0
    duplicate: int = 0
    late: int = 0
    refused: int = 0
    expired: int = 0
    waiting: int = 0
    sentences: tuple[str, ...] = ()
