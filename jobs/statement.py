"""The disclosure statement of a job: who learns what, under which adversary and collusion bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from jobs import fitness
from jobs.kinds.blended.parameters import blended_mining, is_blended
from jobs.kinds.noisy.parameters import distributed_mining, is_noisy
from jobs.kinds.reported.parameters import hybrid_mining, is_reported
from jobs.parameters import horizontal_mining, row_alignment, vertical_mining
from jobs.spec import JobSpec
from jobs.union_limit import takes_unions
from link.disclosure import Declared, Learned
from mining.joint.collusion import collusion as opened_sums
from mining.joint.disclosure import learned, openings

_MODELS: Final[Mapping[str, str]] = {
    "naive-bayes": "the naive Bayes model with all counts that it is made of",
    "decision-tree": "the decision tree with the rows of each class at each node",
    "k-means": "the centroids and the number of rows of each cluster",
}


@dataclass(frozen=True, slots=True)
class Statement:
    """What exactly this job discloses.

    Attributes:
        adversary: The behaviour against which it holds.
        collusion: How many colluders it withstands.
        declared: Every label under which a party may open something; enforced while the job runs.
        learned: Who learns what.
        beyond: What no statement of a single job can cover.
    """

    adversary: str
    collusion: str
    declared: tuple[Declared, ...]
    learned: tuple[Learned, ...]
    beyond: tuple[str, ...]

    def as_data(self) -> list[dict[str, Any]]:
        """The statement as JSON values."""
        return [
            {"adversary": self.adversary, "collusion": self.collusion},
            *({"who": list(line.who), "kind": line.kind, "what": line.what} for line in self.learned),
            *(
                {
                    "label": d.label,
                    "recipients": sorted(d.recipients),
                    "what": d.what,
                    "maximum": d.maximum,
                    "when": d.when,
                }
                for d in self.declared
            ),
            *({"beyond": line} for line in self.beyond),
        ]

    def prose(self) -> list[str]:
        """The statement as sentences."""
        return [
            f"Adversary: {self.adversary}. Collusion: {self.collusion}.",
            *(f"{_names(line.who)} {_learn(line.who)} {line.what}." for line in self.learned),
            *(f"Not covered: {line}." for line in self.beyond),
        ]


def statement(spec: JobSpec) -> Statement:
    """The statement of a job, from its specification alone: every party computes the same."""
    parties = spec.job.parties
    receivers = tuple(dict.fromkeys(r for name in spec.job.recipients for r in _expand(name, parties)))
    released = Learned(receivers, "result", _result(spec))
    if spec.trains:
        from jobs.kinds.models import learning as model_task

        declared, lines, collusion = model_task.openings(spec), model_task.learned(spec), model_task.collusion(spec)
    elif spec.anonymizes:
        from jobs.kinds.release import anonymising as anonymize_task

        declared, lines = anonymize_task.openings(spec), anonymize_task.learned(spec)
        collusion = anonymize_task.collusion(spec)
    elif not spec.mines:
        from mining.joint import align

        ids, collusion = row_alignment(spec), align.collusion(parties)
        declared, lines = align.openings(ids, parties), align.learned(ids, parties)
    elif is_reported(spec):
        from mining.joint.hybrid import disclosure as hybrid

        reported = hybrid_mining(spec)
        declared, lines = hybrid.openings(reported, parties), hybrid.learned(reported, parties)
        collusion = hybrid.collusion(reported)
    elif is_noisy(spec):
        from mining.joint.distributed import disclosure as distributed

        noisy = distributed_mining(spec)
        declared, lines = distributed.openings(noisy, parties), distributed.learned(noisy, parties)
        collusion = distributed.collusion(noisy, parties)
    elif is_blended(spec):
        from mining.joint.blended import disclosure as blended

        trusting = blended_mining(spec)
        declared, lines = blended.openings(trusting, parties), blended.learned(trusting, parties)
        collusion = blended.collusion(trusting)
    elif spec.is_vertical:
        from mining.joint.vertical import disclosure as vertical

        columns = vertical_mining(spec)
        declared, lines = vertical.openings(columns, parties), vertical.learned(columns, parties)
        collusion = vertical.collusion(columns, parties)
    else:
        rows = horizontal_mining(spec)
        declared, lines, collusion = openings(rows, parties), learned(rows, parties), _collusion(spec)
    return Statement(
        adversary="semi-honest: every party follows the protocol and may study all it sees",
        collusion=collusion,
        declared=declared,
        learned=(released, _progress(spec), *fitness.learned(spec, declared), *_uncut(spec), *lines, *_excluded(spec)),
        beyond=(
            "what a modified node sends, or an invented input",
            "the sizes and times of messages",
            "what several jobs on overlapping data tell together",
            *_combining(spec),
        ),
    )


def _combining(spec: JobSpec) -> tuple[str, ...]:
    """What a release leaves open that keeps all its promises."""
    if not spec.anonymizes:
        return ()
    combine = (
        "what this release tells together with other releases of the same rows: they combine, and a value that each of "
        "them hides may follow from all. Each party counts the releases of its rows (rule max_releases), and tells in "
        "its plan and its inbox which one this is"
    )
    if spec.is_vertical:
        return (combine,)
    return (
        combine,
        "how many rows a person has: what the model asks of classes is asked of rows, and who has rows at several "
        "parties, or several at one, is hidden among fewer persons than k",
    )


def _progress(spec: JobSpec) -> Learned:
    """What whoever watches a job sees, recipient or not."""
    if spec.trains:
        n_rows = "" if spec.to_coordinator else "the number of rows, "
        what = f"{n_rows}the steps of the job or why it failed, and each party's bytes, rounds and seconds"
        if spec.decision_tree is not None:
            what += ", which tell how many nodes each level of the tree has"
        elif spec.k_means is not None:
            what += ", which tell the number of iterations"
        return Learned(("coordinator",), "size", what)
    if spec.anonymizes:
        n_rows = "" if spec.to_coordinator else "the number of rows, "
        what = (
            f"{n_rows}the steps of the job or why it failed, and each party's bytes, rounds and seconds, which tell "
            "how many nodes are looked at"
        )
        return Learned(("coordinator",), "size", what)
    if not spec.mines:
        result = "" if spec.to_coordinator else f"{_result(spec)}, "
        what = f"{result}the steps of the job or why it failed, and each party's bytes, rounds and seconds"
        return Learned(("coordinator",), "size", what)
    n_rows = "" if spec.to_coordinator else "N, "
    if is_reported(spec):
        what = (
            f"{n_rows}the search taken, the steps of the job or why it failed, and each party's bytes, rounds and "
            "seconds, which tell the parties' numbers of records and the number of candidates"
        )
        return Learned(("coordinator",), "size", what)
    if is_noisy(spec):
        what = (
            f"{n_rows}the steps of the job or why it failed, and each party's bytes, rounds and seconds, which tell "
            "the number of candidates; all of these follow from what is opened with noise"
        )
        return Learned(("coordinator",), "size", what)
    if is_blended(spec):
        what = (
            f"{n_rows}the steps of the job or why it failed, and each party's bytes, rounds and seconds, which tell "
            "the number of items that are asked about, and follow from what is opened with noise"
        )
        return Learned(("coordinator",), "size", what)
    what = (
        f"{n_rows}the strategy taken, the steps of the job or why it failed, and each party's bytes, rounds and "
        "seconds, which tell the number of candidates and the greatest length of a frequent itemset"
        + (", and of each union nearly how many elements all its sets hold together" if takes_unions(spec) else "")
    )
    return Learned(("coordinator",), "size", what)


def _uncut(spec: JobSpec) -> tuple[Learned, ...]:
    """Every party that learns supports cuts its result to the first k after the protocol, which finds all."""
    if spec.privacy.model != "exact" or not spec.mines or spec.itemsets.top_k is None:
        return ()
    what = (
        "all frequent itemsets with their supports, not only those of the result: each party that learns supports "
        f"takes {_most_frequent(spec.itemsets.top_k)} out of them at the end"
    )
    return (Learned(spec.learners, "result", what),)


def _excluded(spec: JobSpec) -> tuple[Learned, ...]:
    if not (spec.mines and spec.itemsets.exclude):
        return ()
    patterns = ", ".join(f"'{pattern}'" for pattern in spec.itemsets.exclude)
    what = f"nothing of items that match {patterns}: every party removes them from its rows beforehand"
    return (Learned(spec.job.parties, "membership", what),)


def _expand(recipient: str, parties: tuple[str, ...]) -> tuple[str, ...]:
    return ("coordinator", *parties) if recipient == "all" else (recipient,)


def _result(spec: JobSpec) -> str:
    if spec.trains:
        return f"{_MODELS[spec.job.task]}, and the number of rows that it is learnt from"
    if spec.anonymizes:
        return "the release: its rows, its node and its classes, and the number of rows that it is made from"
    if not spec.mines:
        union = spec.alignment.mode == "union"
        return "the number of positions of rows" if union else "the number N of rows that all parties have"
    rules = spec.job.task == "rules"
    if is_reported(spec):
        found = "the itemsets that seem most frequent with estimated supports"
        return f"{found}{' and association rules with estimated confidences' if rules else ''}, and N"
    if is_noisy(spec):
        found = "the itemsets whose noisy supports are large enough, with these"
        return f"{found}{' and association rules with estimated confidences' if rules else ''}, and N with noise"
    if is_blended(spec):
        return "the items that seem most frequent with estimated supports, and N"
    if spec.itemsets.disclose == "frequent":
        return "which itemsets are frequent" + (" and which association rules hold" if rules else "") + ", and N"
    found = "all frequent itemsets with their supports"
    if spec.itemsets.top_k is not None:
        found = f"of all frequent itemsets {_most_frequent(spec.itemsets.top_k)}, with supports"
    return f"{found}{' and the association rules that follow' if rules else ''}, and N"


def _most_frequent(k: int) -> str:
    return f"the {k:,} most frequent" if k > 1 else "the most frequent one"


def _collusion(spec: JobSpec) -> str:
    parties, union = spec.job.parties, "a merger that colludes learns more of who shares what"
    first, second = spec.compute
    if spec.itemsets.disclose == "candidates":
        if len(parties) == 2:
            return opened_sums(parties)
        return f"{opened_sums(parties)}; the unions withstand single parties, and {union}"
    if len(parties) == 2:
        return "none is needed: each of the two parties is alone"
    together = "the third party's count" if len(parties) == 3 else "the sum over the others"
    hidden = (
        f"sums that stay hidden withstand all parties but {first} and {second}; these two together could learn "
        f"{together} of every candidate"
    )
    opened = "" if spec.itemsets.disclose == "frequent" else f"; {opened_sums(parties)}"
    return f"{hidden}{opened}; the unions withstand single parties, and {union}"


def _names(who: tuple[str, ...]) -> str:
    *some, last = who
    return f"{', '.join(some)} and {last}" if some else last


def _learn(who: tuple[str, ...]) -> str:
    return "learns" if len(who) == 1 else "learn"
