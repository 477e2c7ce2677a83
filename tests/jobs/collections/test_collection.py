"""collection.toml: what it may say, what is wrong with it in one sentence, and its form on the wire."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.collections.mechanism import mechanism_of_round, search_of, stream_of
from jobs.collections.spec import CollectionSpec, digest_of, labels_of, texts_of
from jobs.collections.tables import MECHANISMS, OPEN_DOMAINS
from jobs.spec.toml import validate
from ldp.domain import Domain
from ldp.longitudinal.bit_flip import BitFlip
from ldp.rappor.mechanism import Rappor
from ldp.streams.methods import METHODS
from link.errors import ConfigurationError
from tests.errors import fails

WHOLE = """
[collection]
name = "homepages"
mechanism = "dbitflip"
epsilon = 1.50
domain = "homepages.txt"
node = "north"
[collection.parameters]
sampled = 2
[window]
length = "1d"
grace = "1h"
start = 2026-01-31T00:00:00+01:00
retention = "90d"
[access]
submit = ["phone"]
gateways = { fleet = 1000000 }
read = ["analyst"]
"""


def load(folder: Path, text: str, domain: bytes = b"a\nb b\nc\n") -> tuple[CollectionSpec, bytes]:
    """A collection's file, beside the file of its domain."""
    (folder / "homepages.txt").write_bytes(domain)
    (folder / "collection.toml").write_text(text)
    return CollectionSpec.load(folder / "collection.toml")


def made(**tables: Any) -> CollectionSpec:
    """A collection over eight numbers, but for what is given."""
    section = {"name": "x", "mechanism": "olh", "epsilon": Decimal(1), "size": 8, **tables.pop("collection", {})}
    section = {name: value for name, value in section.items() if value is not None}
    return validate(CollectionSpec, {"collection": section, **tables}, "collection.toml")


@given(st.decimals(Decimal("0.002"), 15, places=4), st.sampled_from(["grr", "prefix-extending", "rappor", "lbu"]))
def test_no_round_spends_more_than_the_decimal_that_was_asked_for(epsilon: Decimal, name: str) -> None:
    open_text = {"size": None, "mechanism": name, "text_bytes": 4, "k": 3}
    sections: dict[str, dict[str, Any]] = {
        "grr": {},
        "prefix-extending": {"collection": open_text, "window": {"length": "1h"}},
        "rappor": {"collection": {"size": None, "mechanism": name}},
        "lbu": {"window": {"length": "1h"}, "continual": {"method": "lbu", "w": 1}},
    }
    tables = sections[name]
    spec = made(**{**tables, "collection": {"epsilon": epsilon, "mechanism": "grr", **tables.get("collection", {})}})
    domain = None if spec.collection.size is None else Domain(8)
    found = mechanism_of_round(spec, domain)
    assert Fraction(found.epsilon) <= Fraction(epsilon)
    assert found.epsilon == pytest.approx(float(epsilon), rel=1e-9)


def test_a_label_that_comes_twice_is_named_with_its_lines(tmp_path: Path) -> None:
    text = '[collection]\nname = "x"\nepsilon = 1.0\ndomain = "homepages.txt"\n'
    with fails("E100"):
        load(tmp_path, text, b"a\nb b\nc\nb b\na\n")


def test_estimates_are_kept_for_a_window_at_least() -> None:
    assert made(window={"length": "1h", "retention": "1h"}).window is not None
    with fails("E100"):
        made(window={"length": "1h", "retention": "59m"})


def test_a_whole_file_is_read_and_crosses_the_wire(tmp_path: Path) -> None:
    spec, labels = load(tmp_path, WHOLE)
    assert labels == b"a\nb b\nc\n"
    assert spec.collection.domain is None
    assert (spec.collection.size, spec.collection.labelled, spec.name) == (3, True, "homepages")
    assert spec.window is not None
    assert (spec.window.length_s, spec.window.grace_s, spec.window.retention_s) == (86_400, 3600, 90 * 86_400)
    assert spec.window.start == dt.datetime(2026, 1, 30, 23, tzinfo=dt.UTC)
    mechanism = mechanism_of_round(spec, spec.domain(labels))
    assert isinstance(mechanism, BitFlip)
    assert (mechanism.sampled, mechanism.epsilon, mechanism.domain.labels) == (2, 1.5, ("a", "b b", "c"))
    again = CollectionSpec.from_canonical(spec.canonical())
    assert again == spec
    assert again.canonical() == spec.canonical()
    assert b"a\\n" not in spec.canonical()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_can_be_collected_by(mechanism: str) -> None:
    section: dict[str, Any] = {"mechanism": mechanism, "epsilon": Decimal(2)}
    tables: dict[str, Any] = {}
    if mechanism in OPEN_DOMAINS:
        section |= {"size": None, "text_bytes": 4, "k": 3}
        tables = {"window": {"length": "1h"}}
    elif mechanism in ("1bit-mean", "rappor"):
        section["size"] = None
    spec = made(collection=section, **tables)
    assert CollectionSpec.from_canonical(spec.canonical()) == spec
    found = mechanism_of_round(spec, spec.domain(b""))
    assert found.epsilon <= 2
    if mechanism not in (*OPEN_DOMAINS, "auto", "rappor"):
        assert (found.name, found.epsilon) == (mechanism, 2)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_of_continual_release(method: str) -> None:
    spec = made(window={"length": "1h"}, continual={"method": method, "w": 5})
    assert CollectionSpec.from_canonical(spec.canonical()) == spec
    assert stream_of(spec, Domain(8)).name == method
    assert mechanism_of_round(spec, Domain(8)).name == "olh"


