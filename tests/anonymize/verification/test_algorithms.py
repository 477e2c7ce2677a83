"""Every algorithm's release verifies: random tables, ties and tiny classes included."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from anonymize.certificate import Certificate, sha256_of
from anonymize.certifying import Sources, publish_folder
from anonymize.clustering.gpkc import gpkc
from anonymize.clustering.maa_slie import maa_slie
from anonymize.clustering.mdav import mdav
from anonymize.condensation.static import condense
from anonymize.condensation.streaming import Condenser
from anonymize.fulldomain.datafly import datafly
from anonymize.fulldomain.incognito import incognito
from anonymize.fulldomain.local_recoding import local_recode
from anonymize.fulldomain.optimal import optimal
from anonymize.fulldomain.samarati import samarati
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import (
    AlphaK,
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
from anonymize.multidimensional.mondrian import mondrian
from anonymize.release import Release, sorted_rows
from anonymize.replacement.ppir import ppir
from anonymize.roles import Roles
from anonymize.tables import Table
from anonymize.uncertain import publish_as_distributions
from anonymize.verification import Verification
from anonymize.verifier import verify
from crypto.primitives.randomness import Randomness
from link.errors import ConfigurationError

pytestmark = pytest.mark.turn(3)

CITIES = Hierarchy.of("city", [(c, "north" if c in "pq" else "south", "*") for c in "pqrst"])
AGES = Hierarchy.of(
    "age", [(str(a), f"{a // 3 * 3}-{a // 3 * 3 + 2}", "low" if a < 6 else "high", "*") for a in range(12)]
)
HIERARCHIES = {"age": AGES, "city": CITIES}
LEVELS = (("a", "b"), ("c",), ("d",))
ROLES = Roles(("name",), ("age", "city"), ("s",), ("note",))

rows = st.lists(
    st.tuples(st.integers(0, 11), st.sampled_from("pqrst"), st.sampled_from("abcd")), min_size=2, max_size=30
)
models = st.sampled_from(
    [
        None,
        DistinctDiversity(2, "s"),
        EntropyDiversity(1.5, "s"),
        RecursiveDiversity(2, 2, "s"),
        TCloseness(0.4, "s"),
        TCloseness(0.4, "s", "kl"),
        PSensitive(2, ("s",)),
        AlphaK(0.7, "s"),
        SensitiveLevels(2, LEVELS, "s"),
    ]
)


def table_of(records: list[tuple[int, str, str]]) -> Table:
    ages, cities, secrets = map(list, zip(*records, strict=True))
    names = [f"person {i}" for i in range(len(records))]
    return Table.of({"name": names, "age": ages, "city": cities, "s": secrets, "note": names[::-1]}, ROLES)


def checked(
    release: Release, table: Table, requirements: Requirements | None, hierarchies: dict[str, Hierarchy]
) -> tuple[Certificate, Verification]:
    """A release's certificate and verification, with the original."""
    with TemporaryDirectory() as folder:
        place = Path(folder)
        pyarrow.parquet.write_table(table.data, place / "original.parquet")
        sources = Sources(input=place / "original.parquet")
        made = publish_folder(place / "out", release, table, requirements, hierarchies=hierarchies, sources=sources)
        found = verify(place / "out", place / "original.parquet")
    assert found.ok, found.failures
    return made, found


