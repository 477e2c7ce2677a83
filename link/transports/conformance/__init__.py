"""What every transport must give a session: checks for the tests of those who write one.

They need no test framework; with pytest:

    @pytest.mark.parametrize("check", CHECKS)
    def test_my_transport(check: Check) -> None:
        run(check, Kit(opened, Randomness.from_seed(0)))

where `opened(parties, job_id)` is an asynchronous context manager that gives a transport by party.
"""

from link.transports.conformance.checks import CHECKS, Check, run
from link.transports.conformance.kit import Kit

__all__ = ["CHECKS", "Check", "Kit", "run"]
