"""Where the best temperatures of many ensembles lie, and NLL around them.

Averaging makes predictions softer, so that the best temperatures of ensembles lie
between those of single networks and that of the whole pool. These tell where to
look; where some ensemble ends at an edge of the window, the window is widened.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ensize.checks import InputError
from ensize.predictions import Predictions, sample_size
from ensize.scores.means import sums_after, sums_before
from ensize.sketches import Grid, Sketch, grid_for, tabulate
from ensize.temperatures import nll_at
from ensize.threads import in_threads

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from ensize.predictions import Progress

T = TypeVar("T")
# Nodes beside the likely minima: the polynomials want four, and one more is for the
# ensembles and halves that lie further out than the networks and the pool.
_BESIDE = 5
# Octaves added where the best temperature lies at an edge, and how many times.
_WIDER, _TIMES = 3, 2
# Pieces of the test set that tell how to search the whole.
_CUTS = 16
# What reading NLL between the nodes may cost, in nats.
_PRECISION = 5e-7


def sketch_of(
    pool: Predictions | Sketch, *, progress: Progress | None = None
) -> Sketch:
    """Sketch a pool at the temperatures at which its ensembles may be best.

    A few hundred objects from all over the test set tell which these are, and how
    close the nodes must lie. A stored sketch stays as it is.
    """
    if isinstance(pool, Sketch):
        return pool
    length = min(max(1, sample_size(pool.classes) // _CUTS), pool.objects)
    starts = np.unique(np.linspace(0, pool.objects - length, _CUTS).astype(int))
    truth = np.concatenate([pool.targets[at : at + length] for at in starts])

    def some(network: int) -> NDArray[Any]:
        cuts = [pool.logits(network, at, at + length) for at in starts]
        return np.concatenate(cuts)

    def telling(found: Iterable[T], before: float) -> Iterator[T]:
        for done, each in enumerate(found, 1):
            if progress is not None:  # on a slow disk the first look takes long
                progress("looking", before + done / (2 * pool.networks))
            yield each

    every = range(pool.networks)
    fine = grid_for(telling(map(some, every), 0.0), per_octave=8)
    tables = in_threads(lambda i: tabulate(some(i), truth, fine), every)
    rows = tuple(telling(tables, 0.5))
    overview = Sketch(rows, fine, truth, pool.classes, pool.labels, pool.pool)
    likely = _likely(overview)
    per_octave = _resolution(overview, likely)
    grid = Grid(0, 1, per_octave).including(likely, beside=_BESIDE + 1)
    return Sketch.of(pool, grid=grid, progress=progress)


def profiles(
    pool: Predictions | Sketch,
    sketch: Sketch,
    shares: NDArray[np.float64],
    weights: NDArray[np.bool_],
    *,
    after: bool = False,
    cover: Sequence[float] = (1.0,),
    progress: Progress | None = None,
) -> tuple[Grid, NDArray[np.float64], Sketch]:
    """Sum NLL over weighted objects, at the temperatures around the best.

    Parameters
    ----------
    pool
        The predictions, or a stored sketch.
    sketch
        What `sketch_of` made of the pool.
    shares
        The ensembles, (ensembles, networks).
    weights
        Which objects are summed over, (sums, objects); in the last, all of them.
    after
        Whether the temperature is applied after averaging.
    cover
        Inverse temperatures that must lie in the window.

    Returns
    -------
    The window, the sums (ensembles, sums, nodes), and the sketch, which may have
    been widened.
    """
    window = Grid(0, 1, sketch.grid.per_octave)
    window = window.including(_likely(sketch), beside=_BESIDE).shared(sketch.grid)
    if max(cover) > min(cover) or cover[0] != 1:
        window = window.including(np.array(cover), beside=_BESIDE)
    if isinstance(pool, Sketch):
        _check_cover(sketch, cover)
        window = window.shared(sketch.grid)
    for times in range(_TIMES + 1):
        if isinstance(pool, Predictions) and window.shared(sketch.grid) != window:
            wider = window.joined(sketch.grid)
            sketch = Sketch.of(pool, grid=wider, progress=progress)
        if isinstance(pool, Predictions) and after:
            sums = sums_after(pool, shares, weights, window, progress=progress)
        else:
            sums = sums_before(sketch, shares, weights, window, progress=progress)
        wider = _roomier(window, sums)
        if isinstance(pool, Sketch):
            wider = wider.shared(sketch.grid)
        if wider == window or times == _TIMES:
            break
        window = wider
    return window, sums, sketch


def _roomier(window: Grid, sums: NDArray[np.float64]) -> Grid:
    """Widen the window where some ensemble is at its best near an edge.

    The last of the sums is over all objects, so that the others have complements.
    """
    complements = sums[:, -1:] - sums[:, :-1]
    lowest = np.concatenate([sums, complements], axis=1).argmin(axis=-1)
    more = _WIDER * window.per_octave
    first = window.first - more * bool(lowest.min() < _BESIDE // 2)
    stop = window.stop + more * bool(lowest.max() >= window.nodes - _BESIDE // 2)
    return dataclasses.replace(window, first=first, stop=stop)


def _likely(sketch: Sketch) -> NDArray[np.float64]:
    """Tell at which inverse temperatures ensembles are likely to be best.

    The poorer half of the networks has no say: among them may be some that did not
    train, whose best temperature is infinite.
    """
    everyone = np.full((1, sketch.networks), 1 / sketch.networks)
    whole = np.ones((1, sketch.objects), bool)
    pooled = sums_before(sketch, everyone, whole, sketch.grid)[0]
    alone = sketch.member_nll()
    least = alone.min(axis=1)
    likely = np.vstack([alone[least <= np.median(least)], pooled]).argmin(axis=1)
    best: NDArray[np.float64] = sketch.grid.inverse_temperatures[likely]
    return best


def _resolution(overview: Sketch, likely: NDArray[np.float64]) -> int:
    """Choose how many nodes an octave, by what half of the overview's would miss.

    The error falls with the eighth power of the distance between nodes.
    """
    grid = overview.grid
    coarse = Grid(grid.first // 2, grid.stop // 2, grid.per_octave // 2)
    nll = overview.member_nll()
    near = Grid(0, 1, grid.per_octave).including(likely, beside=0).shared(grid)
    between = range(*grid.cut(near).indices(grid.nodes))
    missed = [
        nll_at(coarse, nll[:, ::2], grid.inverse_temperatures[node]) - nll[:, node]
        for node in between
        if (node + grid.first) % 2
    ]
    worst = np.abs(missed).max(initial=0)
    enough = coarse.per_octave * (worst / _PRECISION) ** (1 / 8)
    return next((each for each in (4, 6, 8, 12) if each >= enough), 16)


def _check_cover(sketch: Sketch, cover: Sequence[float]) -> None:
    nodes = sketch.grid.inverse_temperatures
    low, high = min(cover), max(cover)
    if low < nodes[0] or high > nodes[-1]:
        raise InputError(
            f"temperatures from {1 / high:.3g} to {1 / low:.3g} were asked for, but the"
            f" sketches of pool {sketch.pool.name!r} hold {1 / nodes[-1]:.3g} to"
            f" {1 / nodes[0]:.3g}; stay between, or record logits"
        )
