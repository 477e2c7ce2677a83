"""A mechanism comes out of its document as it went in."""

from fractions import Fraction
from typing import Any

import pytest

from ldp.blending.two_stages import TwoStageEncoding
from ldp.documents import document, mechanism_of
from ldp.domain import Domain
from ldp.heavy_hitters.bit_strings import Integers, Texts
from ldp.heavy_hitters.fragment_puzzle import SequenceFragmentPuzzle
from ldp.heavy_hitters.prefix_extending import PrefixExtending
from ldp.longitudinal.bit_flip import BitFlip
from ldp.longitudinal.one_bit_mean import OneBitMean
from ldp.mechanism import Mechanism
from ldp.rappor.mechanism import Rappor
from ldp.registry import COLLECTED, ORACLES, oracle
from ldp.sets.padding import PaddingAndSampling
from ldp.sets.privset import PrivSet
from ldp.sets.size_histogram import SetSizes
from ldp.sets.wheel import Wheel
from ldp.streams.sampled import Sampled
from link.errors import InputDataError

LABELS = Domain(4, ["north", "south", "east", "west"])
OTHERS: list[Mechanism[Any]] = [
    BitFlip(LABELS, 1.5, sampled=3),
    OneBitMean(1.0, low=-3.5, high=12, intervals=4),
    Rappor.for_budget(1.0, 2.0),
    Rappor(0.75, 0.5, 0.75, bits=32, google=True),
    SequenceFragmentPuzzle(Texts(6), 4.0, 5),
    PrefixExtending(Texts(20), 2.0, 8).oracle(0),
    PrefixExtending(Integers(40), 2.0, 8, groups=4).oracle(2, (3, 70, 1 << 20)),
    PaddingAndSampling(LABELS, 1.0, 3, ((0,), (0, 2), (1, 2, 3))),
    PaddingAndSampling(Domain(40), 2.0, 1, oracle="grr"),
    SetSizes(Domain(40), 0.5, ((3,), (7,))),
    PrivSet(LABELS, 1.5, 2),
    Wheel(Domain(40), 2.0, 5, criterion="published"),
    TwoStageEncoding(Domain(7), 3.0, (4, 2, 1)),
    Sampled.for_budget("olh", LABELS, 1.0, Fraction(3, 8)),
]


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("domain", [Domain(6), LABELS])
def test_every_oracle_comes_back(name: str, domain: Domain) -> None:
    comes_back(oracle(name, domain, 1.25), domain)


@pytest.mark.parametrize("mechanism", OTHERS, ids=lambda mechanism: mechanism.name)
def test_every_other_mechanism_comes_back(mechanism: Mechanism[Any]) -> None:
    comes_back(mechanism, LABELS)


def comes_back(mechanism: Mechanism[Any], domain: Domain) -> None:
    found = mechanism_of(document(mechanism), domain)
    assert (type(found), plain_params(found)) == (type(mechanism), plain_params(mechanism))
    assert found.fingerprint == mechanism.fingerprint
    assert document(found) == document(mechanism)


def plain_params(mechanism: Mechanism[Any]) -> dict[str, Any]:
    found = mechanism.get_params()
    return {name: each.fingerprint if isinstance(each, Mechanism) else each for name, each in found.items()}


def test_all_mechanisms_are_tried() -> None:
    assert {each.name for each in OTHERS} | set(ORACLES) == set(COLLECTED)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"mechanism":"olh"}',
        b'{"mechanism":"nothing","parameters":{}}',
        b'{"mechanism":"olh","parameters":{"domain":{"domain":4,"labelled":true},"epsilon":1}}',
        b'{"mechanism":"olh","parameters":{"domain":{"domain":1,"labelled":false},"epsilon":1}}',
        b'{"mechanism":"olh","parameters":{"domain":{"domain":4,"labelled":false},"epsilon":-1}}',
        b'{"mechanism":"olh","parameters":{"domain":{"domain":4,"labelled":false},"epsilon":1,"surprise":2}}',
        b'{"mechanism":"rappor","parameters":{"f":{"fraction":"1/0"}}}',
        b'{"mechanism":"rappor","parameters":{"f":{"fraction":"1e-999999999"}}}',
        b'{"mechanism":"cms","parameters":{"domain":{"domain":4,"labelled":false},"epsilon":1,"functions":1e999}}',
        b"[" * 100_000,
    ],
)
def test_a_wrong_document_is_refused(data: bytes) -> None:
    with pytest.raises(InputDataError):
        mechanism_of(data)
