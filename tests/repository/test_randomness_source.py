"""Every random number of the packages comes from the project's one source."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]
SOURCE = "crypto/primitives/randomness.py"
OTHER_SOURCES = {"secrets", "random", "uuid", "numpy.random", "np.random", "os.urandom", "os.getrandom"}
WORDS = re.compile("|".join(rf"\b{name.rpartition('.')[2]}\b" for name in OTHER_SOURCES))
PUBLIC = {
    "comine/quickstart/run.py": "secrets.token_hex",
    "coordinator/jobs/client.py": "secrets.token_bytes",  # a challenge
    "coordinator/jobs/runner.py": "secrets.token_bytes",  # a job's nonce
    "jobs/results/destination.py": "secrets.token_hex",  # names of drafts, as the rest
    "link/files/private_file.py": "secrets.token_hex",
    "link/pki/authority.py": "secrets.token_hex",
    "party/init_files.py": "secrets.token_hex",
}
"""What these draw from the operating system is told to everybody. `link` may not know `crypto`, and the project's
source needs numpy, which commands that only call nodes or write files do not load."""


def drawn_from(source: str) -> Iterator[str]:
    """What a module draws random numbers from, beside the project's source."""
    for node in ast.walk(ast.parse(source)) if WORDS.search(source) else ():
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Attribute):
            names = [ast.unparse(node)]
        yield from (name for name in names if name in OTHER_SOURCES)


def test_the_search_finds_them() -> None:
    wrong = [
        "import secrets",
        "from random import choice",
        "import uuid as u",
        "import numpy as np\nnp.random.default_rng(1)",
        "from numpy import random",
        "import numpy.random",
        "import os\nkey = os.urandom(16)",
        "def f():\n    from secrets import token_bytes",
    ]
    assert all(list(drawn_from(each)) for each in wrong)
    assert not list(drawn_from("from crypto.primitives.randomness import Randomness\nRandomness.from_os().below(3)"))


def test_no_package_draws_from_anything_else() -> None:
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if name != SOURCE and (drawn := set(drawn_from(path.read_text(encoding="utf-8")))):
                found[name] = drawn
    assert found == {name: {"secrets"} for name in PUBLIC}


def test_the_exceptions_draw_nothing_else() -> None:
    for name, call in PUBLIC.items():
        tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
        used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert {each for each in used if each.startswith("secrets.")} == {call}
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "secrets"]
