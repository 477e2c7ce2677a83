"""Parameters of other types than expected: taken if they mean the same, or refused with a sentence."""

from __future__ import annotations

import inspect
import math
import pkgutil
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import ldp
from ldp.arithmetic.hashing import HashFamily
from ldp.blending.blender import Blender
from ldp.context.idue_sets import InputDiscriminativeSets
from ldp.domain import Domain
from ldp.heavy_hitters.bit_strings import Integers, Texts
from ldp.heavy_hitters.prefix_extending import PrefixExtending
from ldp.heavy_hitters.vector_hashing import VectorHashFamily
from ldp.mechanism import Mechanism
from ldp.numeric.duchi import Duchi
from ldp.numeric.duchi_vector import DuchiVector
from ldp.numeric.hybrid import Hybrid
from ldp.numeric.laplace import DiscreteLaplace
from ldp.numeric.piecewise import Piecewise
from ldp.numeric.square_wave import SquareWave
from ldp.numeric.vectors import SampledVector
from ldp.rappor.encoding import BloomFilters
from ldp.rappor.mechanism import Rappor
from ldp.registry import ORACLES, oracle
from ldp.sets.ldp_miner import LDPMiner
from ldp.sets.svim import ItemMining
from ldp.sets.svsm import ItemsetMining
from ldp.streams.methods import METHODS, stream_method
from link.errors import ConfigurationError
from tests.errors import fails
from tests.ldp.test_documents import OTHERS

OUTCOMES_AND_PARTS = {
    *("AbnormalItemset", "Audit", "Baskets", "Batch", "BloomCounts", "Candidate", "Collected", "Decoded", "Descent"),
    *(
        "DistributionEstimate",
        "Dyadic",
        "Effort",
        "Estimate",
        "ExactChoice",
        "Field",
        "FineGeometric",
        "ItemsetSupport",
    ),
    *("LazyUniform", "LinearModel", "MeanEstimate", "Node", "Phase", "RandomFunctions", "RapporClient"),
    *("Reconstruction", "RecordsEstimate", "Release", "Route", "SetEstimate", "SharedNoise", "VectorEstimate"),
    *("UserLedgers", "WindowLedger", "Windows"),
}

TRIED: list[tuple[type[Any], dict[str, Any]]] = [
    *((type(each), each.get_params()) for each in [*OTHERS, *(oracle(name, 8, 1.0) for name in ORACLES)]),
    *((kind, {"epsilon": 1.0}) for kind in (Duchi, Hybrid, DiscreteLaplace, Piecewise, SquareWave)),
    (DuchiVector, {"dimensions": 3, "epsilon": 1.0}),
    (SampledVector, {"dimensions": 3, "epsilon": 1.0}),
    (ItemMining, {"domain": 8, "epsilon": 1.0, "k": 2}),
    (ItemsetMining, {"domain": 8, "epsilon": 1.0, "k": 3}),
    (LDPMiner, {"domain": 8, "epsilon": 1.0, "k": 2, "length": 2}),
    (PrefixExtending, {"strings": Integers(16), "epsilon": 1.0, "k": 2}),
    (InputDiscriminativeSets, {"domain": 2, "epsilons": [1.0, 2.0], "length": 2}),
    *((type(stream_method(name, 8, 1.0, 2)), {"domain": 8, "epsilon": 1.0, "w": 2}) for name in METHODS),
    (Domain, {"size": 8}),
    (Integers, {"width": 16}),
    (Texts, {"size": 6}),
    (BloomFilters, {"bits": 32, "hashes": 2, "cohorts": 4}),
    (HashFamily, {"d": 8, "g": 4}),
    (VectorHashFamily, {"words": 2, "g": 4}),
    (Blender, {"epsilon": 2.0}),
]

ANNOTATED = {
    "int": "whole",
    "int | None": "whole",
    "float": "finite",
    "float | None": "finite",
    "bool": "true or false",
}


def numbers_of(kind: type[Any]) -> dict[str, str]:
    """The parameters of a constructor that are numbers or flags, and what has to be said of wrong ones."""
    parameters = inspect.signature(kind).parameters.items()
    return {name: ANNOTATED[each.annotation] for name, each in parameters if each.annotation in ANNOTATED}


@pytest.mark.parametrize(("kind", "given"), TRIED, ids=lambda each: getattr(each, "__name__", ""))
def test_every_constructor_refuses_what_is_no_number(kind: type[Any], given: dict[str, Any]) -> None:
    wrongs: dict[str, list[Any]] = {
        "whole": [8.5, 8.0, "8", True, np.bool_(True), math.nan, math.inf, np.float64(8), [8], 1j],
        "finite": ["1.0", True, np.bool_(True), math.nan, -math.inf, np.float32("inf"), 1j, [1.0]],
        "true or false": [1, 0.0, "yes", np.int64(1)],
    }
    kind(**given)
    for name, sort in numbers_of(kind).items():
        for wrong in wrongs[sort]:
            with pytest.raises(ConfigurationError):
                kind(**{**given, name: wrong})


@pytest.mark.parametrize(("kind", "given"), TRIED, ids=lambda each: getattr(each, "__name__", ""))
def test_every_constructor_takes_scalars_of_numpy(kind: type[Any], given: dict[str, Any]) -> None:
    made = kind(**given)
    for name in numbers_of(kind):
        value = given.get(name, inspect.signature(kind).parameters[name].default)
        if isinstance(value, int | float) and not isinstance(value, bool):
            again = kind(**{**given, name: np.int64(value) if isinstance(value, int) else np.float64(value)})
            if isinstance(made, Mechanism):
                assert again.fingerprint == made.fingerprint


def test_no_constructor_of_a_mechanism_is_left_out() -> None:
    """Every public class whose constructor takes whole numbers looks at them, but for outcomes and what they are in."""
    unchecked = set()
    for module in pkgutil.walk_packages(ldp.__path__, "ldp."):
        for name, kind in vars(import_module(module.name)).items():
            public = inspect.isclass(kind) and kind.__module__ == module.name and not name.startswith("_")
            if public and "whole" in numbers_of(kind).values() and not hasattr(kind.__init__, "__wrapped__"):
                unchecked.add(name)
    assert unchecked == OUTCOMES_AND_PARTS


@pytest.mark.parametrize("wrong", [8.0, True, None, 8.5])
def test_a_domain_is_a_number_or_texts(wrong: Any) -> None:
    with fails("E100"):
        oracle("grr", wrong, 1.0)


def test_scalars_of_numpy_are_numbers() -> None:
    assert Rappor(0.5, bits=np.int64(32), hashes=np.int32(1)).fingerprint == Rappor(0.5, bits=32, hashes=1).fingerprint  # type: ignore[arg-type]
    for epsilon in (np.float32(1.0), np.float64(1.0), np.int64(1)):
        assert oracle("grr", 8, epsilon).fingerprint == oracle("grr", 8, 1.0).fingerprint  # type: ignore[arg-type]
    for wrong in (np.float32("nan"), np.bool_(True), np.float64(17)):
        with fails("E100"):
            oracle("grr", 8, wrong)  # type: ignore[arg-type]


def test_a_generator_of_numpy_is_no_source_of_randomness() -> None:
    wrong: Any = np.random.default_rng(1)
    with fails("E100"):
        oracle("grr", 8, 1.0).privatise([1], wrong)
