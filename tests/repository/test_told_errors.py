"""Errors that leave a party while a job has its rows: none but those that docs/what-errors-reveal.md lists."""

from __future__ import annotations

import ast
import re
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from link.core import abort_of, ended_by
from link.errors import (
    BY_CODE,
    ComineError,
    InputDataError,
    InternalError,
    JobCancelled,
    PolicyDenied,
    ResourceError,
    from_code,
    from_reporter,
    outward,
    placeless,
    shareable,
)
from protos.v1.link_pb2 import Abort

ROOT = Path(__file__).parents[2]
LAYERS = ("client", "comine", "coordinator", "crypto", "jobs", "ldp", "link", "mining", "party", "relay", "anonymize")
FIXED = {
    "E101": "south cannot take part in this job with its data; the log of south has the reason",
    "E103": "south lacks disk space or memory for this job; the log of south has the reason",
    "E700": "south met a fault of its own; the log of south has the details",
}
ACCUSING = {"E400", "E401", "E402", "E403"}
VIOLATIONS = ACCUSING | {"E404"}
ABOUT_OTHERS = {"E102", "E200", "E201", "E301", "E500", "E501", "E600"} | VIOLATIONS


def marked() -> set[tuple[str, str]]:
    """Every module and function that marks an error as shareable."""
    found = set()
    for layer in LAYERS:
        for path in (ROOT / layer).rglob("*.py"):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            if module == "link.errors":
                continue
            text = path.read_text()
            if "shareable" not in text:
                continue
            places = [
                node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            ]
            for node in ast.walk(ast.parse(text)):
                named = isinstance(node, ast.Name) and node.id == "shareable"
                if named or (isinstance(node, ast.Attribute) and node.attr == "shareable"):
                    within = [f for f in places if f.lineno <= node.lineno <= (f.end_lineno or 0)]
                    found.add((module, max(within, key=lambda f: f.lineno).name))
    return found


