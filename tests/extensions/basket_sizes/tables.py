"""The job file of the kind, with a table of its own."""

from __future__ import annotations

from pydantic import Field

from jobs.spec.job import JobSpec
from jobs.spec.values import Section
from link.errors import ConfigurationError


class BasketSizesSection(Section):
    """The `[basket_sizes]` table.

    Attributes:
        longest: Rows with so many items or more are counted together.
    """

    longest: int = Field(ge=1, le=1000)


class BasketSizesSpec(JobSpec):
    """The whole of `job.toml`."""

    basket_sizes: BasketSizesSection | None = None

    @property
    def sizes(self) -> BasketSizesSection:
        """The `[basket_sizes]` table.

        Raises:
            ConfigurationError: There is none.
        """
        if self.basket_sizes is None:
            raise ConfigurationError('task = "basket-sizes" needs a [basket_sizes] table; the table is missing')
        return self.basket_sizes
