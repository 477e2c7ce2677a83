"""Keys of chance that may travel to where a party's rows lie, and no other secrets may."""

from __future__ import annotations

from dataclasses import dataclass, field

from crypto.primitives.randomness import KEY_BYTES, Randomness
from link.randomness import RandomStream


@dataclass(frozen=True, eq=False, slots=True)
class NoiseKey:
    """A key by which rows are chosen or perturbed where they lie; picklable.

    It has this type so that it is told from all other secrets: whoever holds the rows in the clear may hold it, since
    without the rows it says nothing, and the rows say more. It serves one draw of one job, and is the same in all
    attempts of that (`mining.joint.coins`), so that a row whose worker was lost is perturbed as before.

    Attributes:
        key: `KEY_BYTES` secret bytes.
    """

    key: bytes = field(repr=False)

    @classmethod
    def drawn(cls, random: RandomStream) -> NoiseKey:
        """A fresh key.

        Args:
            random: The source of randomness.
        """
        return cls(random.bytes(KEY_BYTES))

    def stream(self, *label: str | int) -> Randomness:
        """The randomness of some rows.

        Args:
            *label: Which rows; the same ones get the same stream.
        """
        return Randomness.from_key(self.key).derive(*label)
