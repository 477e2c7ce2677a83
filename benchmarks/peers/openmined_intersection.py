"""Intersects two lists of identifiers with OpenMined PSI: `openmined_intersection.py ROWS`.

Runs in the environment of the peer and knows nothing of ours. Client and server are in one process and hand over
encoded messages. Half of the identifiers are common; the client learns which. Prints one JSON object: seconds and
processor seconds of the protocol, and the bytes of all messages, by how the server's list is encoded.
"""

from __future__ import annotations

import json
import sys
import time

import private_set_intersection.python as psi

FALSE_POSITIVES = 1e-9


def main(rows: int) -> None:
    client_rows = [f"r{number:09d}" for number in range(rows)]
    server_rows = [f"r{number:09d}" for number in range(rows // 2, rows // 2 + rows)]
    costs = {}
    for name, encoding in (("raw", psi.DataStructure.RAW), ("GCS", psi.DataStructure.GCS)):
        start, cpu = time.perf_counter(), time.process_time()
        client, server = psi.client.CreateWithNewKey(True), psi.server.CreateWithNewKey(True)
        setup = server.CreateSetupMessage(FALSE_POSITIVES, rows, server_rows, encoding).SerializeToString()
        request = client.CreateRequest(client_rows).SerializeToString()
        response = server.ProcessRequest(_read(psi.Request(), request)).SerializeToString()
        common = client.GetIntersection(_read(psi.ServerSetup(), setup), _read(psi.Response(), response))
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        if sorted(common) != list(range(rows // 2, rows)):
            sys.exit("OpenMined PSI's intersection is wrong")
        costs[name] = {"seconds": seconds, "cpu_s": cpu, "bytes": len(setup) + len(request) + len(response)}
    print(json.dumps(costs))


def _read(message, octets: bytes):  # type: ignore[no-untyped-def]
    message.ParseFromString(octets)
    return message


if __name__ == "__main__":
    main(int(sys.argv[1]))
