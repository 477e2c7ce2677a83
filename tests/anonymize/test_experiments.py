"""The scripts that run the papers' experiments again work without any data, and draw pictures."""

from __future__ import annotations

import pathlib
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from examples.anonymization import identity_replacement, sensitive_levels
from examples.anonymization.charts import Panel, draw


def run(script: str, out: pathlib.Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    monkeypatch.setattr(sys, "argv", [script, "--out", str(out), *options])


@pytest.mark.turn(2, "experiments")
@pytest.mark.slow
def test_identity_replacement(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run("identity_replacement", tmp_path, monkeypatch)
    monkeypatch.setattr(identity_replacement, "REPETITIONS", 3)
    identity_replacement.main()
    printed = capsys.readouterr().out
    assert "| 100,000 |" in printed
    assert "leak rate 0," in printed
    pictures = sorted(path.name for path in tmp_path.glob("*.svg"))
    assert pictures == ["anonymize-ppir-large.svg", "anonymize-ppir-small.svg", "anonymize-ppir-time.svg"]


@pytest.mark.turn(2, "experiments")
@pytest.mark.slow
def test_sensitive_levels(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run("sensitive_levels", tmp_path, monkeypatch, "--repetitions", "1")
    monkeypatch.setattr(sensitive_levels, "RECORDS", 150)
    sensitive_levels.main()
    assert "| 3, 8 | (p,k)-GPKC |" in capsys.readouterr().out
    for path in tmp_path.glob("*.svg"):
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
    assert len(list(tmp_path.glob("*.svg"))) == 3


def test_a_chart_shows_every_series_within_its_axes() -> None:
    picture = draw([Panel("A & B", {"one": [(0, 1), (1, 5)], "two": [(0, 2), (1, 3)]}, {"one": [0.5, 0.5]})], "x", "y")
    root = ElementTree.fromstring(picture)
    lines = [e for e in root.iter() if e.tag.endswith("polyline")]
    assert len(lines) == 4  # two series, and two in the legend
    for line in lines[:2]:
        for point in line.attrib["points"].split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= 300
            assert 30 <= y <= 250
