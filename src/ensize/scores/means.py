"""The mean probabilities of many ensembles, and their NLL over temperatures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.sketches import log_probabilities
from ensize.threads import in_threads, workspace

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ensize.predictions import Predictions, Progress
    from ensize.sketches import Grid, Sketch

# Numbers worked on at a time: the means of a block of objects stay in a cache.
_BLOCK = 2_000_000


def log_means(
    logs: NDArray[Any], shares: NDArray[np.float64]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Take the logarithm of each ensemble's mean probability.

    Every column is scaled by its largest probability, so that only a member that
    is vastly less probable than some network can underflow; where such members
    make up a whole ensemble, its mean is taken in logarithms.

    Parameters
    ----------
    logs
        Log-probabilities, (networks, columns).
    shares
        The ensembles, (ensembles, networks).

    Returns
    -------
    The logarithms less that of the column's largest probability, (ensembles, columns),
    lent until the next call in the same thread; and these largest ones, (columns,).

    >>> with np.printoptions(precision=3):
    ...     log_means(np.array([[-5000.0], [-9000.0]]), np.array([[0.5, 0.5], [0, 1]]))
    (array([[-6.931e-01],
           [-4.000e+03]]), array([-5000.]))
    """
    largest = logs.max(axis=0)
    logs = logs - largest
    deepest = logs.min()
    if deepest < -60:  # near where float32 ends
        logs = logs.astype(np.float64)
    result = workspace("means", (len(shares), logs.shape[1]), logs.dtype)
    np.matmul(shares.astype(logs.dtype), np.exp(logs), out=result)
    with np.errstate(divide="ignore"):
        np.log(result, out=result)
    if deepest < -600:  # near where float64 ends
        for row, each in zip(shares, result, strict=True):
            lost = np.flatnonzero(each < -600)
            members = logs[np.ix_(row > 0, lost)]
            peak = members.max(axis=0)
            each[lost] = peak + np.log(np.exp(members - peak).mean(axis=0))
    return result, largest


def sums_before(
    sketch: Sketch,
    shares: NDArray[np.float64],
    weights: NDArray[np.bool_],
    window: Grid,
    *,
    progress: Progress | None = None,
) -> NDArray[np.float64]:
    """Sum NLL over weighted objects, the temperature applied before averaging."""
    nodes = sketch.grid.cut(window)

    def block(some: slice) -> NDArray[np.float64]:
        # Networks first, objects last: (networks, nodes · objects).
        logs = np.stack([each[nodes][:, some] for each in sketch.rows])
        means, largest = log_means(logs.reshape(sketch.networks, -1), shares)
        means = means.reshape(len(shares), window.nodes, -1)
        # What all ensembles have in common is summed once, in float64.
        common = largest.reshape(1, window.nodes, -1).astype(np.float64)
        return _weighed(means, weights[:, some]) + _weighed(common, weights[:, some])

    rows = max(len(shares), sketch.networks)
    blocks = blocks_of(sketch.objects, window.nodes * rows)
    return -_added(block, blocks, progress)


def sums_after(
    pool: Predictions,
    shares: NDArray[np.float64],
    weights: NDArray[np.bool_],
    window: Grid,
    *,
    progress: Progress | None = None,
) -> NDArray[np.float64]:
    """Sum NLL over weighted objects, the temperature applied after averaging.

    What an ensemble says is then like the logits of a single network: the
    logarithm of the mean probabilities.
    """
    many = max(1, _BLOCK // 10 // (16 * pool.classes))  # ensembles at a time

    def block(some: slice) -> NDArray[np.float64]:
        logs = log_softmax(pool, some)
        truth = np.tile(pool.targets[some], many)
        parts = []
        for first in range(0, len(shares), many):
            part = shares[first : first + many]
            means, largest = log_means(logs.reshape(pool.networks, -1), part)
            flat = np.add(means, largest, out=means).reshape(-1, pool.classes)
            logs_of_truth = log_probabilities(flat, truth[: len(flat)], window)
            by_ensemble = logs_of_truth.reshape(window.nodes, len(part), -1)
            by_ensemble = by_ensemble.swapaxes(0, 1).astype(np.float64)
            parts.append(_weighed(by_ensemble, weights[:, some]))
        return np.concatenate(parts)

    rows = max(len(shares), pool.networks)
    blocks = blocks_of(pool.objects, pool.classes * rows)
    return -_added(block, blocks, progress)


def _weighed(means: NDArray[Any], weights: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Sum (ensembles, nodes, objects) to (ensembles, sums, nodes).

    Of float32 only what differs between networks is summed, as equal numbers add up
    rounding errors of one sign.
    """
    sums = means.reshape(-1, means.shape[2]) @ weights.T.astype(means.dtype)
    summed = sums.reshape(*means.shape[:2], -1).swapaxes(1, 2)
    result: NDArray[np.float64] = summed.astype(np.float64)
    return result


def _added(
    work: Callable[[slice], NDArray[np.float64]],
    blocks: list[slice],
    progress: Progress | None,
) -> NDArray[np.float64]:
    """Add up what all blocks of objects give, in float64 and in their order."""

    def several(some: list[slice]) -> NDArray[np.float64]:
        sums = work(some[0])
        for block in some[1:]:
            sums += work(block)
        return sums

    step = -(-len(blocks) // 64)
    tasks = [blocks[i : i + step] for i in range(0, len(blocks), step)]
    total: Any = 0
    for done, sums in enumerate(in_threads(several, tasks), 1):
        total = total + sums
        if progress is not None:
            progress("averaging", done / len(tasks))
    added: NDArray[np.float64] = total
    return added


def log_softmax(pool: Predictions, some: slice) -> NDArray[Any]:
    """Read some objects' log-probabilities, (networks, objects, classes)."""
    logs = np.stack(
        [pool.logits(i, some.start, some.stop) for i in range(pool.networks)]
    )
    logs -= logs.max(axis=2, keepdims=True)
    logs -= np.log(np.einsum("iok->io", np.exp(logs)))[:, :, None]
    return logs


def blocks_of(objects: int, numbers: int) -> list[slice]:
    """Cut the objects into blocks that take about so many numbers an object."""
    size = max(1, _BLOCK // max(numbers, 1))
    return [slice(i, min(i + size, objects)) for i in range(0, objects, size)]
