"""`comine doctor`: is the federation fit to run a job?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from coordinator.cli.options import HERE, AsJson, FederationFile

if TYPE_CHECKING:
    from coordinator.doctor import Check


def doctor(
    federation: FederationFile = HERE,
    as_json: AsJson = False,
) -> None:
    """Check that every party is reachable, identified and ready; exits 0 only if all is well."""
    import asyncio

    from coordinator.cli.terminal.console import note, write_json, write_table
    from coordinator.doctor import days_left, examine, own_warnings
    from coordinator.member import load_federation

    known, identity = load_federation(federation)
    assert known.coordinator is not None  # whose certificate was loaded
    checks = asyncio.run(examine(identity, known.coordinator, known.addresses))
    own, warnings = days_left(identity.certificate_pem), own_warnings(identity, checks)
    if as_json:
        write_json(
            {
                "schema": "comine.doctor/1",
                "federation": known.federation.name,
                "coordinator": {
                    "name": identity.name,
                    "days_left": own,
                    "revocations": identity.trust.number,
                    "warnings": list(warnings),
                },
                "parties": [check.as_data() for check in checks],
            }
        )
    else:
        heads = ["party", "address", "reachable", "identified", "ready", "comine", "days left", "remark"]
        write_table(heads, map(_row, checks))
        for warning in warnings:
            note(f"warning: {warning}")
    failing = [check for check in checks if check.exit_code]
    if failing:
        note(f"{len(failing)} of {len(checks)} parties cannot take part: {', '.join(c.party for c in failing)}")
        raise typer.Exit(max(check.exit_code for check in failing))
    note(f"all {len(checks)} parties are ready; the coordinator's certificate is valid for {own:.0f} days")


def _row(check: Check) -> list[str]:
    days = "?" if check.days_left is None else f"{check.days_left:.0f}"
    marks = ["yes" if good else "no" for good in (check.reachable, check.identified, check.ready)]
    remark = check.problem or "; ".join(check.warnings)
    return [check.party, check.address, *marks, check.software or "?", days, remark]
