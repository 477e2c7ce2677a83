"""How much memory a process needs beyond its modules to load rows: little more than the rows take afterwards."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.turn(3)

ROWS = 1_000_000  # of four items
LINES = [f"{n * 7 % 5000} {n * 11 % 5000 + 5000} {n % 97 + 10000} {n % 1013 + 11000}" for n in range(10_000)]
SCRIPT = """
import re, sys
import pyarrow.compute, pyarrow.csv
from mining.data.loading import load_transactions
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10
before = peak()
data = load_transactions(sys.argv[1], sys.argv[2])
assert data.n_occurrences == 4 * data.n_rows
print((peak() - before) // data.n_rows)
"""


@pytest.mark.turn(2)
@pytest.mark.skipif(sys.platform != "linux", reason="peaks are told by Linux")
@pytest.mark.parametrize(
    ("form", "most"),  # bytes a row; it took 301 and 490 when whole files were taken apart at once, 101 and 96 now
    [("basket", 200), ("csv", 200)],
)
def test_rows_are_loaded_in_little_room(tmp_path: Path, form: str, most: int) -> None:
    lines = LINES if form == "basket" else ['"' + line.replace(" ", '","') + '"' for line in LINES]
    text = "".join(f"{line}\n" for line in lines).encode()
    with (tmp_path / "data").open("wb") as file:
        for _ in range(ROWS // len(LINES)):
            file.write(text)
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "data"), form],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(ran.stdout) <= most
