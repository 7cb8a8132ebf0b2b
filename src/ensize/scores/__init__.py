"""Scores of ensembles: NLL, CNLL, LE-NLL, accuracy, Brier score.

An ensemble is a row of *shares*: 1/n for its n members and 0 for the rest of the
pool. Many ensembles are scored at once, because then the means over members are
one matrix product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from ensize.checks import InputError
from ensize.predictions import Predictions
from ensize.scores.answers import accuracy_and_brier
from ensize.scores.search import profiles, sketch_of
from ensize.sketches import Grid, Sketch
from ensize.temperatures import Best, calibrate, nll_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ensize.predictions import Progress


Apply = Literal["before", "after"]
APPLY: tuple[Apply, ...] = get_args(Apply)


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of many ensembles, each an array over ensembles.

    Parameters
    ----------
    nll
        At τ = 1, or at the temperature that was asked for.
    cnll
        Calibrated by cross-validation, or on separate objects.
    cnll_whole
        Calibrated and scored on all objects.
    accuracy, brier
        At τ = 1; NaN where only sketches are known.
    jensen_gap
        Mean NLL of the members minus NLL of the ensemble, as for `nll`.
    temperatures
        The best temperatures, (ensembles, halves).
    at_edge
        Whether any of these lies at the edge of what was searched.
    profiles
        NLL on all objects at the nodes of `grid`, (ensembles, nodes).
    """

    nll: NDArray[np.float64]
    cnll: NDArray[np.float64]
    cnll_whole: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    brier: NDArray[np.float64]
    jensen_gap: NDArray[np.float64]
    temperatures: NDArray[np.float64]
    at_edge: NDArray[np.bool_]
    profiles: NDArray[np.float64]
    grid: Grid

    def le_nll(self, ensembles: slice | NDArray[Any]) -> float:
        """LE-NLL of these ensembles: the least mean NLL at one temperature.

        The paper's definition: the minimum stands outside the expectation.
        """
        return float(calibrate(self.grid, self.profiles[ensembles].mean(axis=0)).nll)


def shares_of(members: NDArray[np.intp], networks: int) -> NDArray[np.float64]:
    """Write ensembles of n members, (ensembles, n), as rows of shares.

    >>> shares_of(np.array([[0, 2]]), networks=3)
    array([[0.5, 0. , 0.5]])
    """
    shares = np.zeros((len(members), networks))
    np.put_along_axis(shares, members, 1 / members.shape[1], axis=1)
    return shares


def halvings(objects: int, seed: int, times: int = 5) -> NDArray[np.bool_]:
    """Cut the objects into two random halves, several times over.

    The paper's test-time cross-validation: in each halving either half chooses the
    temperature and the other scores. All ensembles see the same halves.
    """
    if objects < 2:
        raise InputError(
            "cross-validation needs at least 2 objects, one for each half; there is"
            f" {objects}"
        )
    random = np.random.default_rng(seed)
    first = np.zeros((times, objects), bool)
    for row in first:
        row[random.permutation(objects)[: objects // 2]] = True
    return first


def score_ensembles(
    pool: Predictions | Sketch,
    shares: NDArray[np.float64],
    *,
    apply: Apply = "before",
    temperature: float | None = None,
    calibrate_on: Predictions | Sketch | None = None,
    seed: int = 0,
    sketch: Sketch | None = None,
    progress: Progress | None = None,
) -> Scores:
    """Score ensembles of one pool.

    Parameters
    ----------
    pool
        The predictions, or a sketch of them.
    shares
        The ensembles, (ensembles, networks).
    apply
        Whether each member's predictions get the temperature, or their mean.
    temperature
        A fixed temperature for `nll`.
    calibrate_on
        Predictions of the same networks on other objects: if given, these choose
        the temperature and all objects of `pool` score.
    seed
        Of the halvings.
    sketch
        What `sketch_of` made of the pool, where it is known.
    """
    after = apply == "after"
    if after:
        _needs_logits(pool)
    if sketch is None:
        sketch = sketch_of(pool, progress=progress)
    fixed = 1.0 if temperature is None else 1 / temperature
    chosen = None
    cover = [fixed]
    if calibrate_on is not None:
        chosen = _choose_on(calibrate_on, shares, after=after)
        cover += chosen.inverse.ravel().tolist()
    first = halvings(pool.objects, seed)
    weights = np.vstack([first, np.ones(pool.objects, bool)])
    grid, sums, sketch = profiles(
        pool, sketch, shares, weights, after=after, cover=cover, progress=progress
    )
    # NLL on the first halves, on the second ones, and on all objects.
    sizes = weights.sum(axis=1)[:, None]
    ones, whole = sums[:, :-1] / sizes[:-1], sums[:, -1] / sizes[-1]
    others = (sums[:, -1:] - sums[:, :-1]) / (sizes[-1] - sizes[:-1])
    best_whole = calibrate(grid, whole)
    if chosen is None:
        # Each half by the temperature of the other.
        chosen = calibrate(grid, np.concatenate([others, ones], axis=1))
        scoring = np.concatenate([ones, others], axis=1)
    else:
        scoring = whole[:, None]
    nll = nll_at(grid, whole, fixed)
    members = nll_at(sketch.grid, sketch.member_nll(), fixed)
    accuracy = brier = np.full(len(shares), np.nan)
    if isinstance(pool, Predictions):
        accuracy, brier = accuracy_and_brier(pool, shares)
    return Scores(
        nll=nll,
        cnll=nll_at(grid, scoring, chosen.inverse).mean(axis=1),
        cnll_whole=best_whole.nll,
        accuracy=accuracy,
        brier=brier,
        jensen_gap=shares @ members - nll,
        temperatures=chosen.temperature,
        at_edge=chosen.at_edge.any(axis=1) | best_whole.at_edge,
        profiles=whole,
        grid=grid,
    )


def _needs_logits(pool: Predictions | Sketch) -> None:
    if isinstance(pool, Sketch):
        raise InputError(
            f"pool {pool.pool.name!r} holds sketches, which know the probability of"
            " the true class only; a temperature applied after averaging needs the"
            " logits: apply it before, or record logits"
        )


def _choose_on(
    pool: Predictions | Sketch, shares: NDArray[np.float64], *, after: bool
) -> Best:
    """Choose each ensemble's temperature on separate predictions."""
    if after:
        _needs_logits(pool)
    sketch = sketch_of(pool)
    everything = np.ones((1, pool.objects), bool)
    grid, sums, _ = profiles(pool, sketch, shares, everything, after=after)
    return calibrate(grid, sums / pool.objects)
