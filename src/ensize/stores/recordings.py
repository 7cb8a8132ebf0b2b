"""Recording: a network's predictions taken batch by batch, from anybody's loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ensize.checks import InputError, class_labels, viewed
from ensize.predictions import Predictions, sample_size
from ensize.sketches import Grid, Sketch, grid_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


class Recording:
    """A network that is being recorded, and written when its block ends well.

    Attributes
    ----------
    written
        Whether this recording wrote the network: False too where it was there before.
    """

    def __init__(
        self, label: str, put: Callable[..., bool], dtype: str, *, sketch: bool
    ) -> None:
        self.written = False
        self._label, self._put, self._sketch = label, put, sketch
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._grid: Grid | None = None
        self._classes = 0
        self._objects = 0
        # Batches that are in no block yet.
        self._held: list[tuple[NDArray[Any], NDArray[np.int64]]] = []
        self._blocks: list[NDArray[Any]] = []
        self._targets: list[NDArray[np.int64]] = []

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Write the network, unless an exception ended the block."""
        if kind is not None:
            return
        if not self._objects:
            raise InputError(
                f"nothing was recorded of {self._label}; call update(logits, targets)"
                " with each batch"
            )
        self._reduce()
        blocks, targets = self._blocks, np.concatenate(self._targets)
        if self._sketch:
            blocks = [np.concatenate(blocks, axis=1)]
        self.written = self._put(blocks, targets, self._classes, self._grid)

    def update(self, logits: Any, targets: Any) -> None:
        """Take the logits, (objects, classes), and the true classes of more objects.

        Arrays of any library that NumPy can view will do, tensors on a device too.
        """
        label, first = self._label, self._objects
        given = viewed(f"{label}: logits", logits)
        truth = viewed(f"{label}: targets", targets)
        if given.ndim != 2 or truth.shape != given.shape[:1]:
            raise InputError(
                f"{label}: a batch has logits of shape {given.shape} and targets of"
                f" shape {truth.shape}; hand in (objects, classes) and a class for each"
            )
        if not len(given):
            return
        truth = class_labels(f"{label}: targets", truth)
        self._classes = self._classes or given.shape[1]
        if given.shape[1] != self._classes or truth.max() >= self._classes:
            raise InputError(
                f"{label}: the batch from object {first} on has {given.shape[1]}"
                f" classes and targets up to {truth.max()}, where the network has"
                f" {self._classes} classes; check that they belong together"
            )
        with np.errstate(over="ignore"):
            block = given.astype(self._dtype, order="C")
        if not np.isfinite(block).all():
            row, column = np.argwhere(~np.isfinite(block))[0]
            raise InputError(
                f"{label}: the logit of object {first + row}, class {column} is"
                f" {given[row, column]}, which is no {self._dtype.name} number; leave"
                " this network out, predict again, or record in float32"
            )
        self._held.append((block, truth))
        self._objects += len(block)
        # So many become a block, however small the batches.
        if sum(len(each) for each, _ in self._held) >= sample_size(self._classes):
            self._reduce()

    def _reduce(self) -> None:
        """Make one block of the batches held, and where one is kept a sketch of it."""
        if not self._held:
            return
        block = np.concatenate([logits for logits, _ in self._held])
        truth = np.concatenate([targets for _, targets in self._held])
        given = Predictions((block,), truth, (self._label,))
        if not self._blocks:  # few rows, later on, are no ground to doubt the kind
            given = Predictions.gather([block], truth, labels=[self._label])
        if self._sketch:
            self._grid = self._grid or grid_for(block[: sample_size(self._classes)])
            block = Sketch.of(given, grid=self._grid).rows[0][:].astype(self._dtype)
        self._held = []
        self._blocks.append(block)
        self._targets.append(truth)
