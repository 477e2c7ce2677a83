"""Evidence against a party: who is convicted, by what, and that nobody can make any against an honest one."""

from __future__ import annotations

import copy
import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crypto.protocols.replicated.evidence import RULES, commitment_of
from jobs.audit.checks.verification import verification
from jobs.audit.evidence import EvidenceDocument, EvidenceFolder, read_evidence
from link.pki.authority import Authority
from link.transcripts import vouching
from link.transcripts.words import Evidence, Origin, Shown, Words
from link.version import WINDOW
from protos.v1.link_pb2 import Frame, Voucher
from protos.v1.verified_pb2 import DealtCommitments, DealtKey, HeardDealings
from tests.crypto.protocols.replicated.deviating_world import AUTHORITY
from tests.crypto.protocols.replicated.test_verified_sums import ATTACKED, HELD
from tests.errors import fails
from tests.jobs.audit.evidence_world import CASES, TRUST, altering, convicting, ends_of, file_of, flip


def holds(contents: Any) -> bool:
    try:
        EvidenceDocument.model_validate(contents).judged(TRUST)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("case", CASES)
def test_who_breaks_a_rule_is_convicted_by_its_signatures(case: str) -> None:
    deviating, _, rule = CASES[case]
    ends = ends_of(case)
    found = list(convicting(ends))
    assert rule in {document.rule for _, _, document in found}
    assert not ends.results
    for name, _, document in found:
        assert (document.accused, document.wire) == (deviating, WINDOW.latest)
        assert document.judged(TRUST)
        assert ends.errors[name].party == deviating


def test_who_equivocates_is_convicted_by_all_who_compare() -> None:
    assert {name for name, _, _ in convicting(ends_of("two dealings"))} >= {"north", "south"}


def test_who_does_not_sign_is_named_and_not_believed() -> None:
    ends = ATTACKED[4].attacked(["south"], altering(Voucher, flip("signature")), 5)
    assert ends.errors
    assert all("south has not signed" in error.message for error in ends.errors.values())
    assert not any(ends.evidence.values())


def test_words_that_are_passed_on_without_their_signature_convict_nobody() -> None:
    """South says that north has dealt something else: one of the two lies."""
    ends = ATTACKED[4].attacked(["south"], altering(HeardDealings, lambda told: flip("body")(told.heard[0]), "east"), 5)
    assert (ends.errors["east"].party, ends.evidence["east"]) == (None, [])
    assert "north and south contradict each other" in ends.errors["east"].message


# -- no honest party is convicted --------------------------------------------------------------------------------------
def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    yield from ([path] if not isinstance(value, dict | list) else [])
    for key, each in items:
        yield from leaves(each, (*path, key))


def changed(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, 0 if value else 2]
    middle = len(value) // 2
    other = "0" if value[middle : middle + 1] != "0" else "1"
    return [value[:middle] + other + value[middle + 1 :], ""]


@pytest.mark.parametrize("case", CASES)
def test_evidence_in_which_anything_was_altered_does_not_hold(case: str) -> None:
    contents = json.loads(file_of(case))
    assert holds(contents)
    places = list(leaves(contents))
    assert len(places) > 15
    for path in places:
        inner = contents
        for key in path[:-1]:
            inner = inner[key]
        before = inner[path[-1]]
        for after in changed(before):
            inner[path[-1]] = after
            assert not holds(contents), (path, before, after)
        inner[path[-1]] = before


@pytest.mark.parametrize("case", CASES)
def test_evidence_that_lacks_or_repeats_words_or_messages_does_not_hold(case: str) -> None:
    contents = json.loads(file_of(case))
    for words in range(len(contents["words"])):
        for less in (True, False):
            altered = copy.deepcopy(contents)
            if less:
                del altered["words"][words]
            else:
                altered["words"][words] = altered["words"][words - 1]
                altered["words"] += altered["words"][:1]
            assert not holds(altered)
        for frame in range(len(contents["words"][words]["frames"])):
            altered = copy.deepcopy(contents)
            del altered["words"][words]["frames"][frame]
            assert not holds(altered)


