"""What runs of full-domain recoding share, whether rows are in memory or in blocks: it loads no other algorithm."""

from __future__ import annotations

from anonymize.release import allowed_suppression
from jobs.anonymization.spec import AnonymizeSection
from link.errors import ConfigurationError


def algorithm_of(spec: AnonymizeSection) -> tuple[str, str, dict[str, str]]:
    """The module and the function of an algorithm of full-domain recoding, and its own arguments.

    Raises:
        ConfigurationError: An argument is not for it.
    """
    if spec.algorithm != "local-recoding":
        return spec.algorithm, spec.algorithm, {"suppression": spec.suppression}
    if spec.suppression == "cell":
        raise ConfigurationError('suppression = "cell" is not for local-recoding, which suppresses rows at the end')
    return "local_recoding", "local_recode", {}


def check_suppression(spec: AnonymizeSection, suppressed: int, n_rows: int) -> None:
    """Refuses a release that leaves out more rows than it may.

    Raises:
        ConfigurationError: It does.
    """
    allowed = allowed_suppression(spec.max_suppression, n_rows)
    if suppressed > allowed:
        raise ConfigurationError(
            f"{suppressed} rows would have to be suppressed, but max_suppression = {spec.max_suppression} "
            f"allows {allowed} of {n_rows}: allow more, or weaken the model"
        )
