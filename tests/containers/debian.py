"""Files of a Debian system's own packages, as an archive: a base image without a mirror, and in a second."""

from __future__ import annotations

import re
import subprocess
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

MADE = {  # as they are installed
    "/etc/passwd": "/usr/share/base-passwd/passwd.master",
    "/etc/group": "/usr/share/base-passwd/group.master",
    "/etc/ld.so.cache": "/etc/ld.so.cache",
}
"""Files that no package holds, and of what they are made."""
UNWANTED = re.compile(r"/usr/share/(?:doc|man|locale|info|lintian)/.")


class Package(NamedTuple):
    """What a package says of itself.

    Attributes:
        required: Whether every system has it.
        needs: For each dependency, the names that satisfy it.
        provides: Other names that it satisfies.
    """

    required: bool
    needs: list[list[str]]
    provides: list[str]


def installed() -> dict[str, Package]:
    """The packages of this system by name; none where it is no Debian."""
    form = "${Package}\t${Priority}\t${Pre-Depends},${Depends}\t${Provides}\t${db:Status-Status}\n"
    try:
        shown = subprocess.run(["dpkg-query", "--show", f"--showformat={form}"], capture_output=True, text=True)
    except FileNotFoundError:
        return {}
    found = {}
    for line in shown.stdout.splitlines():
        name, priority, needs, provides, status = line.split("\t")
        if status == "installed":
            alternatives = [[*_names(need, "|")] for need in needs.split(",") if need.strip()]
            found[name] = Package(priority == "required", alternatives, [*_names(provides, ",")])
    return found


def write_packages(archive: tarfile.TarFile, names: Iterable[str]) -> None:
    """Writes the files of packages and of all that they need, and those of every system."""
    for path in sorted({*_files(_closure(names))}):
        archive.add(path, recursive=False)
    for path, source in MADE.items():
        archive.add(source, path)


def _names(text: str, separator: str) -> Iterator[str]:
    for part in text.split(separator):
        if found := re.match(r"\s*([a-z0-9][a-z0-9+.-]*)", part):
            yield found[1]


def _closure(names: Iterable[str]) -> set[str]:
    known = installed()
    provided = {other: name for name, package in known.items() for other in package.provides}
    found, left = set[str](), [*names, *(name for name, package in known.items() if package.required)]
    while left:
        if (name := left.pop()) not in found:
            found.add(name)
            satisfied = ((provided.get(each, each) for each in need) for need in known[name].needs)
            left += [next(each for each in need if each in known) for need in satisfied]
    return found


def _files(names: Iterable[str]) -> Iterator[str]:
    """The paths of what packages hold, links to folders resolved, with what Python has compiled of it."""
    listed = subprocess.run(["dpkg-query", "--listfiles", *names], capture_output=True, text=True, check=True)
    places = dict[Path, Path]()
    for line in {*listed.stdout.splitlines()}:
        path = Path(line)
        if not path.name or UNWANTED.match(line):
            continue
        folder = places.setdefault(path.parent, path.parent.resolve())
        for each in (folder / path.name, *_compiled(folder / path.name)):
            if each.is_symlink() or each.exists():  # others were left out as this system was installed
                yield str(each)


def _compiled(source: Path) -> Iterator[Path]:
    if source.suffix == ".py":
        yield from (source.parent / "__pycache__").glob(f"{source.stem}.*.pyc")
