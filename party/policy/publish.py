"""`[dataset.publish]`: what the owner of a dataset lets everybody know of its size who may plan jobs on it."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Annotated, Final

from pydantic import AfterValidator, Field, model_validator

from jobs.spec.toml import TomlTable
from mining.public_sizes import LONGEST, MOST, SUPPORTS, WHOLE, PublicSizes

_LISTED: Final = ", ".join(f'"{support / WHOLE:g}"' for support in SUPPORTS)

Size = Annotated[int, Field(ge=0, le=MOST)]


def _supports(frequent: dict[str, tuple[Size, ...]]) -> dict[str, tuple[Size, ...]]:
    for key, numbers in frequent.items():
        if _support(key) is None:
            raise ValueError(f"'{key}' is no support at which numbers of itemsets are published; they are {_LISTED}")
        if len(numbers) > LONGEST:
            raise ValueError(f"'{key}' has more than {LONGEST} numbers, for itemsets of 1, 2, 3, … items")
    return frequent


def _support(key: str) -> int | None:
    """In ten-thousandths; None for what is none of the supports."""
    try:
        number = Decimal(key) * WHOLE
    except InvalidOperation:
        return None
    return int(number) if number.is_finite() and number in SUPPORTS else None


class PublishSection(TomlTable):
    """The `[dataset.publish]` table. Numbers are shown coarsely however they are written, and none below 100.

    Attributes:
        rows: About how many rows there are.
        items: About how many distinct items.
        level_s: About how many seconds a level takes on the cluster of `engine = "spark"`, for plans to count.
        frequent: By support, about how many itemsets of 1, 2, 3, … items are frequent; fewer than 100 need not be
            distinguished from none.
    """

    rows: Size
    items: Size | None = None
    level_s: float | None = Field(default=None, gt=0, le=MOST / 1000)
    frequent: Annotated[dict[str, tuple[Size, ...]], AfterValidator(_supports)] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _distinct(self) -> PublishSection:
        if len({_support(key) for key in self.frequent}) < len(self.frequent):
            raise ValueError("[dataset.publish.frequent] names a support twice")
        return self

    @property
    def sizes(self) -> PublicSizes:
        """As they are written."""
        frequent = ((support, numbers) for key, numbers in self.frequent.items() if (support := _support(key)))
        level_ms = None if self.level_s is None else max(1, round(1000 * self.level_s))
        return PublicSizes(self.rows, self.items, tuple(sorted(frequent, reverse=True)), level_ms)
