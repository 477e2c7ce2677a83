"""Plans of jobs at this node, for whoever looks at one again soon: each reads the data."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from typing import Final

from jobs.plan import Plan
from jobs.spec.job import JobSpec
from party.config import PartyConfig
from party.jobs.planning.estimate import local_plan
from party.jobs.planning.kept_speed import OF_THIS_MACHINE, KeptSpeed

KEEP_S: Final = 600.0
MOST: Final = 100


class KeptPlans:
    """Plans that were made within the last minutes; any thread may use them.

    Args:
        speed: Of the machine.
    """

    def __init__(self, speed: KeptSpeed = OF_THIS_MACHINE) -> None:
        self._busy, self._speed = threading.Lock(), speed
        self._plans: OrderedDict[bytes, tuple[float, Plan]] = OrderedDict()

    def plan(self, config: PartyConfig, spec: JobSpec) -> Plan:
        """The plan of a job; made where there is none, or under another file of the node.

        Raises:
            ComineError: As `local_plan`.
        """
        key, now = (
            spec.digest + hashlib.sha256(config.model_dump_json(warnings=False).encode()).digest(),
            time.monotonic(),
        )
        with self._busy:
            at, kept = self._plans.get(key, (0.0, None))
            if kept is not None and now - at < KEEP_S:
                return kept
            made = local_plan(config, spec, self._speed.speed())
            self._plans[key] = (now, made)
            self._plans.move_to_end(key)
            while len(self._plans) > MOST:
                self._plans.popitem(last=False)
            return made
