"""Profiles: what ensembles of a pool score along the temperature.

Numbers only; figures draw them, and claims are judged by them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.checks import InputError, one_of, positive, whole
from ensize.curves.expansion import SecondOrder
from ensize.draws import chance_level, disjoint, odd_ones_out, subsets
from ensize.laws import Fits, fit_many
from ensize.scores import APPLY, score_ensembles, shares_of
from ensize.scores.search import profiles, sketch_of
from ensize.sketches import Sketch
from ensize.temperatures import calibrate, nll_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from ensize.curves import Curve
    from ensize.predictions import Pool, Predictions, Progress
    from ensize.sketches import Grid

Floats = np.ndarray[Any, np.dtype[np.float64]]
Counts = np.ndarray[Any, np.dtype[np.int64]]

# The paper's temperatures of regularized networks, and of unregularized ones, whose
# best lie higher.
TEMPERATURES = np.round(np.arange(0.5, 3.01, 0.1), 1)
WIDE = np.geomspace(0.25, 8, 26)


@dataclass(frozen=True, eq=False)
class Profile:
    """Expected NLL_n(τ) of ensembles of n networks, and its law at each temperature.

    Parameters
    ----------
    n, ensembles
        The number of networks, and how many ensembles were averaged.
    temperature
        The temperatures τ, ascending.
    nll
        NLL_n(τ), (temperatures, points).
    laws
        The law along n at each temperature, of points that at least three ensembles
        make.
    best, le_nll
        The temperature with the least expected NLL_n(τ), and LE-NLL_n there.
    pool, networks, objects
        What was scored, the odd ones left out.
    apply
        Whether the temperature is applied before averaging or after.
    nll_without
        NLL_n(τ) without each network, (temperatures, networks, points), from which
        errors follow; None after averaging.
    """

    n: Counts
    ensembles: Counts
    temperature: Floats
    nll: Floats
    laws: Fits
    best: Floats
    le_nll: Floats
    pool: Pool
    networks: int
    objects: int
    apply: str
    nll_without: Floats | None = None

    def records(self) -> list[dict[str, Any]]:
        """List the points as plain records, a temperature after the other."""
        return [
            {
                "temperature": float(temperature),
                "n": int(n),
                "ensembles": int(ensembles),
                "nll": float(value),
            }
            for temperature, row in zip(self.temperature, self.nll, strict=True)
            for n, ensembles, value in zip(self.n, self.ensembles, row, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class Comparison:
    """CNLL of the same ensembles with the temperature before averaging and after.

    Parameters
    ----------
    n, ensembles
        The number of networks, and how many disjoint ensembles were averaged.
    before, after
        CNLL by cross-validation.
    before_whole, after_whole
        CNLL calibrated and scored on all objects.
    error, error_whole
        Standard errors of the differences; NaN of a single ensemble.
    """

    n: Counts
    ensembles: Counts
    before: Floats
    after: Floats
    before_whole: Floats
    after_whole: Floats
    error: Floats
    error_whole: Floats

    @property
    def difference(self) -> Floats:
        """Before minus after, cross-validated: below 0 where before is better."""
        return self.before - self.after

    @property
    def difference_whole(self) -> Floats:
        """Before minus after, on all objects."""
        return self.before_whole - self.after_whole


def doubling(networks: int) -> list[int]:
    """List 1, 2, 4, … up to the number of networks.

    >>> doubling(24)
    [1, 2, 4, 8, 16]
    """
    return [2**k for k in range(networks.bit_length())]


def spaced(networks: int) -> list[int]:
    """List every n to 8, then four an octave, up to the number of networks.

    >>> spaced(24)
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24]
    """
    octaves = range(networks.bit_length())
    each = {2**k * part // 4 for k in octaves for part in range(4, 8)}
    return sorted(n for n in each if n <= networks)


def profile(
    pool: Predictions | Sketch,
    *,
    temperatures: ArrayLike = TEMPERATURES,
    n: Sequence[int] | None = None,
    apply: str = "before",
    method: str = "robust",
    keep_odd: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> Profile:
    """Score the ensembles of a pool along n at fixed temperatures.

    Parameters
    ----------
    pool
        What `ensize.load` returned.
    temperatures
        The fixed temperatures.
    n
        The numbers of networks; if not given `spaced`, and applied after averaging,
        where ensembles are dear, `doubling`.
    apply
        Whether the temperature is applied ``"before"`` averaging or ``"after"``.
    method
        How the laws are fitted.
    keep_odd
        Keep the networks that did not train.
    seed
        Of the draws.

    Examples
    --------
    >>> from ensize.synthetic import World
    >>> along = profile(World().predictions(8), temperatures=[0.5, 1, 2])
    >>> along.n, along.nll.shape
    (array([1, 2, 3, 4, 5, 6, 7, 8]), (3, 8))
    >>> along.laws.gain.round(2)  # what ensembling can gain falls with τ
    array([0.47, 0.16, 0.06])
    """
    one_of("apply", apply, APPLY)
    after = apply == "after"
    if after and isinstance(pool, Sketch):
        raise InputError(
            f"pool {pool.pool.name!r} holds sketches, which know the probability of the"
            " true class only; a temperature applied after averaging needs the logits:"
            " apply it before, or record logits"
        )
    at = np.unique(
        [positive("temperature", t) for t in np.ravel(temperatures).tolist()]
    )
    if not at.size:
        raise InputError("temperatures are empty; give at least one")
    sketch = sketch_of(pool, progress=progress)
    if not keep_odd:
        alone = calibrate(sketch.grid, sketch.member_nll()).nll
        odd = odd_ones_out(alone, chance_level(sketch.targets))
        left = np.setdiff1d(np.arange(pool.networks), odd)
        pool, sketch = pool.choose(left), sketch.choose(left)
    if n is None:
        n = doubling(pool.networks) if after else spaced(pool.networks)
    sizes = sorted({whole("n", each, 1, pool.networks) for each in n})
    drawn = [subsets(pool.networks, size, seed) for size in sizes]
    shares = np.vstack([shares_of(each, pool.networks) for each in drawn])
    grid, sums, sketch = profiles(
        pool,
        sketch,
        shares,
        np.ones((1, pool.objects), bool),
        after=after,
        cover=[1.0, *(1 / at)],
        progress=progress,
    )
    counts = np.array([len(each) for each in drawn])
    each_nll, ends = sums[:, 0] / pool.objects, np.cumsum(counts)[:-1]
    expected = np.array([part.mean(axis=0) for part in np.split(each_nll, ends)])
    least = calibrate(grid, expected)
    nll = np.array([nll_at(grid, expected, 1 / t) for t in at])
    enough = counts >= 3
    return Profile(
        n=np.array(sizes),
        ensembles=counts,
        temperature=at,
        nll=nll,
        laws=fit_many(np.array(sizes)[enough], nll[:, enough], method=method),
        best=least.temperature,
        le_nll=least.nll,
        pool=pool.pool,
        networks=pool.networks,
        objects=pool.objects,
        apply=apply,
        nll_without=None
        if after
        else _without(sketch, grid, each_nll, shares, ends, at),
    )


def _without(
    sketch: Sketch,
    grid: Grid,
    nll: Floats,
    shares: Floats,
    ends: Counts,
    temperatures: Floats,
) -> Floats:
    """Leave out each network in turn, as a curve does, at each temperature."""
    groups = np.split(shares, ends)
    without = []
    for temperature in temperatures:
        second = SecondOrder.of(sketch, 1 / temperature)
        values = np.split(nll_at(grid, nll, 1 / temperature), ends)
        rows = zip(values, groups, strict=True)
        without.append([second.leave_one_out(*each) for each in rows])
    return np.swapaxes(without, 1, 2)


def compare(
    pool: Predictions,
    *,
    n: Sequence[int] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Calibrate the same ensembles before averaging and after it.

    The ensembles of each n are the paper's ⌊ℓ/n⌋ disjoint ones, so that their
    differences are independent; n doubles if it is not given.

    >>> from ensize.synthetic import World
    >>> both = compare(World().predictions(8))
    >>> both.n, bool((abs(both.difference) < 0.005).all())
    (array([1, 2, 4, 8]), True)
    """
    sizes = doubling(pool.networks) if n is None else n
    sizes = sorted({whole("n", each, 1, pool.networks) for each in sizes})
    drawn = [disjoint(pool.networks, size, seed) for size in sizes]
    shares = np.vstack([shares_of(each, pool.networks) for each in drawn])
    sketch = sketch_of(pool, progress=progress)
    scored = [
        score_ensembles(
            pool, shares, apply=apply, seed=seed, sketch=sketch, progress=progress
        )
        for apply in APPLY
    ]
    before, after = scored
    counts = np.array([len(each) for each in drawn])

    def points(values: Floats) -> list[Floats]:
        return np.split(values, np.cumsum(counts)[:-1])

    def means(values: Floats) -> Floats:
        return np.array([part.mean() for part in points(values)])

    def errors(values: Floats) -> Floats:
        return np.array(
            [
                part.std(ddof=1) / np.sqrt(len(part)) if len(part) > 1 else np.nan
                for part in points(values)
            ]
        )

    return Comparison(
        n=np.array(sizes),
        ensembles=counts,
        before=means(before.cnll),
        after=means(after.cnll),
        before_whole=means(before.cnll_whole),
        after_whole=means(after.cnll_whole),
        error=errors(before.cnll - after.cnll),
        error_whole=errors(before.cnll_whole - after.cnll_whole),
    )


def above_envelope(curve: Curve) -> tuple[Floats, Floats]:
    """Compute CNLL minus LE-NLL along a curve: on all objects, and cross-validated.

    On all objects it is never above 0, as each ensemble has its own best temperature;
    cross-validation adds the price of choosing it on half of the objects.
    """
    return curve.cnll_whole - curve.le_nll, curve.cnll - curve.le_nll
