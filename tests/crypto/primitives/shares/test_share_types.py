"""What must not type-check does not: every marked line of a misuse is an error of mypy, every other line is none."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]

MISUSES = """
import numpy as np
from crypto.primitives.shares.replicated import ReplicatedShare
from crypto.primitives.shares.shamir import ShamirShare
from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.xor import XorShare
from crypto.protocols.comparison.and_triples import Triples
from crypto.protocols.comparison.comparison import at_least
from crypto.protocols.comparison.conversion import to_additive
from crypto.protocols.comparison.multiplication import multiply
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.products.replicated import matrix_product
from crypto.protocols.products.replicated import to_additive as of_two
from crypto.protocols.comparison.shared_bits import conjunction
from crypto.protocols.comparison.two_party import TwoParty
from link.session import Session

def shares(a: AdditiveShare, x: XorShare, s: ShamirShare) -> None:
    a + a; x ^ x; s + s
    a + 1  # wrong
    1 + a  # wrong
    a + x  # wrong
    a + s  # wrong
    s - a  # wrong
    x ^ a  # wrong
    x < x  # wrong
    len(x)  # wrong
    a[0]  # wrong
    x[0]  # wrong
    int(a)  # wrong
    float(s)  # wrong
    range(x)  # wrong
    list(a)  # wrong
    a * a  # wrong
    x & x  # wrong
    a.values = np.zeros(1, np.uint64)  # wrong

def replicated(a: AdditiveShare, r: ReplicatedShare) -> None:
    r + r; r - r
    r + a  # wrong
    a + r  # wrong
    r + 1  # wrong
    r[0]  # wrong
    r * r  # wrong
    r.local_product(a)  # wrong
    r.own = np.zeros((1, 1), np.uint32)  # wrong

async def three(session: Session, two: TwoParty, keys: PairwiseSecrets, a: AdditiveShare, r: ReplicatedShare) -> None:
    product: ReplicatedShare = await matrix_product(session, keys, r, r)
    numbers: AdditiveShare = await of_two(session, two, product)
    await matrix_product(session, keys, r, a)  # wrong
    await matrix_product(session, keys, r.own, r)  # wrong
    await of_two(session, two, numbers)  # wrong
    await at_least(session, two, product, 5, 20)  # wrong

async def protocols(session: Session, two: TwoParty, t: Triples, a: AdditiveShare, x: XorShare, s: ShamirShare) -> None:
    bits: XorShare = await at_least(session, two, a, 5, 20)
    numbers: AdditiveShare = await to_additive(session, two, bits)
    await at_least(session, two, x, 5, 20)  # wrong
    await at_least(session, two, s, 5, 20)  # wrong
    await at_least(session, two, a.values, 5, 20)  # wrong
    await to_additive(session, two, a)  # wrong
    await multiply(session, two, a, x)  # wrong
    await multiply(session, two, numbers, 3)  # wrong
    await conjunction(session, two, t, bits, numbers)  # wrong
    wrong: AdditiveShare = await at_least(session, two, a, 5, 20)  # wrong
"""


@pytest.mark.slow
def test_misuse_does_not_type_check(tmp_path: Path) -> None:
    program = tmp_path / "misuse.py"
    program.write_text(MISUSES)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(ROOT / ".mypy_cache")]
    found = subprocess.run([*command, str(program)], cwd=ROOT, capture_output=True, text=True, check=False)
    lines = {int(line) for line in re.findall(r"misuse\.py:(\d+): error", found.stdout)}
    expected = {number for number, line in enumerate(MISUSES.splitlines(), start=1) if line.endswith("# wrong")}
    assert lines == expected, found.stdout + found.stderr
