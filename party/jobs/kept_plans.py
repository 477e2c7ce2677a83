"""Plans of jobs at this node, for whoever looks at one again soon: each reads the data and measures the machine."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from typing import Final

from jobs.plan import Plan
from jobs.plan.calibration import Speed
from jobs.spec.job import JobSpec
from party.config import PartyConfig
from party.jobs.estimate import local_plan, own_speed

KEEP_S: Final = 600.0
MOST: Final = 100


class KeptPlans:
    """Plans that were made within the last minutes, with the speed of the machine then; any thread may use it."""

    def __init__(self) -> None:
        self._busy = threading.Lock()
        self._plans: OrderedDict[bytes, tuple[float, Plan]] = OrderedDict()
        self._speed: tuple[float, Speed] | None = None

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
            if self._speed is None or now - self._speed[0] > KEEP_S:
                self._speed = (now, own_speed())
            made = local_plan(config, spec, self._speed[1])
            self._plans[key] = (now, made)
            self._plans.move_to_end(key)
            while len(self._plans) > MOST:
                self._plans.popitem(last=False)
            return made
