"""Writes the published schemas anew."""

from __future__ import annotations

from jobs.schema import FOLDER, NAMES, generate

for name in NAMES:
    (FOLDER / f"{name}.json").write_text(generate(name), encoding="utf-8")
