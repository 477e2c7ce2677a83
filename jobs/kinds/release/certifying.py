"""The folder of a joint release, and its certificate, from what is public of it alone."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from anonymize.certificate import SCHEMA as CERTIFICATE_SCHEMA
from anonymize.certificate import Certificate, CertifiedColumn, Hashes, Software
from anonymize.certifying import write_release
from anonymize.claims import claims_of
from jobs.kinds.release.figures import class_sizes, metrics, scales, sensitive_counts, sensitive_domain
from jobs.kinds.release.parameters import joint_anonymisation
from jobs.kinds.release.release import Anonymized
from jobs.results.destination import JOINT_RELEASE
from jobs.spec.job import JobSpec
from link.version import software_version
from mining.joint.anonymisation.parameters import ORIGIN_COLUMN, JointAnonymisation


def publish(folder: Path, release: Anonymized, spec: JobSpec) -> Certificate:
    """Writes `release.csv`, `release.parquet`, `certificate.json` and what the parties signed.

    Args:
        folder: Exists.
        release: The release.
        spec: The job.
    """
    (folder / JOINT_RELEASE).write_bytes(release.pack())
    certificate = certify(release, joint_anonymisation(spec), write_release(folder, release.table), spec.digest.hex())
    certificate.write(folder / "certificate.json")
    return certificate


def certify(
    release: Anonymized, task: JointAnonymisation, hashes: Mapping[str, str], configuration: str
) -> Certificate:
    """The certificate of a joint release, from what is public of it alone.

    Args:
        release: The release.
        task: Its public parameters.
        hashes: By name of a file of the release, its SHA-256.
        configuration: SHA-256 of the job's specification.
    """
    claims = claims_of(task.requirements, sensitive_domain(release, task))
    sizes = class_sizes(release, task)
    described = {
        each.name: CertifiedColumn(role="quasi_identifiers", kind=each.kind) for each in task.quasi_identifiers
    }
    described |= {each.name: CertifiedColumn(role=each.role, kind=each.kind) for each in task.carried}
    if task.origin == "shown":
        described[ORIGIN_COLUMN] = CertifiedColumn(role="insensitive", kind="tree")
    measured = scales(release, task)
    return Certificate(
        schema=CERTIFICATE_SCHEMA,
        algorithm=task.algorithm,
        model=claims,
        columns=described,
        rows=release.n_rows,
        published=release.table.num_rows,
        suppressed=release.n_rows - release.table.num_rows,
        suppression="drop",
        classes=len(sizes),
        statement=_statement(task, len(sizes)),
        node=dict(release.node) or None,
        heights={each.name: each.hierarchy.height for each in task.quasi_identifiers} if release.node else None,
        sensitive_counts=sensitive_counts(release, task),
        scales=measured,
        metrics=metrics(release, task, sizes, measured, claims.k),
        statistics=dict(release.statistics),
        parameters={
            "allow_unique": [each.name for each in task.carried if each.may_be_unique],
            "max_suppression": str(task.max_suppression),
            "insider_k": task.insider_k,
            "insiders": task.insiders,
            "disclose": task.disclose,
            "keys": task.keys,
            "k_site": task.k_site,
            "origin": task.origin,
        },
        hashes=Hashes(release=dict(hashes), configuration=configuration),
        software=Software(
            comine=software_version(),
            python=platform.python_version(),
            numpy=np.__version__,
            pyarrow=pa.__version__,
        ),
    ).sealed()


def _statement(task: JointAnonymisation, classes: int) -> str:
    text = (
        f"{classes} equivalence classes of at least {task.k} rows each in the union of all parties' rows; each meets "
        "every condition of the model."
    )
    if task.insider_k > 1 and task.insiders > 1:
        text += (
            f" Without the rows of up to {task.insiders} parties that put theirs together the others have none of a "
            f"class, or {task.insider_k} at least."
        )
    elif task.insider_k > 1:
        text += f" Without its own rows a party is left with none of a class, or with {task.insider_k} at least."
    if task.k_site is not None:
        text += f" A party has none of the rows of a class, or {task.k_site} at least."
    return text