def test_parameters_reach_the_mechanism() -> None:
    spec = made(
        collection={
            "mechanism": "rappor",
            "size": None,
            "parameters": {"permanent_epsilon": Decimal("3.5"), "bits": 32},
        }
    )
    mechanism = mechanism_of_round(CollectionSpec.from_canonical(spec.canonical()), None)
    assert isinstance(mechanism, Rappor)
    assert mechanism.bits == 32
    assert 3.4 < mechanism.permanent_epsilon <= 3.5
    spec = made(
        collection={
            "mechanism": "prefix-extending",
            "size": None,
            "integer_bits": 16,
            "k": 4,
            "parameters": {"groups": 3, "keep": 8},
        },
        window={"length": "1h"},
    )
    assert (search_of(spec).groups, search_of(spec).keep) == (3, 8)


@pytest.mark.parametrize(
    "tables",
    [
        {"collection": {"mechanism": "magic"}},
        {"collection": {"epsilon": 0}},
        {"collection": {"epsilon": Decimal(17)}},
        {"collection": {"size": None}},
        {"collection": {"domain": "a.txt"}},
        {"collection": {"name": "two words"}},
        {"collection": {"k": 4}},
        {"collection": {"mechanism": "sfp", "text_bytes": 4, "k": 3}},
        {"collection": {"mechanism": "sfp", "size": None, "k": 3}},
        {"collection": {"mechanism": "sfp", "size": None, "text_bytes": 3}},
        {"collection": {"mechanism": "1bit-mean"}},
        {"collection": {"parameters": {"g": 3}}},
        {"collection": {"mechanism": "dbitflip", "parameters": {"sampled": Decimal("2.5")}}},
        {"collection": {"mechanism": "dbitflip", "parameters": {"sampled": 9}}},
        {"collection": {"mechanism": "oue", "size": 1 << 24}},
        {"collection": {"mechanism": "hcms", "parameters": {"functions": 1 << 13, "buckets": 1 << 13}}},
        {"window": {"length": "1 day"}},
        {"window": {"length": "1h", "grace": "8h"}},
        {"window": {"length": "1h", "start": dt.datetime(2026, 1, 1)}},
        {"continual": {"method": "lpa", "w": 3}},
        {"window": {"length": "1h", "grace": "1m"}, "continual": {"method": "lpa", "w": 3}},
        {"collection": {"mechanism": "l-grr"}, "window": {"length": "1h"}, "continual": {"method": "lpa", "w": 3}},
        {"window": {"length": "1h"}, "continual": {"method": "lbu", "w": 10_000}},
        {"collection": {"mechanism": "prefix-extending", "size": None, "text_bytes": 4, "k": 3}},
        {"access": {"submit": []}},
        {"access": {"gateways": {"fleet": 0}}},
        {"surprise": {}},
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(tables: dict[str, Any]) -> None:
    with fails("E100"):
        made(**tables)


@pytest.mark.parametrize(
    "domain",
    [
        b"",
        b"a\n",
        b"a\n\nb\n",
        b"a\nb\na\n",
        b"a\n\xff\n",
        b"a\n" + b"x" * 5000 + b"\n",
        b"x" * (65 << 20),
    ],
)
def test_a_wrong_domain_is_refused(tmp_path: Path, domain: bytes) -> None:
    with fails("E100") as caught:
        load(tmp_path, WHOLE, domain)
    assert "homepages.txt" in caught.value.message


def test_a_missing_domain_is_named(tmp_path: Path) -> None:
    with fails("E100"):
        load(tmp_path, WHOLE.replace("homepages.txt", "elsewhere.txt"))


@given(
    texts=st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), min_size=1), unique=True)
)
def test_labels_come_back(texts: list[str]) -> None:
    data = labels_of(texts)
    assert texts_of(data) == texts
    assert len(digest_of(data)) == (32 if texts else 0)


def test_lines_may_end_as_on_other_systems(tmp_path: Path) -> None:
    assert load(tmp_path, WHOLE, b"\xef\xbb\xbfa\r\nb\r\nc")[1] == b"a\nb\nc\n"


def test_only_the_canonical_form_crosses_the_wire() -> None:
    data = made().canonical()
    content = json.loads(data)
    for wrong in (
        json.dumps(content, indent=1).encode(),
        data.replace(b'"1"', b"1"),
        json.dumps({**content, "collection": {**content["collection"], "domain": "/etc/passwd"}}).encode(),
        b"[" * 5000,
        b"\xff",
        b"x" * ((1 << 20) + 1),
    ):
        with pytest.raises(ConfigurationError):
            CollectionSpec.from_canonical(wrong)


def test_labels_must_be_those_of_the_specification() -> None:
    labelled = made(collection={"size": 2, "labelled": True})
    assert labelled.domain(b"a\nb\n") == Domain(2, ["a", "b"])
    with fails("E100"):
        labelled.domain(b"a\n")
    with fails("E100"):
        labelled.domain(b"a\nb")
    with fails("E100"):
        made().domain(b"a\n")
