"""Along the size: what becomes of scores as the networks grow."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from ensize.checks import InputError
from ensize.claims.estimates import Estimate, jackknife, most_striking
from ensize.claims.points import FEW, Floats, known_below, known_plane, with_and_without
from ensize.claims.verdicts import Bounds, Contradiction, claim
from ensize.laws import Fits, fit_many
from ensize.planes.sizes import CLOSE, PRIOR
from ensize.scores.search import sketch_of
from ensize.temperatures import nll_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from ensize.evidence import Evidence
    from ensize.planes import Plane

_SECTION = "NLL as a function of network size"
_SINGLE = f"{_SECTION}; appendix Power law approximation of NLL as a function of"
_SINGLE += " network size"


def _laws(plane: Plane, prior: tuple[float, float] | None) -> Callable[[Floats], Fits]:
    """Make the function that fits laws along the size, as the plane's own cut does."""
    sizes = plane.sizes.astype(np.float64)
    return lambda rows: fit_many(sizes, rows, weights="uniform", prior=prior)


def _along_size(plane: Plane, n: int) -> list[Floats]:
    """Read CNLL of n networks of each size, with and without each network."""
    rows = []
    for curve in plane.curves:
        at = int(np.flatnonzero(curve.n == n)[0])
        assert curve.cnll_without is not None  # noqa: S101 # planes score all subsets
        points, without = curve.cnll[at], curve.cnll_without[:, at]
        rows.append(with_and_without(n, points, without, FEW))
    return rows


@claim(
    "cnll-s-law",
    "CNLL_s of a single network is closely approximated by a power law of its size",
    section=_SINGLE,
    bounds=Bounds(most=CLOSE["size"]),
)
def cnll_law(evidence: Evidence) -> tuple[Estimate, str]:
    """Find how far CNLL of single networks is from a law of their size.

    Section *NLL as a function of network size* (single network) and the appendix *Power
    law approximation of NLL as a function of network size*: calibration "allows a close
    power-law approximation". The number is the RMSE as a part of the fall along s;
    jackknife over networks. It cannot be said of fewer than four sizes or of points
    that fall by little more than their errors, and does not hold where the curve
    surely turns.
    """
    plane = known_plane(evidence, sizes=4, n=1)
    cut = plane.along_size(1)
    if cut.law is None:
        raised = Contradiction if cut.verdict.code == "does not hold" else InputError
        raise raised(cut.verdict.sentence)
    laws = _laws(plane, PRIOR)

    def share(rows: Floats) -> Floats:
        left: Floats = laws(rows).rmse / (rows[:, 0] - rows.min(axis=1))
        return left

    value = jackknife(share, _along_size(plane, 1)).at_least_0
    return value, (
        f"over {len(plane)} sizes the law leaves residuals of {value.value:.1%} of the"
        f" fall along s (RMSE {cut.law.rmse:.2g} nats), with a = {cut.law.exponent:.2f}"
    )


@claim(
    "cnll-s-exponent",
    "the exponent of CNLL_s of a single network is near -0.5",
    section=_SINGLE,
    bounds=Bounds(-0.75, -0.25),
)
def cnll_exponent(evidence: Evidence) -> tuple[Estimate, str]:
    """Find the exponent of CNLL of single networks along their size.

    Section *NLL as a function of network size* ("parameter a is close to -0.5") and the
    appendix *Power law approximation of NLL as a function of network size*. The number
    is the exponent, fitted without the prior that pulls it to -0.5; jackknife over
    networks. It cannot be said where there is no law.
    """
    plane = known_plane(evidence, sizes=4, n=1)
    cut = plane.along_size(1)
    if cut.law is None:
        raise InputError(cut.verdict.sentence)
    laws = _laws(plane, None)
    value = jackknife(lambda rows: laws(rows).exponent, _along_size(plane, 1))
    return value, (
        f"over {len(plane)} sizes, from {plane.sizes[0]:,} to {plane.sizes[-1]:,}"
        f" parameters, the exponent is {value.value:.2f}"
    )


def _surest_rise(rows: list[Floats], plane: Plane) -> tuple[Estimate, str, str]:
    """Find from which size to which larger one a score rises most surely."""
    pairs = list(itertools.combinations(range(len(rows)), 2))
    found = [
        jackknife(
            lambda both: both[:, 1] - both[:, 0],
            [rows[i], rows[j]],
            chosen_of=len(pairs),
        )
        for i, j in pairs
    ]
    best = most_striking(found)
    i, j = pairs[best]
    return found[best], plane.names[i], plane.names[j]


@claim(
    "nll-s-turns",
    "NLL_s at τ = 1 of a single network need not fall with its size: it may rise",
    section=_SINGLE,
    bounds=Bounds(least=0.0),
)
def nll_turns(evidence: Evidence) -> tuple[Estimate, str]:
    """Find whether NLL of single networks rises somewhere along the size.

    Section *NLL as a function of network size* (single network): "we observe the double
    descent behaviour of the non-calibrated NLL, which could not be approximated with a
    power law"; the appendix *Power law approximation of NLL as a function of network
    size*: it "may exhibit double descent". The number is the rise of NLL at τ = 1, in
    nats, from one size to a larger one, where it is surest; jackknife over networks,
    widened since one of several pairs of sizes was chosen.
    """
    plane = known_plane(evidence, n=None)
    rows = []
    for pool in plane.pools:
        sketch = sketch_of(pool)
        alone = nll_at(sketch.grid, sketch.member_nll(), 1.0)
        rows.append(np.append(alone.mean(), (alone.sum() - alone) / (len(alone) - 1)))
    value, smaller, larger = _surest_rise(rows, plane)
    worst = "rises most surely" if value.value > 0 else "falls least"
    return value, (
        f"over {len(plane)} sizes NLL at τ = 1 {worst} from {smaller!r} to {larger!r},"
        f" by {value.value:+.3g} nats"
    )


@claim(
    "cnll-s-ensembles-turn",
    "CNLL_s of ensembles rises from some size on",
    section=f"{_SECTION}; appendix CNLL of the ensemble of unregularized networks",
    bounds=Bounds(least=0.0),
)
def ensembles_turn(evidence: Evidence) -> tuple[Estimate, str]:
    """Find whether CNLL of ensembles rises somewhere along the size.

    Section *NLL as a function of network size* (ensemble): "for ensemble sizes n > 1,
    CNLL starts increasing at some network size s"; stronger without regularization
    (appendix *CNLL of the ensemble of unregularized networks*). The number is the rise
    of CNLL, in nats, from one size to a larger one, where it is surest, of the largest
    ensembles that every size has three of; jackknife over networks, widened since one
    of several pairs of sizes was chosen.
    """
    plane = known_plane(evidence, n=2)
    common = set.intersection(
        *(set(c.n[c.averaged() & (c.n < known_below(c))]) for c in plane.curves)
    )
    n = int(max(common))
    if n < 2:
        raise InputError(
            "no two networks of each size make three ensembles; train more"
        )
    value, smaller, larger = _surest_rise(_along_size(plane, n), plane)
    worst = "rises most surely" if value.value > 0 else "falls least"
    return value, (
        f"for n = {n} CNLL {worst} from {smaller!r} to {larger!r}, by"
        f" {value.value:+.3g} nats"
    )
