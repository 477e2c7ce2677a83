"""Makes the three shops' baskets of this example: invented, seeded, a few kilobytes.

    python make_data.py

A basket is a few "reasons to shop" (breakfast, barbecue, …), each of which puts most of its items into the basket. The
shops differ in which reasons their customers have and in size.
"""

from __future__ import annotations

import random
from pathlib import Path

REASONS = {
    "breakfast": ("bread", "butter", "milk", "jam", "coffee"),
    "barbecue": ("sausages", "charcoal", "beer", "mustard", "bread"),
    "pasta": ("pasta", "tomatoes", "cheese", "basil", "olive_oil"),
    "baking": ("flour", "sugar", "eggs", "butter", "yeast"),
    "salad": ("lettuce", "tomatoes", "cucumber", "olive_oil"),
    "baby": ("nappies", "wipes", "milk"),
    "snack": ("crisps", "cola", "chocolate"),
}
SHOPS = {
    "north": (150, (5, 4, 2, 2, 1, 1, 3)),
    "south": (260, (3, 1, 5, 2, 5, 1, 2)),
    "east": (90, (4, 2, 2, 4, 1, 3, 1)),
}
TAKEN = 0.7  # probability that an item of a reason is bought


def baskets(random_numbers: random.Random, number: int, weights: tuple[int, ...]) -> list[list[str]]:
    """Baskets of one shop, none of them empty."""
    made: list[list[str]] = []
    while len(made) < number:
        reasons = random_numbers.choices(list(REASONS), weights, k=random_numbers.randint(1, 2))
        basket = sorted({item for r in reasons for item in REASONS[r] if random_numbers.random() < TAKEN})
        if basket:
            made.append(basket)
    return made


def main() -> None:
    """Writes one file per shop beside this script."""
    random_numbers = random.Random(2026)  # noqa: S311 - invented data need no secret numbers
    for shop, (number, weights) in SHOPS.items():
        lines = [" ".join(basket) + "\n" for basket in baskets(random_numbers, number, weights)]
        (Path(__file__).parent / f"{shop}.dat").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
