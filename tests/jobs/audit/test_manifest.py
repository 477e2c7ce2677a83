"""No byte of a result folder can be changed, and no file come or go, without a finding that names the file."""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordinator.frequency.folder import write_folder as write_simulation
from coordinator.frequency.simulation import Request, simulate
from coordinator.frequency.values import Collection
from jobs.audit.checks.verification import VerificationDocument, verification
from jobs.audit.place import find
from jobs.results.destination import MANIFEST
from jobs.results.folder import write_result_folder
from jobs.results.manifest import seal
from ldp.domain import Domain
from link.pki.authority import Authority
from link.pki.identity import Identity, Role
from link.pki.trust import Trust
from tests.examples import examples
from tests.jobs.anonymization.released import release_here
from tests.jobs.audit.kinds import JOBS, agreed

pytestmark = pytest.mark.turn(6)

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
OTHERS = (  # of whom no party signs anything
    *("frequency", "estimates", "export", "comparison", "hiding", "exploration"),
    *("released here", "released by a node"),
)
NAMED = {
    "estimates": ("result.json", {"schema": "comine.frequency-estimates/1"}),
    "export": ("collection.json", {"collection": "c"}),
    "comparison": ("compare.json", {"schema": "comine.compare/1"}),
    "hiding": ("hiding.json", {"schema": "comine.hiding/1"}),
    "exploration": ("frontier.json", {"schema": "comine.anonymization-frontier/1"}),
    "released by a node": ("certificate.json", {"schema": "comine.anonymization-certificate/1"}),
}


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.create()


@pytest.fixture(scope="module")
def analyst(authority: Authority) -> Identity:
    return authority.issue("analyst", "coordinator")


