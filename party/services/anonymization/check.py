"""Whether a dataset is what its owner's rules for releases take it to be: for him, so sentences may name values."""

from __future__ import annotations

from pathlib import Path

from anonymize.uniqueness import check_insensitive, check_persons
from jobs.anonymization.inputs import hierarchies_of, read_source, table_of
from jobs.anonymization.model_spec import ModelSection
from jobs.anonymization.spec import AnonymizeSection
from link.errors import ConfigurationError
from party.config import DatasetSection
from party.policy.column_roles import ROLES
from party.services.anonymization.policy import AnonymizationRules
from party.services.anonymization.request import source_of


def check_releases(dataset: DatasetSection, rules: AnonymizationRules) -> None:
    """Reads a dataset as a run would, and holds columns, kinds and hierarchies against its rows.

    Args:
        dataset: With absolute paths.
        rules: Its own.

    Raises:
        ConfigurationError: A column is missing, a kind or a hierarchy does not fit, a person has several rows, or a
            column that may leave as it is distinguishes most rows.
        InputDataError: The source cannot be read.
    """
    taken = {role: tuple(name for name, allowed in rules.columns.items() if allowed[0] == role) for role in ROLES}
    described = (*taken["quasi_identifiers"], *taken["sensitive"])
    spec = AnonymizeSection.model_validate(
        source_of(dataset)
        | taken
        | {
            "missing": "drop",
            "algorithm": "mondrian",
            "model": ModelSection(k=rules.min_k),
            "allow_unique": [name for name in taken["insensitive"] if name in rules.allow_unique],
            "columns": rules.kinds,
            "hierarchies": {name: tree for name, tree in rules.hierarchies.items() if name in described},
        }
    )
    data = read_source(spec, Path())
    for name in rules.columns:
        if name not in data.column_names:
            raise ConfigurationError(
                f"[dataset.anonymization] columns names '{name}', which '{dataset.name}' does not have, only "
                f"{', '.join(data.column_names)}"
            )
    check_persons(data, [name for name in dataset.id if name in data.column_names], ())
    open_ = [name for name, roles in rules.columns.items() if "insensitive" in roles]
    if data.num_rows >= rules.min_k:  # else every value is rare, and no release meets the model
        check_insensitive(data, open_, rules.allow_unique, rules.min_k)
    hierarchies_of(spec, Path(), table_of(spec, data.select(list(rules.columns))))
