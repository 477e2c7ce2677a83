"""Simulates clients whose favourite page changes from round to round, and sends their reports through a gateway.

python fleet.py NODE HOST:PORT COLLECTION CLIENTS ROUNDS, beside the gateway's ca.crt, fleet.crt and fleet.key
"""

import sys
import time
from pathlib import Path

import numpy as np

from client.connection import Connection
from client.fleet import Fleet

PAGES = ["start", "search", "basket", "chess", "news", "weather", "maps", "mail"]


def values_in(number: int, clients: int) -> np.ndarray:
    """What the clients open in a round: fewer and fewer begin with `start`, more and more with `chess`."""
    shares = np.array([0.40 - 0.06 * number, 0.2, 0.15, 0.02 + 0.06 * number, 0.08, 0.06, 0.05, 0.04])
    counts = np.floor(shares * clients).astype(int)
    counts[1] += clients - counts.sum()
    return np.repeat(PAGES, counts)


def main() -> None:
    """Reports once a round."""
    node, address, collection, clients, rounds = sys.argv[1:]
    fleet = Fleet(int(clients))
    files = {"ca": Path("ca.crt"), "certificate": Path("fleet.crt"), "key": Path("fleet.key")}
    with Connection.open(node, address, **files) as connection:
        done = 0
        while done < int(rounds):
            sent = fleet.report(connection, collection, values_in(done, int(clients)))
            if sent.acknowledged:
                print(f"round {sent.round}: {sent.acknowledged} reports counted", flush=True)
                done += 1
            time.sleep(0.1)  # until the next round is open


if __name__ == "__main__":
    main()
