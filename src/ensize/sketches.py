"""Sketch: correct-class probabilities over a grid of temperatures.

Applied before averaging, every NLL of every ensemble needs of each network and
object only the probability of the true class at each temperature. The sketch is
that table, as logarithms, which neither underflow nor crowd at 1. It is computed
once; what an ensemble costs afterwards does not depend on the number of classes.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.checks import InputError, class_labels
from ensize.predictions import Pool, Predictions, Rows, sample_size
from ensize.threads import in_threads, workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from ensize.predictions import Progress


# Numbers worked on at a time by one thread: they stay in a cache.
_BLOCK = 700_000
# Octaves between two fresh exponentials: squaring doubles the rounding error.
_FRESH = 4
# With more classes the nodes lie closer together.
_MANY_CLASSES = 200
# The standard deviation of an ordinary network's logits over the classes.
_ORDINARY_SPREAD = 4.0


@dataclass(frozen=True)
class Grid:
    """Inverse temperatures 1/τ = 2^k (1 + i/P), numbered from τ = 1 on.

    Node j = P k + i. All grids with the same P are cuts of one lattice, so that
    networks recorded apart share nodes; τ = 1, node 0, is always among them.

    >>> Grid(-4, 4).inverse_temperatures
    array([0.5  , 0.625, 0.75 , 0.875, 1.   , 1.25 , 1.5  , 1.75 ])
    """

    first: int
    stop: int
    per_octave: int = 4

    def __post_init__(self) -> None:
        """Refuse a grid without τ = 1."""
        if not (self.first <= 0 < self.stop and self.per_octave > 0):
            raise InputError(
                f"a grid of the nodes {self.first} to {self.stop} lacks the temperature"
                " 1; begin at node 0 or below and stop above 0"
            )

    @property
    def nodes(self) -> int:
        """How many inverse temperatures there are."""
        return self.stop - self.first

    @property
    def inverse_temperatures(self) -> NDArray[np.float64]:
        """The nodes, ascending."""
        octave, within = np.divmod(np.arange(self.first, self.stop), self.per_octave)
        nodes: NDArray[np.float64] = 2.0**octave * (1 + within / self.per_octave)
        return nodes

    def including(self, inverse: NDArray[np.float64], *, beside: int) -> Grid:
        """Widen the grid to some nodes beside these inverse temperatures."""
        place = np.log2([np.min(inverse), np.max(inverse)])
        octave = np.floor(place)
        node = self.per_octave * (octave + 2 ** (place - octave) - 1)
        return self.joined(
            dataclasses.replace(
                self,
                first=min(math.floor(node[0]) - beside, 0),
                stop=max(math.ceil(node[1]) + beside + 1, 1),
            )
        )

    def joined(self, other: Grid) -> Grid:
        """Reach as far as either of two grids of one lattice."""
        first, stop = min(self.first, other.first), max(self.stop, other.stop)
        return dataclasses.replace(self, first=first, stop=stop)

    def shared(self, other: Grid) -> Grid:
        """Keep the nodes that two grids of one lattice share."""
        if self.per_octave != other.per_octave:
            raise InputError(
                f"sketches with {self.per_octave} and {other.per_octave} nodes an"
                " octave do not go together; record the networks alike"
            )
        first, stop = max(self.first, other.first), min(self.stop, other.stop)
        return dataclasses.replace(self, first=first, stop=stop)

    def cut(self, other: Grid) -> slice:
        """Where the nodes of a grid within this one stand."""
        return slice(other.first - self.first, other.stop - self.first)


def grid_for(logits: Iterable[NDArray[Any]], per_octave: int | None = None) -> Grid:
    """Choose the grid that suits logits of this spread; of rows, or of blocks of them.

    For ordinary logits 1/τ runs from 1/32 to 28; for larger or smaller ones the
    whole range moves, in steps of two octaves so that networks of one pool agree.
    NLL of very many classes bends more sharply, and wants nodes closer together.
    """
    spreads, classes = [], 0
    for each in logits:
        classes = each.shape[-1]
        spreads.append(np.std(each, axis=-1, dtype=np.float64))
    if per_octave is None:
        per_octave = 4 if classes <= _MANY_CLASSES else 8
    spread = float(np.median(spreads))
    steps = 0.0
    if spread > 0:
        steps = round(float(np.log2(_ORDINARY_SPREAD / spread)) / 2)
    center = int(np.clip(2 * steps, -40, 40))
    first, stop = min(center - 5, 0), max(center + 5, 1)
    return Grid(first * per_octave, stop * per_octave, per_octave)


@dataclass(frozen=True, eq=False)
class Sketch:
    """Log-probabilities of the true class, at each inverse temperature of a grid.

    Parameters
    ----------
    rows
        For each network an array of shape (nodes, objects), in memory or mapped.
    grid
        The inverse temperatures.
    targets
        The true class of each object.
    classes
        How many classes the networks chose from.
    labels
        A name for each network.
    pool
        What the networks have in common.
    """

    rows: tuple[Rows, ...]
    grid: Grid
    targets: NDArray[np.int64]
    classes: int
    labels: tuple[str, ...]
    pool: Pool = dataclasses.field(default_factory=Pool)

    @classmethod
    def of(
        cls,
        predictions: Predictions,
        *,
        grid: Grid | None = None,
        progress: Progress | None = None,
    ) -> Sketch:
        """Compute the table, in blocks, on all cores.

        >>> pool = Predictions.of([[[2.0, 0.0]]], [0])
        >>> sketch = Sketch.of(pool)
        >>> np.exp(sketch.rows[0][-sketch.grid.first])  # e² / (e² + 1)
        array([0.88079708])
        """
        if grid is None:
            some = sample_size(predictions.classes)
            every = range(predictions.networks)
            grid = grid_for(predictions.logits(i, 0, some) for i in every)
        objects, networks = predictions.objects, predictions.networks
        table = np.empty((networks, grid.nodes, objects), predictions.dtype)
        rows = 4 * _rows(predictions.classes, grid)
        # One task is some blocks of one network, read at once.
        tasks = [
            (i, start, min(start + rows, objects))
            for i in range(networks)
            for start in range(0, objects, rows)
        ]

        def fill(task: tuple[int, int, int]) -> None:
            network, first, last = task
            logits = predictions.logits(network, first, last)
            truth = predictions.targets[first:last]
            tabulate(logits, truth, grid, out=table[network, :, first:last])

        for done, _ in enumerate(in_threads(fill, tasks), 1):
            if progress is not None:
                progress("sketching", done / len(tasks))
        return cls(
            tuple(table),
            grid,
            predictions.targets,
            predictions.classes,
            predictions.labels,
            predictions.pool,
        )

    @classmethod
    def gather(
        cls,
        rows: Sequence[Rows],
        grids: Sequence[Grid],
        targets: Any,
        *,
        classes: int,
        labels: Sequence[str],
        pool: Pool | None = None,
    ) -> Sketch:
        """Put networks that were recorded apart on the nodes that they share."""
        truth = class_labels("targets", targets)
        if not rows:
            raise InputError("there are no sketches; hand in at least one network")
        grid = grids[0]
        for other in grids[1:]:
            grid = grid.shared(other)
        kept = []
        for label, each, whole in zip(labels, rows, grids, strict=True):
            if tuple(each.shape) != (whole.nodes, len(truth)):
                raise InputError(
                    f"{label} has shape {tuple(each.shape)}, but its grid has"
                    f" {whole.nodes} nodes and there are {len(truth)} objects; record"
                    " this network again"
                )
            kept.append(each if whole == grid else each[whole.cut(grid)])
        return cls(tuple(kept), grid, truth, classes, tuple(labels), pool or Pool())

    @property
    def networks(self) -> int:
        """How many networks there are."""
        return len(self.rows)

    @property
    def objects(self) -> int:
        """How many objects they were asked about."""
        return len(self.targets)

    @property
    def dtype(self) -> type[np.float32 | np.float64]:
        """The precision of the table."""
        wide = any(each.dtype.itemsize > 4 for each in self.rows)
        return np.float64 if wide else np.float32

    def choose(self, networks: Iterable[int]) -> Sketch:
        """Keep only these networks."""
        networks = list(networks)
        return dataclasses.replace(
            self,
            rows=tuple(self.rows[i] for i in networks),
            labels=tuple(self.labels[i] for i in networks),
        )

    def member_nll(self) -> NDArray[np.float64]:
        """NLL of each network at each node, (networks, nodes)."""
        return np.array([-np.mean(each[:], axis=1, dtype=float) for each in self.rows])


def tabulate(
    logits: NDArray[Any],
    targets: NDArray[np.int64],
    grid: Grid,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Compute `log_probabilities` in blocks that stay in a cache."""
    if out is None:
        out = np.empty((grid.nodes, len(logits)), logits.dtype)
    rows = _rows(logits.shape[1], grid)
    for start in range(0, len(logits), rows):
        some = slice(start, start + rows)
        log_probabilities(logits[some], targets[some], grid, out=out[:, some])
    return out


