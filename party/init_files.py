"""What `comine init` writes: a node's `party.toml` and a federation's `federation.toml`, each key explained."""

from __future__ import annotations

import contextlib
import os
import secrets
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Final

from jobs.federation import Federation, check_address
from jobs.spec.toml import validate
from link.errors import ConfigurationError, ResourceError
from link.files.toml_text import quoted
from link.pki.identity import check_name
from mining.public_sizes import PublicSizes
from party.config import PartyConfig

PARTY_FILE: Final = "party.toml"
FEDERATION_FILE: Final = "federation.toml"

_NODE: Final = """\
# The node of {name}. Paths are taken from the folder of this file.
# Look it over with `comine party check {file}`; `comine docs reference-keys` lists all keys.

[party]
name = {name_text:<25}# as in the certificate and in the federation file
{listen}state_dir = "state"             # jobs, audit log and received results; back it up, and let nobody else read it
federation = "federation.toml"  # who belongs to the federation: the only ones that this node communicates with
# max_running = 4               # jobs that may run at once; further ones wait for their turn
# memory = 8_000_000_000        # bytes that jobs at once are expected to take together, by [dataset.publish]
# keep_jobs = "365d"            # for which jobs that have ended stay in the inbox; the audit log keeps them for ever

[tls]                           # made by comine pki request {name} here, and comine pki sign at the authority
ca = "pki/ca.crt"               # the authority that all members trust
certificate = {certificate}
key = {key:<26}# secret: mode 0600, and it never leaves this machine
# crl = "pki/ca.crl"            # revoked certificates; without this line, ca.crl beside ca.crt where there is one
"""

_LISTEN: Final = """\
listen = {listen:<23}# where coordinators and the other parties call; "0.0.0.0:PORT" listens on all addresses
"""

_JOBS: Final = """
[[dataset]]
name = {dataset:<25}# jobs ask for data by this name, so all parties use the same
kind = {kind}
{source}
{publish}
[dataset.privacy]               # what jobs that add noise may cost each row in all; comine party budget shows the rest
epsilon = 2.0                   # towards anyone who sees their results
delta = 1e-5                    # the probability of more: far below one in the number of rows
local_epsilon = 16.0            # towards anyone who sees the row's perturbed reports as they leave
# period = "365d"               # only jobs count that were started within it; all, without this line
# composition = "basic"         # how jobs add up
exact = "allow"                 # jobs without noise, which the rules below judge; "refuse" takes none of them

# What may be computed here. Every rule that is written is enforced; a job that breaks one is refused, and its
# coordinator is told which. The same keys under [dataset.policy] hold for one dataset alone.
# `comine docs write-a-policy` explains what each protects against.
[policy]
approve = "manual"              # a person decides on every job: comine party inbox|show|approve|deny {file}
                                # "auto" approves whatever the rules below allow
# approvals = 2                 # how many people must approve a job
# release = "manual"            # a person sees what a job has found before any of it is handed over
tasks = ["itemsets", "rules"]   # what jobs may compute; also "align", "naive-bayes", "decision-tree", "k-means" and
                                # "anonymize", which publishes rows: see columns and min_insider_k
min_parties = 3                 # with two parties, a sum shows each the other's number
min_support = 0.001             # the lowest support that a job may ask for as a fraction of all parties' transactions,
min_count = 10                  # and the lowest count of them: what fewer have in common could point at somebody;
                                # so many rows are in each class of a release, too
min_insider_k = 2               # rows of others in a class of a release, or none, once a party takes its own away
max_releases = 1                # releases of a dataset's rows in all: of the same rows they combine, and show together
                                # what each of them hides; those that come to nothing count apart, up to 20
party_sets = "fixed"            # the same parties in every job: the difference between two sums with and without
                                # somebody would be that somebody's number
max_jobs = 20                   # jobs on a dataset within max_jobs_period: many answers together reveal more than each,
max_jobs_period = "30d"         # and a job that fails reveals something, too
min_new_rows = 100              # rows that must have come or gone between two jobs, else their difference shows few
min_group = 10                  # the same between any two jobs, however far apart; and with sums of other sets of
                                # parties, should party_sets go, none of fewer parties than min_parties follows
max_candidates = 5000000        # the most candidates that a job may ask for: peers may send so many numbers ahead
# coordinators = ["analyst"]    # who may propose jobs; all coordinators of the federation otherwise
# peers = ["south", "east"]     # who may take part; all of the federation file otherwise
# max_length = 5                # the most items of an itemset; the job must set a limit no higher
# withhold = ["hiv*"]           # patterns of items that no job may see: they are left out as the data are read, and
                                # jobs must exclude them; of tables these are column=value, and no release or model
                                # takes a column that may hold it
# max_failed_releases = 20      # releases that may come to nothing on the rows
# columns = {{ age = ["quasi_identifiers"], diagnosis = ["sensitive"] }}  # all that releases may have, generalised or,
                                # "sensitive" and "insensitive", as they are; without it any
# max_plans = 100               # plans that each coordinator may ask for within 24 hours
# max_open_jobs = 256           # jobs of each coordinator that have not ended
# max_running_jobs = 2          # jobs of each that may run at once; as many as max_running otherwise
# max_proposals = 240           # proposals of each within a minute
# max_failed_jobs = 20          # jobs of each on a dataset that may fail within 24 hours because of it
# disclose = ["supports", "frequent"]  # what a job may open beside which itemsets are frequent
# keys = "union"                # lets a release show which combinations of values occur; refused otherwise
# compute = ["south", "east"]   # who may hold the shares of sums that stay hidden
# engines = ["ot", "paillier"]  # how jobs on columns may compute: "replicated" needs a helper
# helpers = []                  # who may help (parties, "coordinator"), and with one more could read columns or counts
# security = "malicious"        # only jobs that a node which deviates cannot harm
# column_groups = "refuse"      # no jobs in which several parties hold the same columns of different rows
# models = ["distributed", "shuffle"]  # how results are protected; also "exact", "local", "blended"
# max_epsilon = 2.0             # the most that a job may cost a row, towards anyone who sees its result,
# max_delta = 1e-5              # and with what probability more
# max_local_epsilon = 8.0       # the most that a row's report may cost it as it leaves
# analysts = ["south"]          # parties that may see reports
# shufflers = ["east"]          # parties that may shuffle them
# kinds = []                    # plug-ins whose jobs may run: rules on what a job opens cannot judge these
# max_deadline = "2h"           # the longest that a job may take
# max_union_bound = 100000      # the most fakes that a job may ask for
# max_expiry = "7d"             # for how long a proposal may wait for its answer
# [[policy.approval]]           # exceptions from `approve`: the first that fits a job decides
# coordinators = ["analyst"]
# tasks = ["itemsets"]
# decide = "auto"               # "auto", "manual" or "refuse"
"""

