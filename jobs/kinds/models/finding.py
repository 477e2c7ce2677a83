"""A model that a job has learnt, as what it has found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from jobs.documents.written_json import json_text, write_json
from jobs.kinds.compared import numbers
from jobs.kinds.finding import Finding, SavedFinding
from jobs.kinds.models.document import MODEL_FILE, model_document, pack_model, read_model, unpack_model
from jobs.kinds.models.model import Model
from jobs.kinds.models.numbers import numbers_of
from jobs.kinds.models.parameters import model_parameters
from jobs.kinds.models.report import model_section
from jobs.kinds.packed_itemsets import digest
from jobs.spec.job import JobSpec
from link.files.json_text import read_json
from protos.v1.control_pb2 import Release


@dataclass(frozen=True)
class FoundModel(Finding):
    """A model that a job has learnt, as what it has found.

    Attributes:
        model: The model.
    """

    model: Model

    name = signed_as = "model"

    @classmethod
    def files(cls, spec: JobSpec) -> frozenset[str]:  # noqa: ARG003 - the same for all jobs
        return frozenset({MODEL_FILE})

    @classmethod
    def differences(cls, saved: SavedFinding, release: Release) -> Iterator[str]:
        path = saved.folder / MODEL_FILE
        try:
            model = read_model(path.read_bytes())
            written = read_json(path.read_bytes()) == model_document(model)
        except (OSError, ValueError) as error:
            yield f"{MODEL_FILE} cannot be read ({error}), and {release.party} signed what is in it"
            return
        if not written or digest(pack_model(model)) != release.result_digest:
            yield f"{MODEL_FILE} does not hold the model that {release.party} signed"
            return
        saved.finding = cls(model)

    @classmethod
    def unpack(cls, packed: bytes) -> FoundModel:
        """What `pack` made.

        Raises:
            ValueError: It is something else.
        """
        return cls(unpack_model(packed))

    @property
    def value(self) -> Model:
        return self.model

    @property
    def n_rows(self) -> int:
        return self.model.n_rows

    def pack(self) -> bytes:
        return pack_model(self.model)

    def canonical(self) -> FoundModel:
        return self

    def fits(self, spec: JobSpec) -> bool:
        return self.model.task == model_parameters(spec)

    def compared(self, spec: JobSpec) -> dict[str, pa.Table]:
        return numbers(dict(numbers_of(self.model)))

    def write(self, folder: Path, spec: JobSpec) -> None:
        write_json(folder / MODEL_FILE, model_document(self.model))

    def sections(self, spec: JobSpec) -> dict[str, Any]:
        return {"model": model_section(self.model)}

    def printed(self) -> dict[str, Any]:
        return {"model": model_document(self.model)}

    def text(self) -> str:
        return json_text(model_document(self.model))

    def lines(self) -> Iterator[str]:
        return self.model.lines()

    def methods(self, spec: JobSpec) -> tuple[tuple[str, ...], str]:
        return ("model",), "can predict"

    def summary(self, spec: JobSpec) -> str:
        return ""