@pytest.fixture(scope="module")
def folders(authority: Authority, analyst: Identity, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An honest folder of each kind."""
    place = tmp_path_factory.mktemp("folders")
    with pytest.MonkeyPatch.context() as patch:
        for kind, (make, _) in JOBS.items():
            write_result_folder(place / kind, agreed(*make(), authority, patch))
    write_simulation(
        place / "frequency",
        simulate(Request(("grr",), 1.0, seed=1), Collection(Domain(2, ["a", "b"]), [0, 1, 1], True)),
    )
    release_here(place / "released here", tmp_path_factory.mktemp("source"))
    for kind, (name, contents) in NAMED.items():
        (place / kind).mkdir()
        (place / kind / name).write_text(json.dumps(contents))
        (place / kind / "estimates.csv").write_text("value,estimate\na,1\n")
        seal(place / kind, analyst)
    return {path.name: path for path in place.iterdir()}


@pytest.fixture(scope="module")
def trust(authority: Authority) -> Trust:
    return Trust(authority.certificate_pem)


def verified(folder: Path, trust: Trust) -> VerificationDocument:
    places = find([folder])
    assert places.results == (folder,)
    return verification([], places.results, trust)


def named(folder: Path, trust: Trust) -> set[str]:
    """The files of a folder that the findings are about."""
    return {os.path.relpath(found.file, folder) for found in verified(folder, trust).findings}


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


# -- honest folders --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [*JOBS, *NAMED])
def test_an_honest_folder_passes_and_says_on_whose_word(kind: str, folders: dict[str, Path], trust: Trust):
    document = verified(folders[kind], trust)
    assert document.findings == []
    (sealed,) = document.sealed
    assert (sealed.name, sealed.role, sealed.files) == ("analyst", "coordinator", len(files(folders[kind])) - 1)
    assert any("report.html" in what or "all files" in what for what in sealed.alone)
    assert "by the word of analyst alone" in str(sealed)


@pytest.mark.parametrize("kind", ["frequency", "released here"])
def test_what_nobody_signs_is_a_finding(kind: str, folders: dict[str, Path], trust: Trust):
    document = verified(folders[kind], trust)
    assert [found.what.split(",")[0] for found in document.findings] == ["nobody signed it"]
    assert "nobody vouches" in str(document.sealed[0])


# -- bytes -----------------------------------------------------------------------------------------------------------
def flip(data: bytes, at: int, byte: int) -> bytes:
    return data[:at] + bytes([data[at] ^ (byte or 1)]) + data[at + 1 :]


def insert(data: bytes, at: int, byte: int) -> bytes:
    return data[:at] + bytes([byte]) + data[at:]


def delete(data: bytes, at: int, byte: int) -> bytes:
    return data[:at] + data[at + 1 :]


def cut(data: bytes, at: int, byte: int) -> bytes:
    return data[:at]


def more(data: bytes, at: int, byte: int) -> bytes:
    return data + bytes([byte])


@pytest.mark.parametrize("kind", [*JOBS, *OTHERS])
@examples(2, 12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_any_change_of_any_byte_is_found(kind: str, folders: dict[str, Path], trust: Trust, data: st.DataObject):
    folder = folders[kind]
    path = data.draw(st.sampled_from(files(folder)).filter(lambda path: path.stat().st_size > 0))
    before = path.read_bytes()
    change: Callable[[bytes, int, int], bytes] = data.draw(st.sampled_from([flip, insert, delete, cut, more]))
    after = change(before, data.draw(st.integers(0, len(before) - 1)), data.draw(st.integers(0, 255)))
    path.write_bytes(after)
    try:
        assert str(path.relative_to(folder)) in named(folder, trust)
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize("kind", ["supports", "release", "frequency"])
def test_each_file_that_goes_is_named(kind: str, folders: dict[str, Path], trust: Trust, tmp_path: Path):
    for path in files(folders[kind]):
        copy = Path(shutil.copytree(folders[kind], tmp_path / path.name))
        (copy / path.relative_to(folders[kind])).unlink()
        assert str(path.relative_to(folders[kind])) in named(copy, trust)


def _add(folder: Path) -> str:
    (folder / "notes.txt").write_text("")
    return "notes.txt"


def _add_hidden(folder: Path) -> str:
    (folder / ".hidden").write_text("x")
    return ".hidden"


def _add_below(folder: Path) -> str:
    (folder / "parties" / "north").mkdir(parents=True)
    (folder / "parties" / "north" / "alignment.parquet").write_text("x")
    return "parties/north/alignment.parquet"


def _add_empty_folder(folder: Path) -> str:
    (folder / "empty").mkdir()
    return "empty"


def _rename(folder: Path) -> str:
    (folder / "report.html").rename(folder / "Report.html")
    return "Report.html"


def _link(folder: Path) -> str:
    (folder / "report.html").rename(folder.parent / "report.html")
    (folder / "report.html").symlink_to(folder.parent / "report.html")
    return "report.html"


def _link_folder(folder: Path) -> str:
    (folder / "more").symlink_to(folder.parent)
    return "more"


def _pipe(folder: Path) -> str:
    (folder / "report.html").unlink()
    os.mkfifo(folder / "report.html")
    return "report.html"


def _folder_for_file(folder: Path) -> str:
    (folder / "report.html").unlink()
    (folder / "report.html").mkdir()
    return "report.html"


def _swap(folder: Path) -> str:
    (folder / "itemsets.csv").rename(folder / "aside")
    (folder / "rules.csv").rename(folder / "itemsets.csv")
    (folder / "aside").rename(folder / "rules.csv")
    return "rules.csv"


def _not_text(folder: Path) -> str:
    name = os.fsdecode(b"\xff\x1b[2J")
    (folder / name).write_text("")
    return name


@pytest.mark.parametrize(
    "change",
    [
        *(_add, _add_hidden, _add_below, _add_empty_folder, _rename, _link, _link_folder, _pipe),
        *(_folder_for_file, _swap, _not_text),
    ],
)
def test_files_that_come_or_are_others(
    change: Callable[[Path], str], folders: dict[str, Path], trust: Trust, tmp_path: Path
):
    copy = Path(shutil.copytree(folders["supports"], tmp_path / "copy"))
    name = change(copy)
    document = verified(copy, trust)
    assert name in {os.path.relpath(found.file, copy) for found in document.findings}
    assert all(str(found).isprintable() for found in document.findings)


# -- the manifest ----------------------------------------------------------------------------------------------------
def manifest(folder: Path, **changes: Any) -> None:
    contents = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(contents | changes, indent=2) + "\n")


@pytest.fixture
def copy(folders: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(folders["supports"], tmp_path / "copy"))


def test_an_old_folder_is_told_in_a_sentence(copy: Path, trust: Trust):
    (copy / MANIFEST).unlink()
    (found,) = verified(copy, trust).findings
    assert found.file == str(copy / MANIFEST)
    assert "written by a version of comine that wrote none, or it was removed" in found.what


def test_the_other_signature_that_anybody_can_make_of_one(copy: Path, trust: Trust):
    r, s = decode_dss_signature(base64.b64decode(json.loads((copy / MANIFEST).read_text())["signature"]))
    manifest(copy, signature=base64.b64encode(encode_dss_signature(r, ORDER - s)).decode())
    assert MANIFEST in named(copy, trust)


def test_the_same_manifest_in_other_words(copy: Path, trust: Trust):
    contents = json.loads((copy / MANIFEST).read_text())
    turned = {"files": dict(reversed(contents["files"].items()))}
    for text in (
        json.dumps(contents),
        json.dumps(contents, indent=2),
        json.dumps(contents | turned, indent=2) + "\n",
        json.dumps(dict(reversed(contents.items())), indent=2) + "\n",
        json.dumps(contents, indent=2).replace('"schema"', '"schema": "comine.manifest/1",\n  "schema"') + "\n",
        json.dumps(contents, indent=2).replace("analyst", "\\u0061nalyst") + "\n",
        "[" * 100_000,
        '{"schema": "\\ud800"}',
    ):
        (copy / MANIFEST).write_text(text)
        assert named(copy, trust) == {MANIFEST}


def test_nobody_signs_for_another(copy: Path, trust: Trust, authority: Authority):
    (copy / "report.html").write_text("another")
    others: list[tuple[str, Role]] = [("mallory", "coordinator"), ("north", "party"), ("mallory", "client")]
    for name, role in others:
        seal(copy, authority.issue(name, role))
        (found,) = verified(copy, trust).findings
        assert f"is signed by {name}, a {role}, and not by the coordinator analyst" in found.what
    seal(copy, Authority.create().issue("analyst", "coordinator"))
    assert named(copy, trust) == {MANIFEST}
    seal(copy, None)
    assert named(copy, trust) == {MANIFEST}


def test_a_manifest_of_another_folder(copy: Path, folders: dict[str, Path], trust: Trust):
    shutil.copy(folders["model"] / MANIFEST, copy / MANIFEST)
    assert {"itemsets.csv", "model.json", "report.html"} <= named(copy, trust)


def test_another_signer_in_the_manifest(copy: Path, trust: Trust, authority: Authority):
    contents = json.loads((copy / MANIFEST).read_text())
    other = authority.issue("analyst", "coordinator").certificate_pem.decode()
    for signer in (
        contents["signer"] | {"name": "north"},
        contents["signer"] | {"role": "party"},
        contents["signer"] | {"certificate": other},
        contents["signer"] | {"certificate": "-----BEGIN CERTIFICATE-----\n"},
        contents["signer"] | {"certificate": ""},
    ):
        manifest(copy, signer=signer)
        assert MANIFEST in named(copy, trust)


def test_its_own_coordinator_can_change_what_no_party_signed_and_nothing_else(
    copy: Path, trust: Trust, analyst: Identity
):
    (copy / "report.html").write_text("another")
    seal(copy, analyst)
    document = verified(copy, trust)
    assert document.findings == []
    assert "report.html" in document.sealed[0].alone
    (copy / "rules.csv").write_text("antecedent,consequent\n")
    seal(copy, analyst)
    assert [found.what for found in verified(copy, trust).findings] == [
        "rules.csv does not hold what follows from the itemsets that the parties signed"
    ]


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_a_coordinator_that_writes_anything_brings_no_verification_down(
    folders: dict[str, Path], trust: Trust, analyst: Identity, data: st.DataObject
):
    """Whatever is in the files, and signed with it, a verification ends with findings or without."""
    folder = folders[data.draw(st.sampled_from(list(JOBS)))]
    path = data.draw(st.sampled_from(files(folder)))
    before, sealed = path.read_bytes(), (folder / MANIFEST).read_bytes()
    if path.suffix == ".json" and data.draw(st.booleans()):
        after = json.dumps(_otherwise(json.loads(before), data)).encode()
    else:
        change: Callable[[bytes, int, int], bytes] = data.draw(st.sampled_from([flip, insert, delete, cut, more]))
        after = change(before, data.draw(st.integers(0, len(before) - 1)), data.draw(st.integers(0, 255)))
    path.write_bytes(after)
    try:
        if path.name != MANIFEST:
            seal(folder, analyst)
        verified(folder, trust)
    finally:
        path.write_bytes(before)
        (folder / MANIFEST).write_bytes(sealed)


STRANGE = st.sampled_from(
    [None, True, -1, 0, 2**63, 2**64, 10**400, 1e308, "", "\x00", "A" * 10_000, [], {}, [[]], "\u202e", "2026-13-01"]
)


def _otherwise(value: Any, data: st.DataObject) -> Any:
    """The same with something else at one place."""
    if isinstance(value, dict) and value and data.draw(st.integers(0, 9)):
        key = data.draw(st.sampled_from(sorted(value)))
        return value | {key: _otherwise(value[key], data)}
    if isinstance(value, list) and value and data.draw(st.integers(0, 9)):
        at = data.draw(st.integers(0, len(value) - 1))
        return [*value[:at], _otherwise(value[at], data), *value[at + 1 :]]
    return data.draw(STRANGE)
