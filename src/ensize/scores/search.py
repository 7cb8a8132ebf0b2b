"""Where the best temperatures of many ensembles lie, and NLL around them.

Averaging makes predictions softer, so that the best temperatures of ensembles lie
between those of single networks and that of the whole pool. These tell where to
look; where some ensemble ends at an edge of the window, the window is widened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensize.checks import InputError
from ensize.predictions import Predictions
from ensize.scores.means import sums_after, sums_before
from ensize.sketches import Grid, Sketch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ensize.predictions import Progress

# Octaves added where the best temperature lies at an edge, and how many times.
_WIDER, _TIMES = 3, 2


def sketch_of(
    pool: Predictions | Sketch, *, progress: Progress | None = None
) -> Sketch:
    """Sketch a pool at the temperatures at which its ensembles may be best.

    A few hundred objects from all over the test set tell which these are. A stored
    sketch stays as it is.
    """
    if isinstance(pool, Sketch):
        return pool
    length = min(32, pool.objects)
    starts = np.unique(np.linspace(0, pool.objects - length, 16).astype(int))
    cuts = [slice(start, start + length) for start in starts]
    rows = tuple(
        np.concatenate([pool.logits(i, cut.start, cut.stop) for cut in cuts])
        for i in range(pool.networks)
    )
    targets = np.concatenate([pool.targets[cut] for cut in cuts])
    overview = Sketch.of(Predictions(rows, targets, pool.labels))
    return Sketch.of(pool, grid=_window(overview), progress=progress)


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
        That sketch, or what `sketch_of` made of the predictions.
    shares
        The ensembles, (ensembles, networks).
    weights
        Which objects are summed over, (sums, objects).
    after
        Whether the temperature is applied after averaging.
    cover
        Inverse temperatures that must lie in the window.

    Returns
    -------
    The window, the sums (ensembles, sums, nodes), and the sketch, which may have
    been widened.
    """
    if isinstance(pool, Sketch):
        _check_cover(sketch, cover)
        window = _including(_window(sketch), cover).shared(sketch.grid)
    else:
        window = _including(sketch.grid, cover)
    for times in range(_TIMES + 1):
        if isinstance(pool, Predictions) and window != sketch.grid:
            sketch = Sketch.of(pool, grid=window, progress=progress)
        if isinstance(pool, Predictions) and after:
            sums = sums_after(pool, shares, weights, window, progress=progress)
        else:
            sums = sums_before(sketch, shares, weights, window, progress=progress)
        # The polynomials are at their best with some nodes on either side.
        near = window.per_octave // 2
        lowest = sums.argmin(axis=-1)
        below = _WIDER * bool((lowest < near).any())
        above = _WIDER * bool((lowest >= window.nodes - near).any())
        wider = window.widened(below, above)
        if isinstance(pool, Sketch):
            wider = wider.shared(sketch.grid)
        if wider == window or times == _TIMES:
            break
        window = wider
    return window, sums, sketch


def _window(sketch: Sketch) -> Grid:
    """Cut out the octaves in which the best temperatures are expected.

    The poorer half of the networks has no say: among them may be some that did not
    train, whose best temperature is infinite.
    """
    everyone = np.full((1, sketch.networks), 1 / sketch.networks)
    whole = np.ones((1, sketch.objects), bool)
    pooled = sums_before(sketch, everyone, whole, sketch.grid)[0]
    alone = sketch.member_nll()
    least = alone.min(axis=1)
    likely = np.vstack([alone[least <= np.median(least)], pooled]).argmin(axis=1)
    inverse = sketch.grid.inverse_temperatures[likely]
    return _including(Grid(0, 1, sketch.grid.per_octave), inverse)


def _including(grid: Grid, inverse: Sequence[float] | NDArray[np.float64]) -> Grid:
    """Widen a grid to an octave beyond these inverse temperatures."""
    low, high = np.floor(np.log2([min(inverse), max(inverse)])).astype(int)
    return grid.widened(
        below=max(grid.first - (int(low) - 1), 0),
        above=max(int(high) + 2 - grid.stop, 0),
    )


def _check_cover(sketch: Sketch, cover: Sequence[float]) -> None:
    nodes = sketch.grid.inverse_temperatures
    low, high = min(cover), max(cover)
    if low < nodes[0] or high > nodes[-1]:
        raise InputError(
            f"temperatures from {1 / high:.3g} to {1 / low:.3g} were asked for, but the"
            f" sketches of pool {sketch.pool.name!r} hold {1 / nodes[-1]:.3g} to"
            f" {1 / nodes[0]:.3g}; stay between, or record logits"
        )
