"""The published JSON Schemas, such as `job.json` for job files and `result.json` for results.

They are made from the models; a test holds them equal. `python -m jobs.schema` writes them anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

FOLDER: Final = Path(__file__).parent
MODELS: Final[Mapping[str, tuple[str, str]]] = {  # module and class by name
    "job": ("jobs.spec.job", "JobSpec"),
    "collection": ("jobs.collections.spec", "CollectionSpec"),
    "result": ("jobs.documents.result", "ResultDocument"),
    "model": ("jobs.kinds.models.document", "ModelDocument"),
    "plan": ("jobs.plan.plan", "Plan"),
    "job-status": ("jobs.documents.job_status", "JobDocument"),
    "jobs": ("jobs.documents.job_status", "JobList"),
    "frequency": ("jobs.documents.frequency", "FrequencyDocument"),
    "budget": ("jobs.documents.budget", "BudgetDocument"),
    "audit": ("jobs.audit.reading", "LogDocument"),
    "audit-verification": ("jobs.audit.checks.verification", "VerificationDocument"),
    "evidence": ("jobs.audit.evidence", "EvidenceDocument"),
    "anonymization": ("jobs.anonymization.spec", "AnonymizationSpec"),
    "anonymization-certificate": ("anonymize.certificate", "Certificate"),
    "anonymization-risk": ("jobs.anonymization.risk_document", "RiskDocument"),
    "anonymization-frontier": ("jobs.anonymization.frontier_document", "FrontierDocument"),
    "compare": ("jobs.documents.comparison", "CompareDocument"),
    "run-comparison": ("jobs.documents.run_comparison", "RunComparison"),
    "hiding": ("jobs.documents.hiding", "HidingDocument"),
    "manifest": ("jobs.results.manifest", "ManifestDocument"),
}
NAMES: Final = tuple(MODELS)


def published(name: str) -> str:
    """The text of a published schema."""
    return (FOLDER / f"{name}.json").read_text(encoding="utf-8")


def generate(name: str) -> str:
    """The schema as the models give it now."""
    module, model = MODELS[name]
    contents = TypeAdapter(getattr(import_module(module), model)).json_schema(by_alias=True)
    headed = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:comine:schema:{name}:1",
        **contents,
    }
    if "description" in headed:
        headed["description"] = headed["description"].partition("\n\nExample:")[0]  # it is for Python
    return json.dumps(headed, indent=2, ensure_ascii=False) + "\n"