def test_words_of_an_honest_party_convict_it_under_no_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever accusers have of it: all it signed, for any of them, in two sessions."""
    of_north: list[Words] = []

    def recorded(origin: Origin, *rest: Any) -> Words:
        words = Words(origin, *rest)
        of_north.extend([words] if origin.sender == "north" and "/decide" in origin.lane else [])
        return words

    monkeypatch.setattr(vouching, "Words", recorded)
    for seed in (5, 6):
        assert not ATTACKED[4].attacked(["east"], unaltered, seed).errors
    assert len(of_north) == 2 * 2
    for rule in RULES:
        for one in of_north:
            views = [one, one.showing(0), *(one.showing(0, place) for place in (1, 2))]
            for view in views:
                assert not holds(as_json(Evidence(rule, (view,))))
            for other in of_north:
                assert not holds(as_json(Evidence(rule, (one.showing(0), other.showing(0)))))


def place_of(words: Words) -> tuple[str, str]:
    return words.origin.sender, words.origin.lane


def forgeries(monkeypatch: pytest.MonkeyPatch, seed: int, number: int) -> list[str]:
    """Whom evidence convicts that is put together at random of all that honest parties and west have signed.

    Of two sessions, in one of which west deals two things: words to several receivers, with any
    messages shown or withheld, as any accused's, of any session.
    """
    said: list[Words] = []

    def recorded(origin: Origin, *rest: Any) -> Words:
        said.append(words := Words(origin, *rest))
        return words

    monkeypatch.setattr(vouching, "Words", recorded)
    assert ATTACKED[4].attacked(["west"], CASES["two dealings"][1], seed).errors
    assert not ATTACKED[4].attacked(["west"], unaltered, seed + 1).errors
    chance, convicted = random.Random(seed), []
    alike = [pair for pair in itertools.permutations(said, 2) if place_of(pair[0]) == place_of(pair[1])]
    for _ in range(number):
        words = chance.choice(alike)[: chance.choice((1, 2, 2))]
        shown = chance.choice(((0,), (0,), (0,), (1,), (0, 1), (0, 2), (0, 1, 3), (0, 2, 3)))
        words = tuple(each.showing(*shown) for each in words)
        contents = as_json(Evidence(chance.choice(RULES), words))
        if chance.random() < 0.2:
            contents["session"] = chance.choice(said).origin.session.hex()
        if chance.random() < 0.2:
            contents["accused"] = chance.choice(ATTACKED[4].parties)
        convicted += [contents["accused"]] if holds(contents) else []
    return convicted


def test_what_is_put_together_of_all_words_convicts_no_honest_party(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(forgeries(monkeypatch, 5, 1_500)) == {"west"}


def test_nobody_else_can_sign_for_a_party() -> None:
    """Two that collude have the whole federation's certificates and all keys but one."""
    contents = json.loads(file_of("two dealings"))
    forger = AUTHORITY.issue("south")
    for certificate in (contents["words"][0]["certificate"], forger.certificate_pem.decode(), ""):
        for words in contents["words"]:
            words["certificate"] = certificate
        contents["accused"] = "east"
        assert not holds(contents)
    elsewhere = Authority.create().issue("north").certificate_pem.decode()
    contents = json.loads(file_of("two dealings"))
    contents["words"][0]["certificate"] = elsewhere
    assert not holds(contents)


def unaltered(frame: Frame) -> list[Frame]:
    return [frame]


def as_json(evidence: Evidence) -> Any:
    return json.loads(EvidenceDocument.of(evidence).model_dump_json(by_alias=True))


# -- what it reveals ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("case", CASES)
def test_evidence_shows_at_most_one_component_and_no_count(case: str) -> None:
    """Only of who deviated: with one of three components, which is uniform, nothing is known of a number."""
    for _, evidence, _ in convicting(ends_of(case)):
        components = []
        for words in evidence.words:
            assert words.origin.sender == CASES[case][0]
            for frame in words.frames:
                if isinstance(frame, Shown):
                    kind = frame.type.rpartition(".")[2]
                    assert kind in ("DealtCommitments", "DealtKey", "DealtBits")
                    components += [kind] if kind in ("DealtKey", "DealtBits") else []
        assert components in ([], ["DealtKey"], ["DealtKey", "DealtBits"])


def test_the_component_that_no_key_gives_is_shown_with_its_bits_alone() -> None:
    in_full, holder = 0, "north"
    assert in_full in HELD[holder]
    ends = ATTACKED[4].attacked(["west"], altering(DealtKey, lambda key: in_full_of(key, in_full), holder), 5)
    (evidence,) = ends.evidence[holder]
    document = EvidenceDocument.of(evidence)
    assert document.rule == "dealing"
    assert document.judged(TRUST)
    (words,) = evidence.words
    assert [isinstance(frame, Shown) for frame in words.frames] == [True, True, False, True]


def in_full_of(key: Any, component: int) -> None:
    if key.component == component:
        flip("key")(key)


def test_commitments_hide_bits() -> None:
    assert commitment_of(bytes(32), [b"\1"]) != commitment_of(bytes(31) + b"\1", [b"\1"])


# -- files -------------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("evidence")


def test_a_node_writes_what_convicts_and_anybody_checks_it(folder: Path) -> None:
    ends = ends_of("two dealings")
    kept = EvidenceFolder(folder / "kept", TRUST).keep(ends.evidence["south"])
    assert kept is not None
    (path,) = (folder / "kept").iterdir()
    assert (kept.accused, kept.rule, path.stem) == ("west", "equivocation", kept.job.hex())
    document = verification([], [], TRUST, [path])
    assert document.good
    assert document.evidence[0].convicts
    assert str(document.evidence[0]).startswith(f"{path}: convicts west, which said different things to ")


def test_what_does_not_hold_is_a_finding(folder: Path) -> None:
    path = folder / "altered.json"
    path.write_text(file_of("two dealings").replace('"equivocation"', '"dealing"'))
    document = verification([], [], TRUST, [path])
    assert not document.good
    assert not document.evidence[0].convicts
    assert "the evidence against west does not hold" in document.findings[0].what


def test_what_nobody_else_can_judge_is_not_written(folder: Path) -> None:
    wrong = altering(DealtCommitments, lambda message: setattr(message, "in_full", (message.in_full + 1) % 3))
    ends = ATTACKED[4].attacked(["west"], wrong, 5)
    assert ends.evidence["north"]
    assert EvidenceFolder(folder / "none", TRUST).keep(ends.evidence["north"]) is None
    assert not (folder / "none").exists()


@pytest.mark.parametrize("contents", ["", "{}", "[1]", '{"schema": "comine.evidence/2"}'])
def test_other_files_are_no_evidence(folder: Path, contents: str) -> None:
    (folder / "other.json").write_text(contents)
    with fails("E100"):
        read_evidence(folder / "other.json")
    with fails("E100"):
        read_evidence(folder / "missing.json")
