"""A bill of materials in CycloneDX: `python scripts/bill_of_materials.py` prints that of the installed packages.

Wheels hold the other one, of the packages of `requirements/run.txt`: those with which comine is tested, and which the
container image installs; pip may choose others. Of the same packages the same bytes come: there is no time in it, and
the serial number follows from the content.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
import uuid
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Final

_PIN: Final = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)(\[[^\]]*\])?==(?P<version>[^ ;\\]+)( ; (?P<marker>[^\\]+?))? ?\\?$"
)
_OWN: Final = "comine"


def of_pins(root: Path) -> str:
    """The bill of a wheel.

    Args:
        root: The repository's.
    """
    version = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    lines = (root / "requirements" / "run.txt").read_text(encoding="utf-8").splitlines()
    pins = [pin for line in lines if line and not line[0].isspace() if (pin := _PIN.match(line))]
    return _bill(version, [_component(pin["name"], pin["version"], pin["marker"]) for pin in pins])


def of_installed() -> str:
    """The bill of the environment of this Python."""
    found = {each.metadata["Name"]: each.version for each in distributions()}
    version = found.pop(_OWN)
    return _bill(version, [_component(name, version) for name, version in found.items()])


def _component(name: str, version: str, marker: str | None = None) -> dict[str, Any]:
    canonical = re.sub(r"[-_.]+", "-", name).lower()
    purl = f"pkg:pypi/{canonical}@{version}"
    made: dict[str, Any] = {"type": "library", "bom-ref": purl, "name": canonical, "version": version, "purl": purl}
    if marker is not None:
        made["properties"] = [{"name": "python:marker", "value": marker}]
    return made


def _bill(version: str, components: list[dict[str, Any]]) -> str:
    own = _component(_OWN, version) | {"type": "application", "licenses": [{"license": {"id": "Apache-2.0"}}]}
    components.sort(key=lambda each: each["bom-ref"])
    contents = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own},
        "components": components,
        "dependencies": [{"ref": own["bom-ref"], "dependsOn": [each["bom-ref"] for each in components]}],
    }
    contents["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(contents, sort_keys=True)).urn
    return json.dumps(contents, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    sys.stdout.write(of_installed())
