"""Parameters of other types than expected: taken if they mean the same, or refused with a sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ldp.rappor.mechanism import Rappor
from ldp.registry import oracle
from link.errors import ConfigurationError


@pytest.mark.parametrize("wrong", [8.5, "8", True, None, np.float64(8)])
@pytest.mark.parametrize("name", ["bits", "hashes", "cohorts"])
def test_numbers_of_rappor_are_whole(name: str, wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"RAPPOR's {name} are a whole number"):
        Rappor(0.5, **{name: wrong})


def test_scalars_of_numpy_are_numbers() -> None:
    assert Rappor(0.5, bits=np.int64(32), hashes=np.int32(1)).fingerprint == Rappor(0.5, bits=32, hashes=1).fingerprint  # type: ignore[arg-type]
    for epsilon in (np.float32(1.0), np.float64(1.0), np.int64(1)):
        assert oracle("grr", 8, epsilon).fingerprint == oracle("grr", 8, 1.0).fingerprint  # type: ignore[arg-type]
    for wrong in (np.float32("nan"), np.bool_(True), np.float64(17)):
        with pytest.raises(ConfigurationError, match="privacy budget epsilon"):
            oracle("grr", 8, wrong)  # type: ignore[arg-type]


def test_a_generator_of_numpy_is_no_source_of_randomness() -> None:
    wrong: Any = np.random.default_rng(1)
    with pytest.raises(ConfigurationError, match="not from a Generator"):
        oracle("grr", 8, 1.0).privatise([1], wrong)
