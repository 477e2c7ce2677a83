"""Intersects two lists of identifiers with SPU: `spu_intersection.py ROWS`.

Runs in the environment of the peer and knows nothing of ours. Both parties are threads of one process, with files for
what they have and find, half of it common; both learn it. Prints one JSON object: seconds and processor seconds, by
protocol. SPU does not say how many bytes its parties send in one process.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

from spu import libspu, psi

PROTOCOLS = {"RR22": psi.PsiProtocol.PROTOCOL_RR22, "KKRT": psi.PsiProtocol.PROTOCOL_KKRT}


def main(rows: int) -> None:
    costs = {}
    output = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the library logs there, at its end too
    with tempfile.TemporaryDirectory() as folder:
        for rank in range(2):
            first = rank * (rows // 2)
            lines = (f"r{number:09d}\n" for number in range(first, first + rows))
            Path(folder, f"in{rank}.csv").write_text("id\n" + "".join(lines))
        for name, protocol in PROTOCOLS.items():
            start, cpu = time.perf_counter(), time.process_time()
            found = _intersect(folder, name, protocol)
            seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
            if found != [rows - rows // 2] * 2:
                sys.exit("SPU's intersection is wrong")
            costs[name] = {"seconds": seconds, "cpu_s": cpu, "bytes": None}
    os.write(output, json.dumps(costs).encode())


def _intersect(folder: str, name: str, protocol: psi.PsiProtocol) -> list[int]:
    """How many rows each party finds."""
    description = libspu.link.Desc()
    description.id = name
    for rank in range(2):
        description.add_party(f"party-{rank}", f"thread_{rank}")
    found = [-1, -1]

    def party(rank: int) -> None:
        context = libspu.link.create_mem(description, rank)
        config = psi.PsiExecuteConfig(
            protocol_conf=psi.PsiProtocolConfig(protocol=protocol, receiver_rank=0, broadcast_result=True),
            input_params=psi.InputParams(path=f"{folder}/in{rank}.csv", selected_keys=["id"], keys_unique=True),
            output_params=psi.OutputParams(path=f"{folder}/out{rank}.csv", disable_alignment=True),
        )
        found[rank] = psi.psi_execute(config, context).intersection_count
        context.stop_link()

    threads = [threading.Thread(target=party, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]))
