"""A mechanism that another package brings: it keeps the contract of all, and is collected by like any other."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coordinator.frequency.simulation import Request, simulate
from coordinator.frequency.values import Collection
from crypto.primitives.randomness import Randomness
from jobs.collections.mechanism import mechanism_of_round
from jobs.collections.spec import CollectionSpec
from ldp.documents import document, mechanism_of
from ldp.domain import Domain
from ldp.frequency_oracle import FrequencyOracle
from ldp.registry import ORACLES, oracle, oracle_names, settable
from link.errors import ConfigurationError
from party.services.frequency.policy import FrequencySection, check_creation, read_spec
from tests.brought import bring
from tests.errors import fails
from tests.ldp.contract import check_estimates, check_privacy, check_reports, check_sampler

pytestmark = pytest.mark.turn(3)

FLIP = '''
"""Randomised response on a coarse grid: each other value has a whole share of the words, the true one the rest."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ldp.blanket import Blanket
from ldp.budget import exp_below, log_above
from ldp.frequency_oracle import PureOracle
from ldp.reports import Field


class Flip(PureOracle):
    name = "flip"

    def __init__(self, domain, epsilon, bits: int = 24):
        super().__init__(domain, epsilon)
        self.bits = bits
        words, d = 1 << bits, self.domain.size
        self.other = int(-(-words // (exp_below(self.epsilon) + d - 1)))
        self.p, self.q = Fraction(words - (d - 1) * self.other, words), Fraction(self.other, words)

    @property
    def exact_epsilon(self):
        return log_above(self.p / self.q)

    @property
    def layout(self):
        return (Field("uint16"),)

    def _perturb(self, values, rng):
        codes = self.domain.codes(values)
        words = (rng.uint64(len(codes)) >> np.uint64(64 - self.bits)).astype(np.int64)
        moved = words // self.other + 1
        return (np.where(moved < self.domain.size, (codes + moved) % self.domain.size, codes),)

    def _valid(self, reports):
        return bool(np.all(reports.fields[0] < self.domain.size))

    def tally(self, reports):
        return np.bincount(reports.fields[0], minlength=self.domain.size).astype(np.int64)

    def channel(self):
        size = range(self.domain.size)
        return [[self.p if y == x else self.q for y in size] for x in size]

    def outcomes(self, reports):
        return reports.fields[0].astype(np.int64)

    def supports(self, reports, values):
        return np.equal(reports.fields[0][:, None], values)

    def blanket(self):
        return Blanket.between(self.domain.size * self.q, self.domain.size * self.p)
'''
GROUP = "comine.mechanisms"


@pytest.fixture
def _flip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    bring(tmp_path, monkeypatch, "flipping", FLIP, {GROUP: {"flip": "flipping:Flip"}})
    yield
    sys.modules.pop("flipping", None)


@pytest.mark.usefixtures("_flip")
def test_it_keeps_the_contract_of_all() -> None:
    for epsilon in (0.5, 1.0, 3.0):
        check_privacy(oracle("flip", 4, epsilon), tight=1e-4)
        check_sampler(oracle("flip", 4, epsilon), 4, Randomness.from_seed(1))
    counts = np.array([700, 0, 150, 90, 30, 20, 10])
    check_estimates(oracle("flip", len(counts), 1.0), counts, Randomness.from_seed(3))
    for d in (2, 7, 300):
        check_reports(oracle("flip", d, 1.0), np.arange(500) % d, Randomness.from_seed(d))


@pytest.mark.usefixtures("_flip")
def test_its_document_is_read_where_the_package_is() -> None:
    found = oracle("flip", ["a", "b", "c"], 1.0, bits=20)
    again = mechanism_of(document(found), Domain.of(["a", "b", "c"]))
    assert again.fingerprint == found.fingerprint
    assert again.get_params() == found.get_params()


def test_its_document_is_refused_where_the_package_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        bring(tmp_path, patch, "flipping", FLIP, {GROUP: {"flip": "flipping:Flip"}})
        written = document(oracle("flip", 3, 1.0))
    with fails("E101"):
        mechanism_of(written)


@pytest.mark.usefixtures("_flip")
def test_a_simulated_collection_takes_it() -> None:
    counts = np.array([400, 250, 200, 100, 50])
    data = Collection(Domain.of(list("abcde")), np.repeat(np.arange(5), counts), public=True)
    outcome = simulate(Request(("flip", "grr"), 2.0, seed=1), data).outcomes[0]
    assert outcome.oracle.name == "flip"
    z = (outcome.estimate.counts - counts) / outcome.deviations
    assert np.abs(z).max() < 6  # five normal values: 1e-8


@pytest.mark.usefixtures("_flip")
def test_a_node_collects_by_it() -> None:
    spec = CollectionSpec.model_validate(collection("flip"))
    found = mechanism_of_round(spec, Domain(5))
    assert (found.name, found.get_params()["bits"]) == ("flip", 20)
    check_creation(FrequencySection.model_validate(policy("flip")), spec, "hub", "north", running=0)
    unnamed = FrequencySection.model_validate({"max_epsilon": Decimal(1)})
    with fails("E300"):
        check_creation(unnamed, spec, "hub", "north", running=0)


def test_a_mechanism_that_no_policy_names_is_not_even_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its parameters are the coordinator's choice, and what it does with them its author's."""
    with monkeypatch.context() as patch:
        bring(tmp_path, patch, "flipping", FLIP, {GROUP: {"flip": "flipping:Flip"}})
        data = CollectionSpec.model_validate(collection("flip")).canonical()
        sys.modules.pop("flipping")
        for rules in ({"max_epsilon": Decimal(1)}, policy("grr")):
            with fails("E300"):
                read_spec(FrequencySection.model_validate(rules), data, "north")
        assert "flipping" not in sys.modules
        assert read_spec(FrequencySection.model_validate(policy("flip")), data, "north").collection.mechanism == "flip"
        sys.modules.pop("flipping")
    rules = {"max_epsilon": Decimal(1)}
    for wrong in (
        b"",
        b"[]",
        b"{",
        b'{"collection": 1}',
        b'{"collection": {"mechanism": ["flip"]}}',
        b"\xff",
        b"[" * 99_999,
    ):
        with pytest.raises(ConfigurationError):
            read_spec(FrequencySection.model_validate(rules), wrong, "north")


@pytest.mark.parametrize("spent", [1.001, 40.0, float("inf"), float("nan")])
def test_a_node_bounds_what_its_reports_spend_and_not_only_what_is_asked(
    spent: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parameters are the coordinator's choice, and a mechanism may spend more than its ε with some of them."""
    loud = FLIP.replace("return log_above(self.p / self.q)", f"return float('{spent}') if self.bits == 20 else 0.5")
    bring(tmp_path, monkeypatch, "flipping", loud, {GROUP: {"flip": "flipping:Flip"}})
    spec, rules = CollectionSpec.model_validate(collection("flip")), FrequencySection.model_validate(policy("flip"))
    with fails("E300"):
        check_creation(rules, spec, "hub", "north", running=0)
    quiet = spec.model_copy(update={"collection": spec.collection.model_copy(update={"parameters": {"bits": 19}})})
    check_creation(rules, quiet, "hub", "north", running=0)


@pytest.mark.parametrize("base", ["LongitudinalDirectEncoding", "LongitudinalUnaryEncoding"])
def test_none_that_keeps_answers_is_brought(base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All reports of a value together spend its ε∞, which rules on ε of a report know of comine's own alone."""
    source = f"from ldp.longitudinal.two_rounds import {base}\nclass Kept({base}): name = 'kept'\n"
    bring(tmp_path, monkeypatch, "keeping", source, {GROUP: {"kept": "keeping:Kept"}})
    with fails("E100"):
        oracle("kept", 5, 1.0, permanent_epsilon=9.0)


def collection(name: str) -> dict[str, Any]:
    table = {"name": "c", "mechanism": name, "epsilon": Decimal(1), "size": 5, "parameters": {"bits": 20}}
    return {"collection": table}


def policy(name: str) -> dict[str, Any]:
    return {"max_epsilon": Decimal(1), "mechanisms": [name]}


def test_without_the_package_it_is_refused_everywhere() -> None:
    assert "flip" not in oracle_names()
    with fails("E100"):
        oracle("flip", 3, 1.0)
    with pytest.raises(ValueError, match="there is no mechanism 'flip' to collect by"):
        CollectionSpec.model_validate(collection("flip"))
    with pytest.raises(ValueError, match="there is no mechanism 'flip'; there are auto, grr"):
        FrequencySection.model_validate(policy("flip"))


@pytest.mark.usefixtures("_flip")
def test_it_is_loaded_when_it_is_asked_for() -> None:
    assert oracle_names() == (*ORACLES, "flip")
    oracle("grr", 3, 1.0)
    assert "flipping" not in sys.modules
    assert settable("flip") == {"bits": int}
    assert "flipping" in sys.modules
    with fails("E100"):
        oracle("flip", 3, 1.0, salt=1)
    with fails("E100"):
        oracle("flip", 3, 1.0, bits=1.5)


def test_no_package_replaces_a_mechanism_of_comine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("grr", "rappor", "sampled", "auto", "prefix-extending", "../up", "a b")
    bring(tmp_path, monkeypatch, "flipping", FLIP, {GROUP: dict.fromkeys(names, "flipping:Flip")})
    assert oracle_names() == ORACLES
    assert type(oracle("grr", 3, 1.0)).__module__ == "ldp.oracles.direct_encoding"
    assert type(mechanism_of(document(oracle("grr", 3, 1.0)))).__module__ == "ldp.oracles.direct_encoding"
    for name in names[1:]:
        if name != "auto":
            with fails("E100"):
                oracle(name, 3, 1.0)
    assert "flipping" not in sys.modules


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            "import nothing_of_this_name",
            "cannot be imported (ModuleNotFoundError); see why with: python -c 'import broken'",
        ),
        ("1 / 0", "cannot be imported (ZeroDivisionError); see why with: python -c 'import broken'"),
        ("", "names 'Flip', which its module broken does not have"),
        ("class Flip: name = 'flip'", "is no FrequencyOracle"),
        ("from ldp.oracles.direct_encoding import DirectEncoding as Flip", "has a class of another name"),
        (
            "from ldp.frequency_oracle import PureOracle\nclass Flip(PureOracle): name = 'flip'",
            "lacks _perturb, blanket, exact_epsilon, layout, tally",
        ),
    ],
)
def test_a_broken_package_is_named_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, words: str
) -> None:
    bring(tmp_path, monkeypatch, "broken", source, {GROUP: {"flip": "broken:Flip"}})
    expected = f"the plug-in 'flip' of the distribution 'broken' {words}"
    with pytest.raises(ConfigurationError) as caught:
        oracle("flip", 3, 1.0)
    assert caught.value.message == expected
    told = json.dumps({"mechanism": "flip", "parameters": {"epsilon": 1}})
    with fails("E101"):
        mechanism_of(told.encode())
    assert isinstance(oracle("grr", 3, 1.0), FrequencyOracle)  # nothing else is touched