_PUBLISH: Final = """\
# What those who plan jobs here learn of the size of the data: without these lines, nothing. Plans are the better for
# them. Numbers are shown as 1, 2 or 5 times a power of ten, and none below 100: comine party check measures them
"""
_SOME_SIZES: Final = "[dataset.publish]\nrows = 20_000\n"
_TOO_FEW: Final = "(there are fewer than 100 rows, of which nothing would be shown)\n"

_COLLECTS: Final = """
# What coordinators may collect here from people's devices, whose reports are perturbed before they leave. Without this
# table the node collects nothing. `comine docs tasks/frequency-service` shows how it goes.
{comment}[frequency]
{rule:<32}# the largest epsilon of a report: a collection that asks for more is refused
# create = ["analyst"]          # who may create collections; all coordinators of the federation otherwise
# mechanisms = ["auto", "olh"]  # by which clients may perturb their values
# max_collections = 100         # collections that are open at once
# max_domain = 1048576          # values that one may ask for
# min_window = "1h"             # the shortest window that one may have
# min_reports = 1000            # an estimate of fewer reports is not shown
# max_disk = 10737418240        # bytes that all collections may take; beyond, no report is taken
# max_memory = 2147483648       # bytes for whose reports have come, 26 for each; beyond, no report is taken
"""

_FEDERATION: Final = """\
# Who belongs to the federation, and where. All parties and the coordinator use the same list, so agree on it.

[federation]
name = "federation"             # for people

[[party]]
name = {name_text}
{address}# pin = "…"                     # its only certificate: the SHA-256 that `comine pki show` prints

# [[party]]                     # one such table for each other party
# name = "south"
# address = "south.example:7101"

{relay}# [coordinator]                 # only where jobs are started
# ca = "pki/ca.crt"
# certificate = "pki/analyst.crt"
# key = "pki/analyst.key"
# state_dir = "jobs"            # where the coordinator keeps its jobs

# [coordinator_pins]            # the only certificates that are believed of coordinators
# analyst = "…"
"""


