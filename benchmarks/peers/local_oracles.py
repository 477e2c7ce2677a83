"""Runs one frequency oracle of one tool: `local_oracles.py TOOL ORACLE --users N --values D --epsilon E`.

Runs in the environment of the peers and knows nothing of ours. Values follow a Zipf law with exponent 1.2. Prints one
JSON object: processor time in seconds of all clients and of the server with its estimates, and the root of the mean
squared error of the estimated counts.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

FUNCTIONS = 1024  # of sketches
BUCKETS = 1024
ZIPF = 1.2

Client = Callable[[int], object]
Server = Callable[[Sequence[object]], Sequence[float]]


def pure_ldp(oracle: str, d: int, epsilon: float) -> tuple[Client, Server]:
    from pure_ldp.frequency_oracles import (
        CMSClient,
        CMSServer,
        DEClient,
        DEServer,
        FastLHClient,
        FastLHServer,
        HadamardResponseClient,
        HadamardResponseServer,
        HEClient,
        HEServer,
        LHClient,
        LHServer,
        UEClient,
        UEServer,
    )

    own = {"epsilon": epsilon, "d": d, "index_mapper": int}
    match oracle:
        case "grr":
            client, server = DEClient(**own), DEServer(**own)
        case "sue" | "oue":
            client, server = UEClient(use_oue=oracle == "oue", **own), UEServer(use_oue=oracle == "oue", **own)
        case "she" | "the":
            client, server = HEClient(**own), HEServer(use_the=oracle == "the", **own)
        case "blh" | "olh":
            client, server = LHClient(use_olh=oracle == "olh", **own), LHServer(use_olh=oracle == "olh", **own)
        case "flh":
            client, server = (
                FastLHClient(k=FUNCTIONS, use_olh=True, **own),
                FastLHServer(k=FUNCTIONS, use_olh=True, **own),
            )
        case "hr":
            server = HadamardResponseServer(**own)
            client = HadamardResponseClient(hash_funcs=server.get_hash_funcs(), **own)
        case "cms" | "hcms":
            server = CMSServer(epsilon, FUNCTIONS, BUCKETS, is_hadamard=oracle == "hcms", index_mapper=int)
            client = CMSClient(epsilon, server.get_hash_funcs(), BUCKETS, is_hadamard=oracle == "hcms")
        case _:
            raise LookupError(f"pure-ldp has no {oracle}")

    def serve(reports: Sequence[object]) -> Sequence[float]:
        for report in reports:
            server.aggregate(report)
        return server.estimate_all(range(d), suppress_warnings=True)

    return client.privatise, serve


def multi_freq_ldpy(oracle: str, d: int, epsilon: float) -> tuple[Client, Server]:
    from multi_freq_ldpy.pure_frequency_oracles import GRR, HE, LH, SS, UE

    best = oracle in ("oue", "olh", "the")
    match oracle:
        case "grr":
            client, server = GRR.GRR_Client, lambda reports: GRR.GRR_Aggregator_MI(reports, d, epsilon)
        case "ss":
            client, server = SS.SS_Client, lambda reports: SS.SS_Aggregator_MI(reports, d, epsilon)
        case "sue" | "oue":
            client = lambda value, d, epsilon: UE.UE_Client(value, d, epsilon, best)  # noqa: E731
            server = lambda reports: UE.UE_Aggregator_MI(reports, epsilon, best)  # noqa: E731
        case "she" | "the":
            client, server = HE.HE_Client, lambda reports: HE.HE_Aggregator_MI(reports, d, epsilon, best)
        case "blh" | "olh":
            client = lambda value, d, epsilon: LH.LH_Client(value, d, epsilon, best)  # noqa: E731
            server = lambda reports: LH.LH_Aggregator_MI(reports, d, epsilon, best)  # noqa: E731
        case _:
            raise LookupError(f"multi-freq-ldpy has no {oracle}")
    return lambda value: client(value, d, epsilon), lambda reports: np.asarray(server(reports)) * len(reports)


TOOLS = {"pure-ldp": pure_ldp, "multi-freq-ldpy": multi_freq_ldpy}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", choices=TOOLS)
    parser.add_argument("oracle")
    parser.add_argument("--users", type=int)
    parser.add_argument("--values", type=int)
    parser.add_argument("--epsilon", type=float)
    given = parser.parse_args()
    try:
        client, server = TOOLS[given.tool](given.oracle, given.values, given.epsilon)
    except LookupError as error:
        print(json.dumps({"absent": str(error)}))
        return
    weights = np.arange(1, given.values + 1) ** -ZIPF
    values = np.random.default_rng(1).choice(given.values, given.users, p=weights / weights.sum()).tolist()
    server([client(value) for value in values[:2]])  # what is compiled when it is first used
    _, server = TOOLS[given.tool](given.oracle, given.values, given.epsilon)
    start = time.process_time()
    reports = [client(value) for value in values]
    middle = time.process_time()
    estimates = np.asarray(server(reports), dtype=float)
    end = time.process_time()
    if not np.isfinite(estimates).all():
        sys.exit(f"the estimates of {given.tool} are no numbers")
    errors = estimates - np.bincount(values, minlength=given.values)
    rmse = float(np.sqrt(np.mean(np.square(errors))))
    print(json.dumps({"client_s": middle - start, "server_s": end - middle, "rmse": rmse}))


if __name__ == "__main__":
    main()
