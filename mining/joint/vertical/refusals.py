"""How joint vertical mining ends where there is nothing to mine, or too much."""

from __future__ import annotations

from link.errors import ConfigurationError, InputDataError, shareable


def no_common_row() -> InputDataError:
    """No row is common to all parties."""
    return shareable(
        InputDataError(
            "the parties have no row in common; check that their ids are of the same kind, and [align] trim, case and "
            "unicode"
        )
    )


def too_many(length: int, limit: int) -> ConfigurationError:
    """There are more candidates of a length than the job allows."""
    return shareable(
        ConfigurationError(
            f"there are more than {limit} candidates of {length} items; raise min_support, set max_length, "
            "or raise [itemsets] max_candidates"
        )
    )