def test_every_error_that_is_told_is_listed_with_what_it_follows_from() -> None:
    page = (ROOT / "docs/what-errors-reveal.md").read_text().partition("## Messages that leave a party")[2]
    listed = re.findall(r"^\| `([\w.]+)` \| `(\w+)` \| .+ \|$", page, re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == marked()


@pytest.mark.parametrize("code", sorted(BY_CODE))
def test_of_every_class_of_errors_only_what_is_about_others_leaves_as_it_is(code: str) -> None:
    error = BY_CODE[code]("37 rows of south hold the item 'hiv'", party="south")
    told = outward(error, "south")
    if code in ABOUT_OTHERS:
        assert told is error
    else:
        assert "hiv" not in told.message
        assert (told.party, told.message) == ("south", FIXED[told.code])


def test_a_class_that_is_new_is_told_to_nobody() -> None:
    class Novel(InputDataError):
        """A class that nobody has thought about."""

    class Other(ComineError):
        """Another, of no family."""

    for kind in (Novel, Other):
        assert outward(kind("a value of south"), "south").message == FIXED["E101"]


def test_what_is_marked_or_came_from_a_peer_is_told_as_it_is() -> None:
    joint = shareable(PolicyDenied("the count is below the floor", party="south"))
    assert outward(joint, "south") is joint
    came = from_code("E101", "north cannot take part in this job with its data", party="north")
    assert outward(came, "south") is came


def test_what_is_told_keeps_the_exit_code_of_its_family() -> None:
    for error in (ResourceError("x"), InternalError("x"), InputDataError("x")):
        assert outward(error, "south").exit_code == error.exit_code


PLACES = ("/home/anna/baskets.txt", "~/x", r"C:\data\x", "c:/data/x", r"\\host\share\x", "/x", "/srv/Anna B/x.csv")
URLS = ("sqlite:////srv/shop.db", "postgres://anna@db.north.example/shop", "file:///etc/x", "duckdb:///x")
SENTENCES = ("{} is missing", "cannot read '{}'; check it", "of ({})", "north: {}: no text", 'a "{}"', "path={}")


@pytest.mark.parametrize("code", sorted(BY_CODE.keys() - {"E500", "E501"}))
def test_no_sentence_leaves_a_node_that_names_a_place_on_its_machine(code: str) -> None:
    """Whether a class is about others, or the sentence is marked as shareable: a place is told to nobody."""
    for place, words in product(PLACES + URLS, SENTENCES):
        for error in (BY_CODE[code](words.format(place), party="south"), shareable(BY_CODE[code](words.format(place)))):
            told = placeless(error, "south")
            assert told.exit_code == error.exit_code
            assert place not in told.message
            assert place not in outward(error, "south").message


@given(
    st.from_regex(r"(/[A-Za-z0-9._é-][A-Za-z0-9 ._é-]{0,8}){1,4}", fullmatch=True),
    st.sampled_from(["", "in ", "'", "x: ", "(", "="]),
)
def test_any_absolute_path_is_seen(path: str, before: str) -> None:
    assert path not in placeless(InputDataError(f"{before}{path} cannot be read"), "south").message


@pytest.mark.parametrize(
    "sentence",
    [
        "south has 3 open jobs of hub; propose the job later",
        "[itemsets] min_support: 1/3 is no decimal; give a number such as 0.05, or HOST:PORT, and/or more",
        "the query lacks where, or the end at character 13",
        "a batch of 4 MiB/s",
        "a certificate must name its holder as comine://ROLE/NAME; issue it with comine pki",
    ],
)
def test_other_sentences_are_told_as_they_are(sentence: str) -> None:
    assert placeless(PolicyDenied(sentence, party="south"), "south").message == sentence


def test_a_name_in_a_certificate_hides_no_place() -> None:
    for sentence in ("comine:///srv/x is missing", "comine://party/north of /srv/x", "sqlite:comine:////srv/x"):
        assert "/srv" not in placeless(InputDataError(sentence), "south").message


def test_why_somebody_cancelled_a_job_is_told_in_their_words() -> None:
    for place in PLACES + URLS:
        cancelled = JobCancelled(f"the job was cancelled at north: see {place}", party="north")
        assert placeless(cancelled, "south") is cancelled
        assert outward(cancelled, "south") is cancelled


def test_sentences_leave_a_node_through_few_doors() -> None:
    """Each place that hands an error's own words to gRPC asks `placeless`, or gets them from `outward`."""
    doors = set()
    for layer in ("party", "link"):
        for path in (ROOT / layer).rglob("*.py"):
            for line in path.read_text().splitlines():
                if "context.abort(" in line and ".message" in line:
                    doors.add((path.name, "placeless(" in line))
    assert doors == {("grpc_transport.py", True), ("interceptors.py", False)}
    assert "error = placeless(error, self.me)" in (ROOT / "party/node/interceptors.py").read_text()


# -- errors of nobody --------------------------------------------------------------------------------------------------
NOBODYS = {"E100", "E101", "E104"}  # classes of what may be wrong for all parties alike
PARTIES = ("north", "south", "east")


@pytest.mark.parametrize("code", sorted(BY_CODE))
def test_what_all_parties_meet_alike_has_no_party_wherever_it_is_told(code: str) -> None:
    """Who says first that somebody is over a limit tells nothing, and does not seem to be the one."""
    joint = shareable(BY_CODE[code]("some party, and nobody learns which, has more"))
    for told in (joint.at("north"), placeless(joint, "north"), outward(joint, "north")):
        assert (told.message, told.party, told.blamed("north")) == (joint.message, None, "")
    own = BY_CODE[code]("37 rows")
    assert own.at("north").message == "north: 37 rows"
    assert own.blamed("north") == ("" if code in ACCUSING else "north")
    assert own.at("north").party == (None if code in ACCUSING else "north")


@pytest.mark.parametrize("code", sorted(BY_CODE))
def test_only_what_can_be_nobodys_is_taken_for_it(code: str) -> None:
    """A peer that ends a job without a party's name ends it in its own, unless the error can be of that kind."""
    came = ended_by("south", "north", ("north", "south", "east"), Abort(code=code, message="x").SerializeToString())
    assert came.party == (None if code in NOBODYS | VIOLATIONS else "south")
    assert from_reporter(code, "x", "", "south").party == came.party
    assert from_reporter(code, "x", "east", "south").party == "east"


@pytest.mark.parametrize("code", ["", "E999", "e402"])
def test_an_error_without_a_known_code_is_its_reporters(code: str) -> None:
    came = from_reporter(code, "x", "east", "south")
    assert (came.code, came.party) == ("E402", "south")
    assert "south" in came.message


def test_an_error_without_a_sentence_gets_one() -> None:
    assert from_reporter("E300", "", "", "south").message == "south gives no reason"


@pytest.mark.parametrize("code", sorted(BY_CODE))
def test_no_peer_can_say_that_a_partys_own_data_ended_a_job(code: str) -> None:
    """Such ends count against the coordinator: a peer that invents them would use up what it may ask."""
    body = Abort(code=code, message="north cannot take part", party="north").SerializeToString()
    came = ended_by("south", "north", PARTIES, body)
    about_time = code == "E600"  # it keeps others waiting, or they say so
    assert came.party == (None if code in VIOLATIONS or about_time else "north" if code in ABOUT_OTHERS else "south")
    elsewhere = ended_by("south", "east", PARTIES, body)
    assert elsewhere.party == (None if code in VIOLATIONS else "north" if code in ABOUT_OTHERS else "south")
    assert came.message == elsewhere.message == "south says: north cannot take part"


@pytest.mark.parametrize("code", sorted(BY_CODE))
def test_who_passes_a_lie_on_is_not_taken_for_the_liar(code: str) -> None:
    """The word of a third may be here before the liar's own, and says whose word that is."""
    lie = Abort(code=code, message="north cannot take part", party="north").SerializeToString()
    heard = ended_by("east", "south", PARTIES, lie)
    named = None if code in VIOLATIONS | {"E600"} else "north" if code in ABOUT_OTHERS else "east"
    for told in (heard, placeless(heard, "south"), outward(heard, "south")):
        came = ended_by("south", "north", PARTIES, abort_of(told, "south").SerializeToString())
        assert (came.party, came.reporter) == (named, "south")
        assert came.blamed("north") == (named or "")
        assert came.message == "south says: east says: north cannot take part"


@pytest.mark.parametrize("code", sorted(BY_CODE))
def test_who_is_said_to_have_passed_on_what_nobody_said_names_nobody(code: str) -> None:
    """A liar may claim to have it from another."""
    lie = Abort(code=code, message="north cannot take part", party="north", relayed=True).SerializeToString()
    came = ended_by("south", "north", PARTIES, lie)
    assert came.party == ("north" if code in ABOUT_OTHERS - VIOLATIONS - {"E600"} else None)
    assert came.message == "south says: north cannot take part"


@pytest.mark.parametrize("code", sorted(BY_CODE))
def test_a_sentence_that_names_another_is_its_reporters_word_whatever_its_code_and_party(code: str) -> None:
    for party in ("", "elsewhere"):
        lie = Abort(code=code, message="the shares of NORTH are forged", party=party).SerializeToString()
        came = ended_by("south", "east", PARTIES, lie)
        assert came.party in (None, "south")
        assert came.party or came.message == "south says: the shares of NORTH are forged"
    for words in ("south: north is at fault", "north and south contradict each other", "south has seen north"):
        assert ended_by("south", "east", PARTIES, Abort(code=code, message=words).SerializeToString()).message == words
