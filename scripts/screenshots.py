"""Makes the pictures of pages in the documentation anew, from a real run in headless Chromium: `make screenshots`."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from coordinator.jobs.simulation.simulate import simulate_job
from jobs.loading import load_job
from jobs.report.page import report
from mining.data.transactions import Transactions

ROOT: Final = Path(__file__).resolve().parents[1]
JOB: Final = ROOT / "examples" / "groceries" / "job.toml"
PICTURES: Final = {"report.png": (1200, 1700), "report-narrow.png": (390, 1100)}  # width and height
_CHROMIUM: Final = ("/usr/bin/chromium", "chromium", "chromium-browser", "google-chrome")


def take(folder: Path) -> None:
    """Writes all pictures into a folder."""
    browser = next(filter(None, map(shutil.which, _CHROMIUM)), None)
    if browser is None:
        raise SystemExit("the pictures need Chromium, and it is not installed")
    spec = load_job(JOB)
    data = {
        party: Transactions.from_rows([line.split() for line in (JOB.parent / f"{party}.dat").read_text().splitlines()])
        for party in spec.job.parties
    }
    html = report(asyncio.run(simulate_job(spec, data, seed=1)))
    with tempfile.TemporaryDirectory() as name:
        page = Path(name) / "report.html"
        page.write_text(html, encoding="utf-8")
        for picture, (width, height) in PICTURES.items():
            frame = Path(name) / "frame.html"  # as narrow as no window may be
            frame.write_text(
                f"<body style='margin:0'><iframe src='report.html' style='border:0;width:{width}px;height:{height}px'>"
            )
            command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
            command += [f"--user-data-dir={name}/profile", "--virtual-time-budget=8000"]
            command += [f"--window-size={width},{height}"]
            subprocess.run(
                [*command, f"--screenshot={folder / picture}", frame.as_uri()],
                check=True,
                capture_output=True,
                timeout=120,
            )


if __name__ == "__main__":
    take(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images")