FULL_DOMAIN: list[Callable[..., Release]] = [samarati, incognito, optimal, datafly, local_recode]


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(
    rows,
    st.sampled_from(FULL_DOMAIN),
    st.integers(1, 4),
    models,
    st.sampled_from([0, 0.1, 0.4]),
    st.sampled_from(["drop", "blank", "keep"]),
    st.sampled_from(["row", "cell"]),
)
def test_full_domain(
    records: list[tuple[int, str, str]],
    algorithm: Callable[..., Release],
    k: int,
    model: Model | None,
    share: float,
    suppressed: str,
    suppression: str,
) -> None:
    requirements = Requirements((KAnonymity(k), *([model] if model else [])))
    table, options = table_of(records), {"suppressed": suppressed}
    if algorithm is not local_recode:
        options["suppression"] = suppression
    try:
        release = algorithm(table, HIERARCHIES, requirements, max_suppression=share, **options)
    except ConfigurationError:
        return  # no release, nothing to verify
    made, found = checked(release, table, requirements, HIERARCHIES)
    assert made.scales is not None, "GCP is recomputed from cells"
    assert not found.unchecked


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(
    rows,
    st.integers(1, 4),
    models,
    st.sampled_from(["strict", "relaxed", "hierarchical"]),
    st.sampled_from(["ranges", "centres"]),
    st.booleans(),
)
def test_mondrian(
    records: list[tuple[int, str, str]], k: int, model: Model | None, mode: Any, form: Any, trees: bool
) -> None:
    requirements = Requirements((KAnonymity(k), *([model] if model else [])))
    table, hierarchies = table_of(records), {"city": CITIES} if trees else {}
    try:
        release = mondrian(table, requirements, mode=mode, hierarchies=hierarchies, release=form)
    except ConfigurationError:
        return
    made, found = checked(release, table, requirements, hierarchies)
    if form == "ranges":
        assert made.scales is not None
        assert not found.unchecked


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, 9), st.floats(-5, 5)), min_size=2, max_size=30), st.integers(1, 4))
@example([(0, 0.0), (0, 2.2250738585e-313)], 1)
@example([(0, 0.0), (0, 1.0), (0, 1.0), (0, 5.246814588040278e-113)], 2)
def test_mdav(records: list[tuple[int, float]], k: int) -> None:
    x, y = map(list, zip(*records, strict=True))
    table = Table.of({"x": x, "y": y, "s": ["a"] * len(x)}, Roles((), ("x", "y"), ("s",)))
    if k > len(x):
        return
    made, _ = checked(mdav(table, k), table, Requirements((KAnonymity(k),)), {})
    assert made.classes is not None


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(rows, st.integers(1, 4), st.integers(1, 2), st.integers(1, 2), st.booleans())
def test_clusters_of_levels(records: list[tuple[int, str, str]], k: int, p: int, h: int, by_entropy: bool) -> None:
    table, levels = table_of(records), SensitiveLevels(h, LEVELS, "s", (0.2, 0.5, 0.8))
    options: dict[str, Any] = {"levels": levels, "rng": Randomness.from_seed(1), "hierarchies": {"city": CITIES}}
    try:
        release = (maa_slie if by_entropy else gpkc)(table, k, p, **options)
    except ConfigurationError:
        return
    requirements = Requirements((KAnonymity(k), PSensitive(p, ("s",)), levels))
    checked(release, table, requirements, {"city": CITIES})


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.integers(0, 9), st.floats(-5, 5), st.sampled_from("ab")), min_size=8, max_size=40),
    st.integers(1, 4),
    st.integers(1, 2),
    st.booleans(),
)
def test_condensation(records: list[tuple[int, float, str]], k: int, factor: int, grouped: bool) -> None:
    x, y, g = map(list, zip(*records, strict=True))
    roles = Roles((), ("x",), ("y",), ("g",))
    table = Table.of({"x": x, "y": y, "g": g}, roles)
    options: dict[str, Any] = {"by": ("g",)} if grouped else {}
    try:
        release = condense(table, k, rng=Randomness.from_seed(2), factor=factor, **options)
    except ConfigurationError:
        return
    made, found = checked(release, table, Requirements((KAnonymity(k),)), {})
    assert made.classes is None
    assert made.sensitive_counts == {}
    assert "no equivalence classes" in {finding.found[:22] for finding in found.findings}
    assert {"published records", "records of each condensed group"} <= {finding.check for finding in found.findings}
    assert not found.unchecked


def test_records_as_distributions(tmp_path: Path) -> None:
    table = Table.of(
        {"x": [1.0, 2.0, 3.0, 4.0, 9.0, 7.0], "y": [3, 4, 2, 1, 5, 6], "s": list("ababab")},
        Roles((), ("x", "y"), ("s",), ()),
    )
    release = publish_as_distributions(table, 2, rng=Randomness.from_seed(1))
    made, found = checked(release, table, None, {})
    assert [name for name, column in made.columns.items() if column.added] == ["x_sd", "y_sd"]
    assert "no equivalence classes" in {finding.found[:22] for finding in found.findings}
    folder = tmp_path / "release"
    folder.mkdir()
    publish_folder(folder, release, table, None, hierarchies={})
    original = tmp_path / "original.parquet"
    pa.parquet.write_table(table.data, original)
    assert verify(folder, original).ok