def _rows(classes: int, grid: Grid) -> int:
    return max(1, _BLOCK // (classes * (grid.per_octave + 3)))


def log_probabilities(
    logits: NDArray[Any],
    targets: NDArray[np.int64],
    grid: Grid,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Compute log softmax(logits / τ) of the true class, (nodes, objects).

    With d_k = z_k - max z, and the largest logit set apart so that nothing crowds
    at 1,

        log p = d_y/τ - log(1 + Σ_{k not largest} exp(d_k/τ)).

    Within an octave the exponentials of a node are those of the node before times
    exp(d_k 2^k/P), and an octave higher they are squared: two exponentials a logit
    serve several octaves.
    """
    objects, per = len(logits), grid.per_octave
    row = np.arange(objects)
    largest = logits.argmax(axis=1)
    peak = logits[row, largest]
    own = logits[row, targets] - peak
    space = workspace("powers", (per + 3, *logits.shape), logits.dtype)
    below, powers, step, spare = space[0], space[1:-2], space[-2], space[-1]
    np.subtract(logits, peak[:, None], out=below)
    below[row, largest] = -np.inf
    low, high = grid.first // per, -(-grid.stop // per)
    sums = np.empty((high - low, per, objects), logits.dtype)
    for octave in range(low, high):
        # Nodes at the ends that nobody asked for are left out, where they can be.
        skip = max(0, grid.first - octave * per)
        count = min(per, grid.stop - octave * per)
        if (octave - low) % _FRESH == 0:
            np.exp(np.multiply(below, 2.0**octave, out=powers[0]), out=powers[0])
            np.exp(np.multiply(below, 2.0**octave / per, out=step), out=step)
            done = 1
            while done < count:  # 1, 2, 4, … nodes: long runs of one operation
                more = min(done, count - done)
                np.multiply(powers[:more], step, out=powers[done : done + more])
                done += more
                if done < count:
                    step, spare = np.multiply(step, step, out=spare), step
        else:
            np.multiply(powers[:count], powers[:count], out=powers[:count])
        # Not a matrix product: BLAS would start threads inside ours.
        np.einsum("tok->to", powers[skip:count], out=sums[octave - low, skip:count])
    wanted = sums.reshape(-1, objects)[grid.first - low * per :][: grid.nodes]
    inverse = grid.inverse_temperatures.astype(logits.dtype)
    shifted = np.multiply.outer(inverse, own)
    result: NDArray[Any] = np.subtract(shifted, np.log1p(wanted, out=wanted), out=out)
    return result
