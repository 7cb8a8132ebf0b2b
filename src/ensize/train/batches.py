"""Batches: objects held on the device, of which each network takes its own.

Pictures stay bytes. A crop is a window of a padded picture, so that taking a batch for
many networks, each with its own order, crops and mirrors, is one look-up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import functional

from ensize.train.images import normalization
from ensize.train.seeds import OFFSETS, PAD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from ensize.train.images import Data
    from ensize.train.seeds import Chances


class Batches:
    """The objects of a data set on a device.

    Parameters
    ----------
    data
        What to train and to test on.
    family
        Whose normalization is taken.
    device
        Where.
    """

    def __init__(self, data: Data, family: str, device: torch.device) -> None:
        self.device = device
        mean, deviation = normalization(data, family)
        shape = (-1, 1, 1) if data.pictures else data.shape
        self._mean, self._scale = (
            torch.from_numpy(each).to(device).view(shape)
            for each in (mean, 1 / deviation)
        )
        self._y = torch.from_numpy(data.y_train).to(device)
        self._test = torch.from_numpy(np.ascontiguousarray(data.x_test))
        held = torch.from_numpy(np.ascontiguousarray(data.x_train)).to(device)
        self._windows: torch.Tensor | None = None
        if data.pictures:
            held = functional.pad(held, (PAD,) * 4)
            objects, colors, height, width = data.x_train.shape
            strides = held.stride()
            self._windows = held.as_strided(
                (objects, OFFSETS, OFFSETS, colors, height, width),
                (strides[0], strides[2], strides[3], *strides[1:]),
            )
        else:
            self._objects = self._normalized(held)

    def epoch(
        self, parts: Sequence[Chances]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Bring what is drawn for the networks to the device: keys, orders, crops."""
        crops = [each.crops for each in parts if each.crops is not None]
        return (
            self._joined([each.keys for each in parts]),
            self._joined([each.orders for each in parts]),
            self._joined(crops) if crops else None,
        )

    def _joined(self, parts: Sequence[NDArray[Any]]) -> torch.Tensor:
        return torch.from_numpy(np.concatenate(parts)).to(self.device)

    def classes(self, which: torch.Tensor) -> torch.Tensor:
        """Take the true classes of training objects."""
        return _rows(self._y, which)

    def take(self, which: torch.Tensor, crops: torch.Tensor | None) -> torch.Tensor:
        """Take training objects, cropped and mirrored, as the networks get them."""
        if self._windows is None:
            return _rows(self._objects, which)
        if crops is None:
            return self._normalized(self._windows[which, PAD, PAD])
        place, mirrored = (crops >> 1).to(torch.int64), (crops & 1).bool()
        x = self._windows[which, place // OFFSETS, place % OFFSETS]
        x = torch.where(mirrored[..., None, None, None], x.flip(-1), x)
        return self._normalized(x)

    def test(self, size: int) -> Iterator[torch.Tensor]:
        """Yield the test objects in batches."""
        for part in torch.split(self._test, size):
            yield self._normalized(part.to(self.device))

    def _normalized(self, x: torch.Tensor) -> torch.Tensor:
        return (x.to(torch.float32) - self._mean).mul_(self._scale)


def _rows(held: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
    """Look rows up, several times quicker than by indexing."""
    rows = held.index_select(0, which.flatten())
    return rows.view(*which.shape, *held.shape[1:])