def test_condensed_stream(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    condenser = Condenser(("a", "b"), 5, origins=(10, 0), units=(2, 1))
    condenser.add(rng.normal([10, 0], [4, 1], (200, 2)))
    release = condenser.release(Randomness.from_seed(3))
    made = publish_folder(tmp_path, release, None, Requirements((KAnonymity(5),)))
    assert made.rows == 200
    found = verify(tmp_path)
    assert found.ok, found.failures
    assert not found.unchecked


@pytest.mark.parametrize(
    "edit",
    [
        lambda d, _: d["groups"]["sizes"].__setitem__(0, 2),
        lambda _, m: m["sums"][0].__setitem__(0, 1e6),
        lambda _, m: m["products"][0][0].__setitem__(0, -1.0),
        lambda d, _: d["groups"].update(factor=2),
        lambda _, m: m["sums"].pop(),
        lambda _, m: m.pop("units"),
        lambda d, _: d["groups"].update(moments="0" * 64),
        lambda d, _: d.update(groups=None),
    ],
)
def test_lies_about_groups_are_found(tmp_path: Path, edit: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    rng = np.random.default_rng(6)
    table = Table.of({"a": rng.normal(0, 1, 40).tolist(), "b": rng.normal(0, 1, 40).tolist()}, Roles((), ("a", "b")))
    release = condense(table, 5, rng=Randomness.from_seed(4))
    made = publish_folder(tmp_path, release, table, Requirements((KAnonymity(5),)))
    document = made.model_dump(mode="json", by_alias=True)
    held = tmp_path / "moments.json"
    moments, before = json.loads(held.read_text()), json.dumps(document)
    edit(document, moments)
    if json.dumps(document) == before:
        held.write_text(json.dumps(moments))
        document["groups"]["moments"] = sha256_of(held)
    Certificate.model_validate(document).sealed().write(tmp_path / "certificate.json")
    assert verify(tmp_path).failures


def test_moments_of_groups_are_kept_apart_from_what_is_published(tmp_path: Path) -> None:
    table = Table.of({"age": [21, 26, 25, 48, 32, 45], "visits": [1, 2, 2, 5, 3, 4]}, Roles((), ("age", "visits")))
    release = condense(table, 2, rng=Randomness.from_seed(4))
    for folder in (tmp_path / "one", tmp_path / "two"):
        publish_folder(folder, release, table, Requirements((KAnonymity(2),)))
    told = json.loads((tmp_path / "one/certificate.json").read_text())
    assert told["groups"].keys() == {"columns", "sizes", "factor", "moments"}  # two records follow from their moments
    assert told["groups"]["moments"] != sha256_of(tmp_path / "two/moments.json")  # salted: guesses cannot be confirmed
    (tmp_path / "one/moments.json").unlink()
    found = verify(tmp_path / "one")
    assert found.ok
    assert [finding.check for finding in found.unchecked] == ["moments of the groups"]


def test_a_foreign_record_among_condensed_ones_is_found(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    table = Table.of({"a": rng.normal(0, 1, 40).tolist(), "b": rng.normal(0, 1, 40).tolist()}, Roles((), ("a", "b")))
    release = condense(table, 5, rng=Randomness.from_seed(4))
    far = pa.table({"a": [100.0, *release.table.column("a").to_pylist()[1:]], "b": release.table.column("b")})
    publish_folder(tmp_path, Release(**{**vars(release), "table": far}), table, Requirements((KAnonymity(5),)))
    assert {finding.check for finding in verify(tmp_path).failures} == {"published records"}


people = st.lists(
    st.tuples(st.integers(-3, 60), st.floats(0, 3, allow_subnormal=False), st.integers(1, 800), st.sampled_from("abc")),
    min_size=1,
    max_size=25,
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(people, st.sampled_from(["projection", "symmetric"]), st.sampled_from(["best", "suppress"]), st.booleans())
def test_replaced_identities(
    records: list[tuple[int, float, int, str]], beta: Any, exhausted: Any, dated: bool
) -> None:
    age, height, days, secret = map(list, zip(*records, strict=True))
    data: dict[str, Any] = {"age": age, "height": height, "s": secret}
    ranges = {"age": 3.0, "height": 0.5}
    if dated:
        data["born"] = (np.datetime64("2000-01-01") + np.array(days)).tolist()
        ranges["born"] = 20.0
    table = Table.of(data, Roles((), tuple(ranges), ("s",)))
    release = ppir(
        table,
        ranges,
        rng=Randomness.from_seed(8),
        alpha=(0.2, 0.95),
        ch_max=0.3,
        beta=beta,
        tries=5,
        exhausted=exhausted,
    )
    made, found = checked(release, table, None, {})
    assert made.classes is None
    assert not found.unchecked


def test_sorted_replaced_rows_do_not_tell_which_are_missing(tmp_path: Path) -> None:
    """Also where sorting moves none: these stand in the order of the table as it is."""
    table = Table.of({"age": [20, 30, 40], "s": ["a", "b", "c"]}, Roles((), ("age",), ("s",)))
    pyarrow.parquet.write_table(table.data, tmp_path / "original.parquet")
    release = ppir(table, {"age": 2.0}, rng=Randomness.from_seed(9), exhausted="suppress", alpha=(0.9, 1.0))
    made = publish_folder(tmp_path / "out", sorted_rows(release), table, None)
    assert made.replacement is not None
    assert made.replacement.omitted is None
    for original in (None, tmp_path / "original.parquet"):
        found = verify(tmp_path / "out", original)
        assert found.ok
        assert "replaced identities" in [finding.check for finding in found.unchecked]


def test_a_record_that_moved_too_far_is_found(tmp_path: Path) -> None:
    table = Table.of({"age": [20, 30, 40], "s": ["a", "b", "c"]}, Roles((), ("age",), ("s",)))
    pyarrow.parquet.write_table(table.data, tmp_path / "original.parquet")
    release = ppir(table, {"age": 2.0}, rng=Randomness.from_seed(9), alpha=(0.5, 1.0))
    moved = pa.table({"age": [25, 30, 40], "s": ["a", "c", "c"]})
    publish_folder(tmp_path / "out", Release(**{**vars(release), "table": moved}), table, None)
    assert [finding.check for finding in verify(tmp_path / "out").unchecked] == ["replaced identities"]
    found = {finding.check for finding in verify(tmp_path / "out", tmp_path / "original.parquet").failures}
    assert found == {"range of age", "column s"}
