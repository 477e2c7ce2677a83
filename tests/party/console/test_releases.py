"""Pages of anonymised releases: what is kept of them, and rows before and after, which only those who decide see."""

from __future__ import annotations

import asyncio
import csv
from pathlib import Path

import pytest

from anonymize.certificate import Certificate
from console.roles import Person
from console.site import Visit
from party.console import releases
from party.services.anonymization import kept as kept_releases
from party.services.anonymization.kept import FOLDER, KeptReleases
from tests.errors import fails
from tests.integration.anonymization.conftest import here  # noqa: F401 - a fixture of this folder, too
from tests.integration.anonymization.patients import config, running
from tests.party.console.content import content

ONE = "/releases/{certificate}"


@pytest.mark.usefixtures("here")
def test_what_is_kept_of_releases_is_shown_and_rows_stand_beside_their_originals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            await world.hub.fetch(world.request(), tmp_path / "k5")
            config(tmp_path, "k = 5", "k = 20")
            await world.hub.fetch(world.request(), tmp_path / "k20")

    asyncio.run(test())
    first, second = (Certificate.read(tmp_path / name / "certificate.json") for name in ("k5", "k20"))
    pages, state = releases.pages(tmp_path / "north.toml"), tmp_path / "state" / "north"
    files = sorted((state / FOLDER).iterdir())
    assert [path.name for path in files] == sorted(
        f"{each.digest}{suffix}" for each in (first, second) for suffix in (".html", ".json")
    )
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert "Secret" not in "".join(path.read_text() for path in files)

    assert content(pages, "/releases", {})["kept"] == {first.digest, second.digest}
    of = {"certificate": first.digest}
    shown = content(pages, ONE, {}, **of)
    assert shown["levels"] == [(name, first.node[name], first.heights[name]) for name in first.node or {}]
    (dot,) = [each for each in shown["lattice"].dots if each.chosen]
    assert dot.levels == " ".join(str(level) for level in (first.node or {}).values())
    assert [(each["own"], each["classes"]) for each in shown["points"]] == [
        (False, second.classes),
        (True, first.classes),
    ]
    assert shown["pairs"] is None

    found = content(pages, f"{ONE}/rows", {}, "approver", **of)
    patients = csv.DictReader((tmp_path / "patients.csv").read_text().splitlines())
    originals = {(row["age"], row["sex"], row["disease"]) for row in patients}
    published = {tuple(row.values()) for row in csv.DictReader((tmp_path / "k5/release.csv").read_text().splitlines())}
    assert len(found["pairs"]) == 20
    assert found["columns"] == ["age", "sex", "disease"]
    assert {tuple(before) for before, _ in found["pairs"]} <= originals
    assert {tuple(after) for _, after in found["pairs"]} <= published
    for before, after in found["pairs"]:
        assert before[2] == after[2]
        assert after[1] in ("*", before[1])
    (report,) = [each for each in pages if each.path == f"{ONE}/report"]
    assert b"Before and after" in report.answer(Visit(Person("anna", "approver"), of, {}, {})).html  # type: ignore[union-attr]
    assert {each.path: each.role for each in pages if each.path.startswith(f"{ONE}/")} == {
        f"{ONE}/report": "approver",
        f"{ONE}/rows": "approver",
    }

    with fails("E001"):
        content(pages, ONE, {}, certificate="../audit")
    lines = (tmp_path / "patients.csv").read_text().splitlines(keepends=True)
    (tmp_path / "patients.csv").write_text("".join([lines[0], *lines[:0:-1]]))
    with fails("E101"):
        content(pages, f"{ONE}/rows", {}, "approver", **of)
    monkeypatch.setattr(kept_releases, "MOST", 1)
    KeptReleases(state).keep(KeptReleases(state).all()[0], None)
    assert {path.stem for path in (state / FOLDER).iterdir()} == {second.digest}
