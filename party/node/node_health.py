"""A node's health as it reports it: that it serves, and that its disk takes what it has to write."""

from __future__ import annotations

from typing import Any

from grpc_health.v1 import health, health_pb2

from link.errors import ResourceError
from link.logs.structured import Log
from party.node.probe import Probe


class NodeHealth(health.aio.HealthServicer):  # type: ignore[misc]  # it has no types
    """The standard health service; the disk is tried when somebody asks.

    Args:
        probe: Of the state folder.
        log: The node's log, which has the reason.
    """

    def __init__(self, probe: Probe, log: Log) -> None:
        super().__init__()
        self._probe, self._log, self._problem = probe, log, ""

    async def Check(self, request: health_pb2.HealthCheckRequest, context: Any) -> health_pb2.HealthCheckResponse:  # noqa: N802
        """The status of a service, or of all."""
        answer: health_pb2.HealthCheckResponse = await super().Check(request, context)
        if answer.status != health_pb2.HealthCheckResponse.SERVING:
            return answer
        problem = await self._probe.problem()
        if problem and problem != self._problem:
            self._log.error("disk unwell", error=ResourceError(problem))
        elif self._problem and not problem:
            self._log.info("disk well")
        self._problem = problem
        return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.NOT_SERVING) if problem else answer
