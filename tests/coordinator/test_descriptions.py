"""Whether a job that is being written fits what parties say of themselves."""

from __future__ import annotations

from coordinator.jobs.descriptions import common_dataset, misfits
from protos.v1.control_pb2 import DatasetDescription, Description


def party(
    *datasets: tuple[str, str], tasks: tuple[str, ...] = ("rules",), peers: tuple[str, ...] = ("south",)
) -> Description:
    listed = [DatasetDescription(name=name, kind=kind) for name, kind in datasets]
    return Description(name="north", datasets=listed, tasks=tasks, peers=peers)


def found(said: Description, task: str = "rules", dataset: str = "baskets") -> list[str]:
    return misfits("north", said, task=task, parties=("north", "south"), dataset=dataset, kind="transactions")


def test_what_fits_has_no_misfit() -> None:
    assert found(party(("baskets", "transactions"))) == []


def test_each_misfit_is_a_sentence() -> None:
    said = party(("people", "table"), ("sales", "transactions"), tasks=("itemsets", "align"), peers=())
    assert found(said) == [
        "north has no dataset 'baskets' with transactions; it has sales of that kind",
        "the policy of north does not allow the task 'rules'; it allows itemsets and align",
        "north does not know south; add them to the federation file of north",
    ]
    assert found(said, task="align", dataset="people")[0] == (
        "the dataset 'people' of north is no dataset with transactions, as the job needs; it has sales of that kind"
    )


def test_a_party_with_nothing_says_so() -> None:
    assert found(party(tasks=())) == [
        "north has no dataset 'baskets' with transactions; it has none of that kind",
        "the policy of north does not allow the task 'rules'; it allows no task",
    ]


def test_the_first_dataset_that_all_have_is_taken() -> None:
    one = party(("people", "table"), ("sales", "transactions"), ("baskets", "transactions"))
    other = party(("baskets", "transactions"), ("sales", "table"))
    assert common_dataset({"north": one, "south": other}, "transactions") == "baskets"
    assert common_dataset({"north": one, "south": other}, "table") is None
    assert common_dataset({}, "table") is None


def test_what_a_node_says_is_shown_as_one_line() -> None:
    assert "\n" not in found(party(("evil\nname", "transactions")))[0]
