"""What releases a node's policy allows, and whether a request is as strict as is required."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.anonymization.model_spec import ModelSection
from jobs.anonymization.spec import AnonymizeSection
from link.errors import PolicyDenied
from party.config import DatasetSection
from party.services.anonymization.policy import AnonymizationRules, check_request, described
from party.services.anonymization.releases import Releases
from party.services.anonymization.request import check_columns
from party.services.anonymization.strength import unmet
from tests.errors import fails

RULES: dict[str, Any] = {
    "columns": {
        "age": ["quasi_identifiers"],
        "zip": ["quasi_identifiers", "insensitive"],
        "disease": ["sensitive"],
        "pay": ["sensitive", "quasi_identifiers"],
    },
    "min_k": 5,
    "algorithms": ["optimal", "mondrian", "ppir"],
}


def rules(**more: Any) -> AnonymizationRules:
    return AnonymizationRules.model_validate(RULES | more)


def spec(model: dict[str, Any], **more: Any) -> AnonymizeSection:
    keys = {"source": "patients", "quasi_identifiers": ["age"], "sensitive": ["disease"], "algorithm": "mondrian"}
    return AnonymizeSection.model_validate(keys | {"model": {"k": 5} | model} | more)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"columns": {}}, "at least 1"),
        ({"columns": {"age": []}}, "names nothing"),
        ({"columns": {"age": ["identifiers"]}}, "Input should be"),
        ({"min_k": 1}, "greater than or equal to 2"),
        ({"min_k": "5"}, "must be a whole number"),
        ({"algorithms": []}, "names nothing"),
        ({"algorithms": ["optimal", "optimal"]}, "names something twice"),
        ({"kinds": {"name": {"kind": "code"}}}, "kinds describes the column 'name'"),
        ({"hierarchies": {"name": "name.csv"}}, "hierarchies describes the column 'name'"),
        ({"require": {"k": 5}}, "write it as min_k"),
        ({"require": {"l": 2}}, "require l lacks its column"),
        ({"require": {"l": {"value": 2, "column": "age"}}}, "'age', which columns does not let leave as sensitive"),
        ({"require": {"p": {"value": 2, "columns": ["disease", "zip"]}}}, "'zip', which columns does not let"),
        ({"require": {"H": 2}}, "needs [dataset.anonymization.levels] with their column"),
        ({"require": {"t": {"value": "0.3", "column": "disease"}}}, "'ppir', which forms no classes"),
        ({"max_releases": 0}, "greater than or equal to 1"),
        ({"max_failures": 0}, "greater than or equal to 1"),
        ({"max_memory": 16}, "greater than or equal to 256"),
        ({"guess": 1}, "Extra inputs"),
    ],
)
def test_rules_that_protect_nothing_are_refused(more: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError) as found:  # noqa: PT011 - pydantic's own, whose words are looked at
        rules(**more)
    assert words in str(found.value)


class _Long(tuple[str, ...]):
    """Names among which one is not looked for again and again."""

    def __contains__(self, name: object) -> bool:
        raise AssertionError("a long list is searched for each entry of another")


def test_no_list_of_a_request_is_searched_for_each_entry_of_another() -> None:
    asked = spec({"l": [{"column": "disease", "value": 2}]}, columns={"age": {"kind": "numeric"}})
    asked = asked.model_copy(
        update={name: _Long(getattr(asked, name)) for name in ("quasi_identifiers", "sensitive", "insensitive")}
    )
    check_columns(asked)
    with fails("E100"):
        check_columns(asked.model_copy(update={"model": spec({"l": [{"column": "age", "value": 2}]}).model}))


def test_only_tables_are_released_and_paths_are_beside_the_file() -> None:
    contents = {"name": "d", "kind": "table", "source": "d.csv", "format": "csv"}
    section = DatasetSection.model_validate(contents | {"anonymization": RULES | {"hierarchies": {"age": "age.csv"}}})
    found = section.beside(Path("/srv")).anonymization
    assert found is not None
    assert found.hierarchies["age"].model_dump()["file"] == "/srv/age.csv"
    with pytest.raises(ValueError, match="needs kind"):
        DatasetSection.model_validate(
            {"name": "d", "kind": "transactions", "source": "d", "format": "basket", "anonymization": RULES}
        )


def refusal(policy: AnonymizationRules, asked: AnonymizeSection, coordinator: str = "hub") -> str:
    try:
        check_request(policy, asked, coordinator, "north")
    except PolicyDenied as denied:
        return denied.message
    return ""


def test_what_is_allowed_is_allowed() -> None:
    policy = rules(models=["l"], coordinators=["hub"], levels={"values": [["flu"], ["HIV"]]})
    assert refusal(policy, spec({})) == ""
    assert refusal(policy, spec({"k": 50, "l": 2}, insensitive=["zip"])) == ""
    assert "lets 'hub' ask" in refusal(policy, spec({}), "other")
    moved = AnonymizeSection.model_validate(
        {"source": "d", "quasi_identifiers": ["age"], "algorithm": "ppir", "ppir": {"ranges": {"age": 3}}}
    )
    assert refusal(policy, moved) == ""  # identity replacement has no k, and is named
    assert "algorithm" in refusal(rules(algorithms=["mondrian"]), moved)
    same = {"age": {"kind": "numeric"}}
    assert refusal(rules(kinds=same), spec({}, columns=same)) == ""
    assert "leave 'age' out" in refusal(rules(), spec({}, columns=same))
    assert refusal(rules(describe="request"), spec({}, columns=same)) == ""


def test_k_is_needed_also_where_another_model_is_named() -> None:
    asked = AnonymizeSection.model_validate(
        {"source": "d", "quasi_identifiers": ["age"], "sensitive": ["disease"], "model": {"l": 7}}
    )
    assert "the request has none" in refusal(rules(models=["l"], algorithms=["optimal"]), asked)


@pytest.mark.parametrize(
    ("required", "good", "bad"),
    [
        ({"l": {"value": 3, "column": "disease"}}, {"l": 3}, {"l": 2}),
        ({"l": {"value": 3, "column": "disease"}}, {"l": 4}, {"l": {"kind": "entropy", "value": 4}}),
        (
            {"l": {"kind": "recursive", "value": 3, "c": 2, "column": "disease"}},
            {"l": {"kind": "recursive", "value": 3, "c": "1.5"}},
            {"l": {"kind": "recursive", "value": 3, "c": 3}},
        ),
        ({"t": {"value": "0.3", "column": "disease"}}, {"t": "0.3"}, {"t": "0.31"}),
        ({"t": {"value": "0.3", "column": "disease"}}, {"t": "0.1"}, {"t": {"distance": "kl", "value": "0.1"}}),
        ({"p": {"value": 2, "columns": ["disease"]}}, {"p": 2}, {"p": 1}),
        ({"alpha": {"value": "0.5", "column": "disease"}}, {"alpha": "0.4"}, {"alpha": "0.6"}),
        (
            {"alpha": {"value": "0.5", "column": "disease", "values": ["HIV"]}},
            {"alpha": {"value": "0.5", "values": ["HIV", "flu"]}},
            {"alpha": {"value": "0.5", "values": ["flu"]}},
        ),
        (
            {"beta": {"value": 1, "column": "disease", "enhanced": True}},
            {"beta": {"value": 1, "enhanced": True}},
            {"beta": 1},
        ),
        ({"delta": {"value": 1, "column": "disease"}}, {"delta": 1}, {"delta": 2}),
        ({"H": 2}, {"H": 2}, {}),
    ],
)
def test_requests_are_at_least_as_strict(required: dict[str, Any], good: dict[str, Any], bad: dict[str, Any]) -> None:
    least = ModelSection.model_validate(required)
    levels = {"levels": {"values": [["flu"], ["HIV"]]}}
    assert unmet(least, spec(good, **levels), "disease") is None
    lacking = unmet(least, spec(bad, **levels), "disease")
    assert lacking is not None
    assert lacking.startswith(next(iter(required)))
    assert unmet(least, spec({}, **levels), "disease") is not None
    assert unmet(least, spec({}, sensitive=[]), "disease") is None  # the column stays at the node


def test_what_is_required_is_about_its_column() -> None:
    policy = rules(
        algorithms=["mondrian"],
        models=["p"],
        require={"l": [{"value": 2, "column": "disease"}, {"value": 3, "column": "pay"}]},
    )
    both = {"sensitive": ["disease", "pay"]}
    disease, pay = {"value": 2, "column": "disease"}, {"value": 3, "column": "pay"}
    assert refusal(policy, spec({"l": [disease, pay]}, **both)) == ""
    assert 'l = { value = 3, column = "pay" } or stricter (rule require)' in refusal(
        policy, spec({"l": [disease]}, **both)
    )
    assert refusal(policy, spec({"l": [disease]})) == ""
    # A column that leaves in another role is not protected by what is said of sensitive ones.
    assert "or stricter" in refusal(policy, spec({"l": [disease]}, quasi_identifiers=["age", "pay"]))


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 100), st.integers(0, 100))
def test_stricter_is_monotone(least_l: int, given_l: int, least_t: int, given_t: int) -> None:
    required = ModelSection.model_validate(
        {
            "l": {"value": least_l, "column": "disease"},
            "t": {"value": Decimal(least_t) / 100, "column": "disease"},
        }
    )
    asked = spec({"l": given_l, "t": Decimal(given_t) / 100})
    assert (unmet(required, asked) is None) == (given_l >= least_l and given_t <= least_t)


def test_the_node_describes_what_a_request_does_not() -> None:
    policy = rules(
        kinds={"age": {"kind": "numeric"}, "zip": {"kind": "code"}},
        hierarchies={"age": {"builder": "flat"}, "zip": {"builder": "prefix", "masked": [2]}, "disease": "d.csv"},
        levels={"values": [["flu"], ["HIV"]]},
        describe="request",
    )
    found = described(policy, spec({"H": 2}, levels={"values": [["HIV"], ["flu"]]}, algorithm="optimal"))
    assert set(found.columns) == {"age"}
    assert set(found.hierarchies) == {"age", "disease"}
    assert found.levels is not None
    assert found.levels.values[0] == ("HIV",)
    theirs = {"hierarchies": {"age": {"builder": "intervals", "widths": [5]}}}
    assert described(policy, spec({}, **theirs)).hierarchies["age"].builder == "intervals"
    with fails("E100"):
        described(policy, spec({}, quasi_identifiers=["age", "pay"], algorithm="optimal"))


def test_releases_outlive_their_process_and_count_once(tmp_path: Path) -> None:
    path = tmp_path / "state" / "releases.db"
    first = Releases.open(path, "north")
    first.check("d", b"r1", 1, 1)
    first.admit("d", b"rows1", b"r1", "hub", 1)
    first.admit("d", b"rows1", b"r2", "hub", 1)
    first.admit("other", b"rows1", b"r1", "hub", 1)
    first.close()
    again = Releases.open(path, "north")
    again.check("d", b"r1", 1, 1)
    again.check("d", b"r2", 2, 1)
    with fails("E300", party="north"):
        again.check("d", b"r2", 1, 1)
    with fails("E300", party="north"):
        again.admit("d", b"rows2", b"r1", "hub", 1)
    again.admit("d", b"rows1", b"r1", "hub", 1)
    again.close()
    path.write_bytes(b"something else, and long enough to be looked at as a database" * 20)
    with fails("E100"):
        Releases.open(path, "north")


def test_failures_outlive_their_process_and_count_once(tmp_path: Path) -> None:
    path = tmp_path / "state" / "releases.db"
    first = Releases.open(path, "north")
    first.admit("d", b"rows", b"left", "hub", 9)
    for request in (b"r1", b"r1", b"r2"):
        first.check("d", request, 9, 2)
        first.fail("d", request, "hub")
    first.close()
    again = Releases.open(path, "north")
    again.check("d", b"left", 9, 2)
    again.check("d", b"r3", 9, 3)
    again.check("other", b"r3", 9, 2)
    for request in (b"r1", b"r3"):
        with fails("E300", party="north"):
            again.check("d", request, 9, 2)
    again.close()
