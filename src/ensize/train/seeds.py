"""What a seed decides: initial weights, the order of data, crops, mirrors, dropout.

Everything is drawn by NumPy's Philox generator from a hash of the study, the width,
the seed and the epoch, and of nothing else: a network does not depend on the others
with which it is trained, nor on the machine.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ensize.train.networks import Layer

from ensize.train.networks import named_weights

# A crop is one of 9 × 9 windows of a picture with 4 black pixels around it, and
# mirrored or not: (row · 9 + column) · 2 + mirrored.
PAD = 4
OFFSETS = 2 * PAD + 1
CROPS = 2 * OFFSETS**2


@dataclass(frozen=True)
class Seed:
    """One network of a study, and the chances that are its own.

    >>> Seed("doc", 8, 0).epoch(0, objects=5).order
    array([2, 1, 0, 3, 4], dtype=int32)
    """

    study: str
    width: float
    number: int

    def generator(self, purpose: str) -> np.random.Generator:
        """Make the generator for one purpose."""
        said = f"{self.study}\n{self.width:g}\n{self.number}\n{purpose}"
        digest = hashlib.sha256(said.encode()).digest()
        return np.random.Generator(
            np.random.Philox(key=int.from_bytes(digest[:16], "little"))
        )

    def weights(self, layers: tuple[Layer, ...]) -> dict[str, NDArray[np.float32]]:
        """Draw the weights with which training begins."""
        random = self.generator("weights")
        drawn = {}
        for name, weight in named_weights(layers).items():
            if weight.initial == "normal":
                values = random.standard_normal(weight.shape, np.float32)
                values *= np.float32(weight.scale)
            elif weight.initial == "uniform":
                values = random.random(weight.shape, np.float32)
                values = (2 * values - 1) * np.float32(weight.scale)
            else:
                values = np.full(weight.shape, weight.scale, np.float32)
            drawn[name] = values
        return drawn

    def epoch(self, epoch: int, objects: int, *, crops: bool = False) -> Chances:
        """Draw what an epoch needs."""
        random = self.generator(f"epoch {epoch}")
        key = int(random.integers(-(2**31), 2**31))
        order = random.permutation(objects).astype(np.int32)
        drawn = random.integers(0, CROPS, objects, np.uint8) if crops else None
        return Chances(key, order, drawn)


@dataclass(frozen=True)
class Chances:
    """What is drawn for one network and one epoch.

    Parameters
    ----------
    key
        Of the hash that decides about dropout.
    order
        In which order the objects come.
    crops
        How the object at each place of the order is cropped; `None` where it is not.
    """

    key: int
    order: NDArray[np.int32]
    crops: NDArray[np.uint8] | None
