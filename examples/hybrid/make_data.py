"""Makes the baskets of three large shops for this example: invented and seeded, a megabyte in all.

    python make_data.py

Items are bought as in `../groceries/make_data.py`: for a reason, most of whose items are then in the basket.
"""

from __future__ import annotations

import random
import runpy
from pathlib import Path

_HERE = Path(__file__).parent
GROCERIES = runpy.run_path(str(_HERE.parent / "groceries" / "make_data.py"))
BASKETS = {"north": 20_000, "south": 15_000, "east": 12_000}


def main() -> None:
    """Writes one file per shop beside this script."""
    random_numbers = random.Random(2026)  # noqa: S311 - invented data need no secret numbers
    for shop, number in BASKETS.items():
        _, weights = GROCERIES["SHOPS"][shop]
        baskets = GROCERIES["baskets"](random_numbers, number, weights)
        lines = [" ".join(basket) + "\n" for basket in baskets]
        (_HERE / f"{shop}.dat").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
