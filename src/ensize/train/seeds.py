"""What a seed decides: initial weights, the order of data, crops, mirrors, dropout.

Everything is drawn from a hash of the study, the width, the seed and the epoch, and of
nothing else: a network does not depend on the others with which it is trained, nor on
the machine. Weights come from NumPy's Philox generator. What is needed anew for each
epoch comes from SplitMix64, for many networks at a time: to make a generator for each
would take longer than a step of a small network.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    """One network of a study."""

    study: str
    width: float
    number: int

    def digest(self, purpose: str) -> bytes:
        """Return 32 bytes that are this network's own for one purpose."""
        said = f"{self.study}\n{self.width:g}\n{self.number}\n{purpose}"
        return hashlib.sha256(said.encode()).digest()

    def weights(self, layers: tuple[Layer, ...]) -> dict[str, NDArray[np.float32]]:
        """Draw the weights with which training begins."""
        key = int.from_bytes(self.digest("weights")[:16], "little")
        random = np.random.Generator(np.random.Philox(key=key))
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


@dataclass(frozen=True)
class Chances:
    """What is drawn for some networks and one epoch.

    Parameters
    ----------
    keys
        Of the hash that decides about dropout, (networks,).
    orders
        In which order the objects come, (networks, objects).
    crops
        How the object at each place of the order is cropped; `None` where it is not.
    """

    keys: NDArray[np.int64]
    orders: NDArray[np.int64]
    crops: NDArray[np.uint8] | None


def draw(
    seeds: Sequence[Seed], epoch: int, objects: int, *, crops: bool = False
) -> Chances:
    """Draw what some networks need in an epoch.

    >>> draw([Seed("doc", 8, 0)], epoch=0, objects=5).orders
    array([[3, 2, 1, 0, 4]])
    """
    digests = b"".join(seed.digest(f"epoch {epoch}") for seed in seeds)
    keys = np.frombuffer(digests, "<u8").reshape(len(seeds), 4)
    # The objects sorted by random numbers; their last bits say which object it is.
    bits = np.uint64(objects.bit_length())
    numbers = _splitmix64(keys[:, 0], objects) >> bits << bits
    numbers |= np.arange(objects, dtype=np.uint64)
    numbers.sort(axis=1)
    numbers &= (np.uint64(1) << bits) - np.uint64(1)
    drawn = None
    if crops:
        halves = _splitmix64(keys[:, 1], objects) >> np.uint64(32)
        drawn = (halves * np.uint64(CROPS) >> np.uint64(32)).astype(np.uint8)
    dropout = (keys[:, 2] >> np.uint64(32)).astype(np.int64) - 2**31
    return Chances(dropout, numbers.view(np.int64), drawn)


def _splitmix64(keys: NDArray[np.uint64], count: int) -> NDArray[np.uint64]:
    """Return the first numbers of the generator from each state, (states, count).

    The generator is that of Steele, Lea and Flood, Fast splittable pseudorandom number
    generators (2014), with the constants of its reference implementation.
    """
    steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = keys[:, None] + steps
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z ^= z >> np.uint64(shift)
        z *= np.uint64(factor)
    z ^= z >> np.uint64(31)
    return z