_ADDRESS: Final = "address = {address:<22}# HOST:PORT at which the coordinator and the others reach the node\n"
_RELAY: Final = """\
[relay]                         # connects the parties without address, whose nodes only dial out
address = {address:<22}# HOST:PORT

"""


def render_party(
    name: str,
    *,
    listen: str | None,
    dataset: str,
    source: Mapping[str, str | list[str]] | None,
    publishable: PublicSizes | None = None,
) -> str:
    """The text of a node's file.

    Args:
        name: The party.
        listen: HOST:PORT; None where a relay connects the node.
        dataset: The name of its dataset.
        source: The keys that say where the dataset is and how it is written; its kind is transactions by default. None:
            the node has no data, and only collects reports.
        publishable: What may be published of its size, coarsely; None where nobody has looked at the data.

    Raises:
        ConfigurationError: A value cannot be used; the sentence names its key.
    """
    check_name(name)
    text = _NODE.format(
        name=name,
        name_text=quoted(name),
        file=PARTY_FILE,
        certificate=quoted(f"pki/{name}.crt"),
        key=quoted(f"pki/{name}.key"),
        listen="" if listen is None else _LISTEN.format(listen=quoted(listen)),
    )
    if source is not None:
        text += _JOBS.format(
            file=PARTY_FILE,
            dataset=quoted(dataset),
            kind=quoted(source.get("kind", "transactions")),
            source="\n".join(f"{key} = {quoted(value)}" for key, value in source.items() if key != "kind"),
            publish=_PUBLISH + "\n".join(f"# {line}" for line in _sizes(publishable).splitlines()),
        )
    comment = "" if source is None else "# "
    text += _COLLECTS.format(comment=comment, rule=f"{comment}max_epsilon = 2.0")
    validate(PartyConfig, tomllib.loads(text, parse_float=Decimal), f"the new {PARTY_FILE}")
    return text


def _sizes(publishable: PublicSizes | None) -> str:
    """The lines of `[dataset.publish]`, or why there are none."""
    return _SOME_SIZES if publishable is None else publishable.as_toml() or _TOO_FEW


def render_federation(name: str, listen: str | None, relay: str | None = None) -> str:
    """The text of a federation file with this party alone.

    Args:
        name: The party.
        listen: Where its node listens; None where a relay connects it.
        relay: HOST:PORT of the relay.
    """
    written, connected = "", "" if relay is None else _RELAY.format(address=quoted(relay))
    if listen is not None:
        host, _, port = check_address(listen).rpartition(":")
        address = f"{name}.example:{port}" if host in ("0.0.0.0", "[::]", "::") else listen  # noqa: S104
        written = _ADDRESS.format(address=quoted(address))
    text = _FEDERATION.format(name_text=quoted(name), address=written, relay=connected)
    validate(Federation, tomllib.loads(text), f"the new {FEDERATION_FILE}")
    return text


def write_files(folder: Path, files: Mapping[str, str], *, keep: frozenset[str], force: bool) -> list[Path]:
    """Writes all files or none, readable by their owner alone.

    Args:
        folder: Made where it is missing.
        files: Contents by name; what may replace an old file is last, so that nothing can fail after it.
        keep: Files that stay as they are where they exist.
        force: Whether the others may be replaced.

    Returns:
        What was written.

    Raises:
        ConfigurationError: A file exists and may not be replaced.
        ResourceError: The folder cannot be written.
    """
    wanted = {folder / name: text for name, text in files.items() if not (name in keep and (folder / name).exists())}
    for path in wanted:
        if path.exists() and not force:
            raise ConfigurationError(f"{path} exists; use --force to replace it, or --out to write elsewhere")
    drafts = {path: path.with_name(f".{path.name}.{secrets.token_hex(4)}") for path in wanted}
    done: list[Path] = []
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, draft in drafts.items():
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(wanted[path])
        for path, draft in drafts.items():
            draft.replace(path)
            done.append(path)
    except OSError as error:
        for path in (*drafts.values(), *done):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        for place in made:
            with contextlib.suppress(OSError):
                place.rmdir()
        raise ResourceError(f"{folder} cannot be written ({error.strerror}); choose another folder") from None
    return list(wanted)
