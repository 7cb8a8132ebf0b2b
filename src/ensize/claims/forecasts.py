"""Forecasts: how far predictions from a few points err, and what splits they choose."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ensize.checks import InputError
from ensize.claims.estimates import Estimate, interval, jackknife
from ensize.claims.points import Floats, Points, along_n, known_plane
from ensize.claims.verdicts import Bounds, claim, counted
from ensize.evidence import PAPER_SIZES, SIX
from ensize.laws import fit_many

if TYPE_CHECKING:
    from ensize.evidence import Evidence

_SECTION = "Prediction based on power laws"
_APPENDIX = "appendix Predictions based on power laws"
# Predictions from all networks are of pools with at least so many, the fewest that the
# paper trains of a size: with six they would be those from six.
_MANY = 12
# An error below this part is none, and as many orders as it says.
_EXACT = 1e-9


@claim(
    "forecast-all",
    "from n = 1 to 4 of all networks CNLL_n is predicted with an error two to three"
    " orders below its value",
    section=f"{_SECTION}; {_APPENDIX}",
    bounds=Bounds(least=2.0),
)
def from_all(evidence: Evidence) -> tuple[Estimate, str]:
    """Find by how many orders the errors of the paper's laws are below CNLL.

    Section *Prediction based on power laws* and the appendix *Predictions based on
    power laws*, first experiment: "the error 2-3 orders smaller than the values being
    predicted". The number is -log10 of the RMSE over n > 4 as a part of CNLL, a mean
    over pools of at least twelve networks; jackknife over networks.
    """
    found = [each for each in along_n(evidence) if len(each.rows) > _MANY]
    if not found:
        raise InputError(f"no pool has {_MANY} networks; train more")
    orders = [_orders_of_laws(each) for each in found]
    worst = found[int(np.argmin([each[0] for each in orders]))].pool
    value = jackknife(lambda rows: rows.mean(axis=1), orders)
    return value, (
        f"in {counted(len(found), 'pool')} predictions from n = 1 to 4 err by"
        f" {10**-value.value:.2%} of CNLL, {value.value:.1f} orders below it; most in"
        f" {worst!r}"
    )


def _orders_of_laws(each: Points) -> Floats:
    first, rest = np.isin(each.n, PAPER_SIZES), each.n > PAPER_SIZES[-1]
    laws = fit_many(each.n[first], each.rows[:, first], method="paper")
    return _orders(laws(each.n[rest]) / each.rows[:, rest] - 1)


def _orders(errors: Floats) -> Floats:
    """Say how many orders of ten relative errors are below 1, in quadratic mean."""
    orders: Floats = -np.log10(np.maximum(np.sqrt(np.mean(errors**2, axis=1)), _EXACT))
    return orders


@claim(
    "forecast-six",
    "from six networks CNLL_n is predicted with an error one to two orders below its"
    " value",
    section=f"{_SECTION}; {_APPENDIX}",
    bounds=Bounds(least=1.0),
)
def from_six(evidence: Evidence) -> tuple[Estimate, str]:
    """Find by how many orders the errors of predictions from six networks are below.

    Section *Prediction based on power laws* and the appendix *Predictions based on
    power laws*, second experiment: "the error of 1-2 orders smaller than the values
    being predicted", averaged over independent sets of networks. The number is as for
    `forecast-all`, a mean over sets and pools; truth is what the networks outside the
    set show; the interval is Student's t over the sets, at least three.
    """
    orders: list[float] = []
    for k in range(len(evidence.pools)):
        known = evidence.from_six(k)
        if known is not None:
            orders += _orders(known.errors["paper"] / known.truth).tolist()
    if len(orders) < 3:
        raise InputError(
            f"{counted(len(orders), 'set')} of {SIX} networks, beside which larger"
            " ensembles were measured, do not tell what is usual, but three do; train"
            " twelve networks of a size or more"
        )
    value = interval(orders)
    return value, (
        f"{len(orders)} predictions from {SIX} networks err by {10**-value.value:.2%}"
        f" of CNLL, {value.value:.1f} orders below it; from {10 ** -max(orders):.2%} to"
        f" {10 ** -min(orders):.2%}"
    )


@claim(
    "optimal-split-predicted",
    "from six networks of each size the best split is predicted exactly or next door",
    section=f"{_SECTION}; {_APPENDIX}",
    bounds=Bounds(least=0.5),
)
def split_predicted(evidence: Evidence) -> tuple[Estimate, str]:
    """Find how often the best split is predicted exactly or next door.

    Section *Prediction based on power laws*: "in most cases, the discovered power laws
    predict either the exact or the neighboring split". The number is the part of the
    predictions, from each set of six networks of each size and for each budget; the
    interval is Wilson's, counting budgets but not sets, as those of a budget share
    the truth. Most is more than half.
    """
    known_plane(evidence)
    found = evidence.optimal_splits("paper")
    near = np.abs(found.distance) <= 1
    budgets = len(np.unique(found.budget))
    value = wilson(float(near.mean()), budgets)
    return value, (
        f"of {len(near)} predictions for {counted(budgets, 'budget')}"
        f" {found.shares['exact']:.0%} are exact, {found.shares['neighbor']:.0%} next"
        f" door and {found.shares['worse']:.0%} worse; CNLL lost by them is"
        f" {found.lost.mean():.2g} nats"
    )


def wilson(share: float, count: int) -> Estimate:
    """Bound a share that was seen in so many cases, at 90 %.

    >>> print(*(round(each, 3) for each in wilson(1.0, 4)))
    1.0 0.597 1.0
    """
    z = 1.6448536269514722
    scale = 1 + z**2 / count
    middle = (share + z**2 / (2 * count)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2)
    return Estimate(share, min(share, middle - half), max(share, middle + half))
