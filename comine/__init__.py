"""comine: organisations compute together what none may hand over.

What the commands do, from Python:

    import comine

    result = comine.simulate("job.toml", {"north": "north.dat.gz", "south": [["bread", "milk"], ["bread"]]})
    result.itemsets()

    federation = comine.Federation.connect("federation.toml")
    federation.plan("job.toml").prose
    federation.run("job.toml").save("out")
    job = federation.submit("job.toml")
    job.result().rules()

    comine.anonymize("anonymize.toml").save("release")
"""

from __future__ import annotations

TYPE_CHECKING = False  # that of typing takes longer to load than all of this
if TYPE_CHECKING:
    from comine.api import DataWarning, Federation, load_model, simulate
    from comine.handle import JobHandle
    from comine.planned import Plan
    from jobs.anonymization.api import Anonymized, anonymize
    from jobs.kinds.models.model import Model
    from jobs.results.result import Result
    from link.errors import ComineError
    from mining.data.transactions import Transactions
    from mining.hiding.hide import hide
    from mining.hiding.sensitive import SensitiveRule, Thresholds

__version__: str
__all__ = [
    "Anonymized",
    "ComineError",
    "DataWarning",
    "Federation",
    "JobHandle",
    "Model",
    "Plan",
    "Result",
    "SensitiveRule",
    "Thresholds",
    "Transactions",
    "anonymize",
    "hide",
    "load_model",
    "simulate",
]

_HOMES = {
    "Anonymized": "jobs.anonymization.api",
    "ComineError": "link.errors",
    "DataWarning": "comine.api",
    "Federation": "comine.api",
    "JobHandle": "comine.handle",
    "Model": "jobs.kinds.models.model",
    "Plan": "comine.planned",
    "Result": "jobs.results.result",
    "SensitiveRule": "mining.hiding.sensitive",
    "Thresholds": "mining.hiding.sensitive",
    "Transactions": "mining.data.transactions",
    "anonymize": "jobs.anonymization.api",
    "hide": "mining.hiding.hide",
    "load_model": "comine.api",
    "simulate": "comine.api",
}


if not TYPE_CHECKING:  # there, a name that is not public is an error

    def __getattr__(name: str) -> object:
        """Loads a public name when it is first used, so that `import comine` costs nothing."""
        if name == "__version__":
            from importlib.metadata import version

            return version("comine")
        if name not in _HOMES:
            raise AttributeError(f"module 'comine' has no attribute '{name}'")
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
