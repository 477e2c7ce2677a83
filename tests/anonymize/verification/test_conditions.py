"""The verifier's own models: the literature's numbers, and equality with the engine's models, which share no code."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.certificate import SCHEMA, Certificate, CertifiedColumn, Claims, Hashes, Software
from anonymize.claims import claims_of
from anonymize.grouping import Histograms, group
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import (
    AlphaK,
    BetaLikeness,
    DeltaDisclosure,
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    Model,
    PSensitive,
    RecursiveDiversity,
    Requirements,
    SensitiveLevels,
    TCloseness,
)
from anonymize.roles import Roles
from anonymize.tables import Table
from anonymize.verification.conditions import conditions
from anonymize.verification.rows import classes_of, key_of, text_table

TREE = [("a", "x", "*"), ("b", "x", "*"), ("c", "y", "*"), ("d", "y", "*"), ("e", "y", "*")]


def certificate_of(model: Claims, counts: dict[str, int], kind: str = "tree") -> Certificate:
    """A certificate of a table with the quasi-identifier q and the sensitive column s."""
    return Certificate(
        schema=SCHEMA,
        algorithm="by hand",
        model=model,
        columns={
            "q": CertifiedColumn(role="quasi_identifiers", kind="tree"),
            "s": CertifiedColumn.model_validate({"role": "sensitive", "kind": kind}),
        },
        rows=sum(counts.values()),
        published=sum(counts.values()),
        suppressed=0,
        suppression="drop",
        classes=1,
        statement="",
        sensitive_counts={"s": counts},
        metrics={},
        hashes=Hashes(release={}),
        software=Software(comine="", python="", numpy="", pyarrow=""),
    )


def holds(model: Model, classes: dict[str, list[str]], kind: str = "tree", whole: list[str] | None = None) -> bool:
    """Whether the verifier accepts classes of sensitive values, Q being theirs or that of `whole`."""
    values = [value for members in classes.values() for value in members]
    source = Table.of({"q": ["-"] * len(whole or values), "s": whole or values}, ROLES, {"s": kind})  # type: ignore[dict-item]
    claims = claims_of(Requirements((model,)), source).model_copy(update={"k": 1})
    certificate = certificate_of(claims, dict(Counter(whole or values)), kind)
    rows = pa.table({"q": [name for name, members in classes.items() for _ in members], "s": values})
    found = list(conditions(certificate, classes_of(rows, ["q"], {"s": kind})))
    assert found[0].ok, "every class has one row"
    return all(finding.ok for finding in found)


ROLES = Roles(quasi_identifiers=("q",), sensitive=("s",))


def values(*counts: int) -> list[str]:
    return [value for value, n in zip("abcdefgh", counts, strict=False) for _ in range(n)]


@pytest.mark.parametrize(
    ("model", "ok"),
    [
        (DistinctDiversity(3, "s"), True),
        (DistinctDiversity(4, "s"), False),
        (EntropyDiversity(2, "s"), True),
        (EntropyDiversity(2.7494, "s"), True),
        (EntropyDiversity(2.7495, "s"), False),
        (EntropyDiversity(3, "s"), False),
        (RecursiveDiversity(1, 2, "s"), False),
        (RecursiveDiversity(2, 2, "s"), True),
        (RecursiveDiversity(3, 3, "s"), False),
        (RecursiveDiversity(4, 3, "s"), True),
        (RecursiveDiversity("10/3", 3, "s"), True),
        (RecursiveDiversity(4, 4, "s"), False),
        (PSensitive(3, ("s",)), True),
        (PSensitive(4, ("s",)), False),
        (AlphaK(0.5, "s"), True),
        (AlphaK(0.499, "s"), False),
    ],
)
def test_diversity_of_three_two_one(model: Model, ok: bool) -> None:
    assert holds(model, {"x": values(3, 2, 1)}) == ok


def test_uniform_values_reach_their_number_exactly() -> None:
    for l in range(1, 9):  # noqa: E741
        assert holds(EntropyDiversity(l, "s"), {"x": values(*[3] * l)})


def test_bounded_values_only() -> None:
    classes = {"x": values(5, 2, 1)}
    assert not holds(AlphaK(0.5, "s"), classes)
    assert holds(AlphaK(0.5, "s", values=("b", "c")), classes)
    assert holds(AlphaK(0.625, "s"), classes)


def test_levels_are_counted() -> None:
    levels = (("a", "b"), ("c",))
    assert not holds(SensitiveLevels(2, levels, "s"), {"x": values(2, 2), "y": values(0, 0, 1)})
    assert holds(SensitiveLevels(2, levels, "s"), {"x": values(2, 0, 2)})


@pytest.mark.parametrize(("distance", "least"), [("variational", 0.5), ("equal", 0.5), ("kl", 0.693148)])
def test_closeness_of_two_halves(distance: str, least: float) -> None:
    classes, whole = {"x": values(1, 1)}, values(1, 1, 2)
    assert holds(TCloseness(least, "s", distance), classes, whole=whole)  # type: ignore[arg-type]
    assert not holds(TCloseness(least - 1e-5, "s", distance), classes, whole=whole)  # type: ignore[arg-type]


@pytest.mark.parametrize("ground", ["rank", "value"])
def test_closeness_of_salaries(ground: str) -> None:
    whole = [str(salary) for salary in range(3, 12)]
    for members, least in ((["3", "4", "5"], 0.375), (["6", "8", "11"], 0.166667)):
        assert holds(TCloseness(least, "s", "ordered", ground), {"x": members}, "numeric", whole)  # type: ignore[arg-type]
        assert not holds(TCloseness(least - 1e-5, "s", "ordered", ground), {"x": members}, "numeric", whole)  # type: ignore[arg-type]


def test_closeness_in_a_tree() -> None:
    tree = Hierarchy.of("s", [(leaf, "A" if leaf in "abc" else "B", "*") for leaf in "abcdef"])
    whole = values(2, 1, 1, 1, 2, 2)
    assert holds(
        TCloseness(0.444445, "s", "hierarchical", hierarchy=tree), {"x": values(0, 0, 0, 1, 1, 1)}, whole=whole
    )
    assert not holds(
        TCloseness(0.4444, "s", "hierarchical", hierarchy=tree), {"x": values(0, 0, 0, 1, 1, 1)}, whole=whole
    )


def test_likeness_and_disclosure() -> None:
    classes, whole = {"x": values(1, 1)}, values(1, 1, 2)
    assert holds(BetaLikeness(1, "s"), classes, whole=whole)
    assert not holds(BetaLikeness(0.99, "s"), classes, whole=whole)
    assert holds(DeltaDisclosure(0.6932, "s"), classes, whole=whole)
    assert not holds(DeltaDisclosure(0.6931, "s"), classes, whole=whole)
    # min(1, −ln ¼) = 1, so enhancement does not matter; of a value that half of the rows have it does: −ln ½ = .69.
    assert holds(BetaLikeness(1, "s", enhanced=True), classes, whole=whole)
    assert holds(BetaLikeness(1, "s"), {"x": values(0, 0, 1)}, whole=whole)
    assert not holds(BetaLikeness(1, "s", enhanced=True), {"x": values(0, 0, 1)}, whole=whole)


def test_values_that_the_input_lacks_are_found() -> None:
    claims = Claims(k=1, t=[{"distance": "equal", "value": 1, "column": "s"}])  # type: ignore[list-item]
    rows = pa.table({"q": ["x", "x"], "s": ["a", "z"]})
    found = list(conditions(certificate_of(claims, {"a": 2}), classes_of(rows, ["q"], {"s": "tree"})))
    assert [finding.ok for finding in found] == [True, False]


def test_one_value_in_many_writings() -> None:
    assert key_of("3", "numeric") == key_of("3.0", "numeric") == key_of("3e0", "numeric") != key_of("3.1", "numeric")
    assert key_of("30", "numeric") == key_of("3e1", "numeric")
    assert key_of("Yes", "boolean") == key_of("1", "boolean") == "true"
    assert key_of("3.0", "tree") != key_of("3", "tree")
    assert key_of("2020-02-03 00:00:00", "date") == "2020-02-03"
    assert key_of("", "numeric") == ""


MODELS: list[Model] = [
    *(KAnonymity(k) for k in (1, 2, 3, 5)),
    *(DistinctDiversity(l, "s") for l in (1, 2, 3)),  # noqa: E741
    *(EntropyDiversity(l, "s") for l in (1, 1.5, 2, 3)),  # noqa: E741
    *(RecursiveDiversity(c, l, "s") for c in (0.5, 1, 2, 3) for l in (1, 2, 3)),  # noqa: E741
    *(PSensitive(p, ("s",)) for p in (2, 3)),
    *(AlphaK(alpha, "s") for alpha in (0.25, 0.5, 0.6, "1/3")),
    *(SensitiveLevels(h, (("a", "b"), ("c",), ("d", "e")), "s") for h in (1, 2, 3)),
    *(TCloseness(t, "s", d) for t in (0, 0.2, 0.25, 0.5) for d in ("equal", "variational", "kl", "ordered")),  # type: ignore[arg-type]
    *(TCloseness(t, "s", "hierarchical", hierarchy=Hierarchy.of("s", TREE)) for t in (0, 0.2, 0.25, 0.5)),
    *(BetaLikeness(beta, "s", enhanced) for beta in (0.5, 1, 2) for enhanced in (False, True)),
    *(DeltaDisclosure(delta, "s") for delta in (0.3, 0.6931, 1)),
]


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("abcde")), min_size=1, max_size=24),
    st.sampled_from(MODELS),
)
def test_verifier_and_engine_agree(rows: list[tuple[str, str]], model: Model) -> None:
    q, s = map(list, zip(*rows, strict=True))
    table = Table.of({"q": q, "s": s}, ROLES, {}, {"s": list("abcde")})
    labels, classes = group(table.quasi_codes)
    fitted = Requirements((model,)).fitted(table)
    expected = fitted.satisfied(Histograms.of(labels, classes, table.sensitive))
    claims = claims_of(Requirements((model,)), table)
    if not isinstance(model, KAnonymity):
        claims = claims.model_copy(update={"k": None})
    source = table.columns["s"]
    certificate = certificate_of(claims, dict(zip(source.texts, source.counts.tolist(), strict=True)), "ordinal")
    found = list(conditions(certificate, classes_of(text_table(table.data), ["q"], {"s": "ordinal"})))
    assert len(found) == 1
    assert found[0].ok == bool(np.all(expected))
