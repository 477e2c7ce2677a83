"""What `comine init` and `comine party check` propose to publish: what the data have, coarsely, and only if wanted."""

from __future__ import annotations

import re
import tomllib
from decimal import Decimal
from pathlib import Path

import pytest

from mining.data.transactions import Transactions
from mining.public_sizes import NOTHING, measured
from party.check import dataset_lines
from party.config import DatasetSection, PartyConfig
from party.data.dataset_check import check_dataset
from party.init_files import render_party
from tests.party.nodes import random_rows


def dataset(folder: Path, number: int, **publish: int) -> DatasetSection:
    source = folder / "b.dat"
    source.write_text("\n".join(map(" ".join, random_rows(3, number))) + "\n")
    given = {"name": "b", "kind": "transactions", "source": str(source), "format": "basket"}
    return DatasetSection.model_validate(given | ({"publish": publish} if publish else {}))


def rendered(folder: Path, rows: int | None) -> str:
    publishable = None if rows is None else check_dataset(dataset(folder, rows)).publishable
    source: dict[str, str | list[str]] = {"source": "b.dat", "format": "basket"}
    return render_party("north", listen="127.0.0.1:7101", dataset="b", source=source, publishable=publishable)


def read(text: str) -> PartyConfig:
    return PartyConfig.model_validate(tomllib.loads(text, parse_float=Decimal))


def uncommented(text: str) -> str:
    """As docs/tasks/three-organisations.md has it done."""
    return re.sub(r'^# (\[dataset\.publish|rows = |items = |"0\.)', r"\1", text, flags=re.MULTILINE)


@pytest.mark.parametrize("rows", [100, 150, 1234])
def test_a_new_file_publishes_nothing_until_its_owner_wants_it(tmp_path: Path, rows: int) -> None:
    text = rendered(tmp_path, rows)
    assert read(text).datasets["b"].public_sizes == NOTHING
    told = read(uncommented(text)).datasets["b"].public_sizes.coarse()
    assert told == measured(Transactions.from_rows(random_rows(3, rows))).coarse()
    assert told.rows


def test_of_few_rows_nothing_is_proposed(tmp_path: Path) -> None:
    text = rendered(tmp_path, 99)
    assert "there are fewer than 100 rows" in text
    assert read(uncommented(text)).datasets["b"].public_sizes == NOTHING
    assert "# rows = 20_000" in rendered(tmp_path, None)  # where nobody has looked: an example


def test_a_check_prints_lines_to_paste_where_none_are_there(tmp_path: Path) -> None:
    shown = [line.strip() for line in dataset_lines(check_dataset(dataset(tmp_path, 500)), show_items=False)]
    assert "[dataset.publish]" in shown
    assert "rows = 500" in shown
    for found in (check_dataset(dataset(tmp_path, 500, rows=200)), check_dataset(dataset(tmp_path, 50))):
        assert not any("dataset.publish" in line for line in dataset_lines(found, show_items=False))
