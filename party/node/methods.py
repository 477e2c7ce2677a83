"""Every method of a node: who may call it, and how long one of its requests may be.

A method that is not listed here does not exist for anybody. The sizes are those of the largest honest request, with
room; they keep a short request from being unfolded into a large object, and bound what a caller may have under way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from link.pki.identity import Role

_COORDINATORS: Final[frozenset[Role]] = frozenset({"coordinator"})
_CLIENTS: Final[frozenset[Role]] = frozenset({"client"})
_PARTIES: Final[frozenset[Role]] = frozenset({"party"})
_ALL: Final = _COORDINATORS | _CLIENTS | _PARTIES

_KB: Final = 1 << 10
_MB: Final = 1 << 20
SHORT_BYTES: Final = 64 * _KB


class Method(NamedTuple):
    """What holds for a method.

    Attributes:
        roles: Who may call it.
        most: Bytes of one request; of each, in a stream.
    """

    roles: frozenset[Role]
    most: int = SHORT_BYTES


_SPECIFICATION: Final = 4 * _MB  # a job file with its lists of items, signed
_REPORTS: Final = 6 * _MB  # services refuse more than 4 MiB of reports by a sentence of their own

METHODS: Final[Mapping[str, Mapping[str, Method]]] = {
    "comine.v1.Control": {
        "Describe": Method(_COORDINATORS),
        "Estimate": Method(_COORDINATORS, _SPECIFICATION),
        "Propose": Method(_COORDINATORS, _SPECIFICATION),
        "Queue": Method(_COORDINATORS),
        "Start": Method(_COORDINATORS, 512 * _KB),  # with the approvals of up to 64 parties
        "Watch": Method(_COORDINATORS),
        "Deal": Method(_COORDINATORS, 2 * _MB),
        "Result": Method(_COORDINATORS),
        "Cancel": Method(_COORDINATORS),
    },
    "comine.v1.FrequencyEstimation": {
        "Create": Method(_COORDINATORS, 4 * _MB),
        "List": Method(_COORDINATORS),
        "Describe": Method(_COORDINATORS | _CLIENTS),
        "Domain": Method(_COORDINATORS | _CLIENTS),
        "Submit": Method(_CLIENTS, _REPORTS),
        "Estimate": Method(_COORDINATORS, _REPORTS),  # with texts to look for
        "Watch": Method(_COORDINATORS, _REPORTS),
        "Export": Method(_COORDINATORS),
        "Close": Method(_COORDINATORS),
        "Delete": Method(_COORDINATORS),
    },
    "comine.v1.Shuffler": {
        "Create": Method(_COORDINATORS, _MB),
        "Describe": Method(_ALL),
        "Submit": Method(_CLIENTS | _PARTIES, _REPORTS),
        "Flush": Method(_COORDINATORS),
        "Forward": Method(_PARTIES, 4 * _MB),
        "Collect": Method(_COORDINATORS | _PARTIES),
        "Retire": Method(_COORDINATORS),
    },
    "comine.v1.Anonymization": {
        "ListDatasets": Method(_COORDINATORS),
        "Query": Method(_COORDINATORS, _MB),
        "Anonymize": Method(_COORDINATORS, 7 * _MB),  # with hierarchies
    },
    "grpc.health.v1.Health": {"Check": Method(_ALL)},
    "grpc.reflection.v1alpha.ServerReflection": {"ServerReflectionInfo": Method(_ALL)},
}
