"""Makes the three shops' tables of this example: invented, seeded, a few kilobytes.

    python make_data.py

The shops share a loyalty card, and each notes other things of who carries it. Families buy for breakfast and babies,
spend more, and come weekly. Each shop has never seen some of the cards.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path

CARDS = 400
SEEN = 0.9  # probability that a shop has seen a card
KINDS = {  # of households: how many in ten, and what is likely of each
    "single": (4, {"usual": ("snack", "pasta"), "spends": (5, 40), "visits": ("rarely", "monthly")}),
    "couple": (3, {"usual": ("pasta", "salad"), "spends": (20, 70), "visits": ("monthly", "weekly")}),
    "family": (3, {"usual": ("breakfast", "baby"), "spends": (50, 140), "visits": ("weekly", "weekly")}),
}
COLUMNS = {"north": ("household", "age"), "south": ("usual", "spends"), "east": ("visits", "pays")}
LIKELY = 0.8  # that a household is as its kind


def cards(random_numbers: random.Random) -> list[dict[str, str]]:
    """What all shops together know of each card."""
    made = []
    for number in range(CARDS):
        (kind,) = random_numbers.choices(list(KINDS), [share for share, _ in KINDS.values()])
        typical = kind if random_numbers.random() < LIKELY else random_numbers.choice(list(KINDS))
        habits = KINDS[typical][1]
        made.append(
            {
                "card": f"C{number:04}",
                "household": kind,
                "age": str(random_numbers.randint(25, 50) if kind == "family" else random_numbers.randint(18, 85)),
                "usual": random_numbers.choice(habits["usual"]),
                "spends": str(random_numbers.randint(*habits["spends"])),
                "visits": random_numbers.choice(habits["visits"]),
                "pays": random_numbers.choice(("cash", "card")),
            }
        )
    return made


def main() -> None:
    """Writes one file per shop beside this script."""
    random_numbers = random.Random(2027)  # noqa: S311 - invented data need no secret numbers
    every = cards(random_numbers)
    for shop, columns in COLUMNS.items():
        seen = [card for card in every if random_numbers.random() < SEEN]
        random_numbers.shuffle(seen)
        with (Path(__file__).parent / f"{shop}.csv").open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, ("card", *columns), extrasaction="ignore", lineterminator="\n")
            table.writeheader()
            table.writerows(seen)


if __name__ == "__main__":
    main()
