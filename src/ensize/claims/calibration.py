"""Calibration: the temperature of one ensemble or of all, before averaging or after."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensize.checks import InputError
from ensize.claims.estimates import Estimate, around, interval, jackknife
from ensize.claims.points import known_below
from ensize.claims.verdicts import Bounds, claim, counted
from ensize.draws import subsets
from ensize.scores import score_ensembles, shares_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ensize.claims.points import Floats
    from ensize.curves import Curve
    from ensize.evidence import Evidence

_ENVELOPE = "Theoretical view; appendix Comparison of CNLL and LE-NLL"
_WAYS = "Theoretical view; appendix Difference in CNLL"
# Differences of so many disjoint ensembles, or more, tell their error.
_LEAST = 4
# Further decimals of a difference are rounding: NLL is read to 5·10⁻⁷.
_DECIMALS = 6
# Nothing is relative to an LE-NLL below this, in nats: that of ensembles without fault.
_PERFECT = 1e-9


@claim(
    "le-nll-whole",
    "calibrated on the whole test set CNLL is within 0.081 % of LE-NLL",
    section=_ENVELOPE,
    bounds=Bounds(-0.00081, 0.00081),
)
def near_envelope_whole(evidence: Evidence) -> tuple[Estimate, str]:
    """Find how far CNLL is from LE-NLL, both on the whole test set.

    Appendix *Comparison of CNLL and LE-NLL*, scenario (a): the relative difference is
    bounded by 0.018 % to 0.081 %, depending on data and architecture. The number is the
    relative difference of largest size over pools and n, up to half of their networks;
    jackknife over networks.
    """
    return _above_envelope(evidence, "cnll_whole")


@claim(
    "le-nll-cross-validated",
    "cross-validated CNLL is within 0.61 % of LE-NLL",
    section=_ENVELOPE,
    bounds=Bounds(-0.0061, 0.0061),
)
def near_envelope(evidence: Evidence) -> tuple[Estimate, str]:
    """Find how far cross-validated CNLL is from LE-NLL on the whole test set.

    Appendix *Comparison of CNLL and LE-NLL*, scenario (b): the relative difference is
    bounded by 0.29 % to 0.61 %, depending on data and architecture. The number is the
    relative difference of largest size over pools and n, up to half of their networks;
    jackknife over networks.
    """
    return _above_envelope(evidence, "cnll")


def _above_envelope(evidence: Evidence, score: str) -> tuple[Estimate, str]:
    found = []
    for k in range(len(evidence.pools)):
        curve = evidence.curve(k)
        if curve.networks >= _LEAST and curve.le_nll.min() > _PERFECT:
            apart = getattr(curve, score) / curve.le_nll - 1
            apart[~_told(curve)] = 0.0
            worst = int(np.abs(apart).argmax())
            found.append((abs(apart[worst]), int(curve.n[worst]), k))
    if not found:
        raise InputError(
            f"no pool has {_LEAST} networks whose ensembles are not perfect; train more"
        )
    _, n, k = max(found)
    value = jackknife(lambda rows: rows[:, 0], [_apart(evidence, k, n, score)])
    curves = [evidence.curve(k) for *_, k in found]
    points = sum(int(_told(each).sum()) for each in curves)
    return value, (
        f"over {points} points of {counted(len(found), 'pool')} the"
        f" largest difference is {value.value:+.3%}, of n = {n} networks of"
        f" {evidence.pools[k].pool.name!r}"
    )


def _told(curve: Curve) -> NDArray[np.bool_]:
    """Say which points tell: of larger ensembles too few lack any one network."""
    told: NDArray[np.bool_] = curve.n <= curve.networks / 2
    return told & (curve.n < known_below(curve))


def _apart(evidence: Evidence, k: int, n: int, score: str) -> Floats:
    """Find the relative difference at one point, with and without each network."""
    pool, odd = evidence.pools[k], evidence.curve(k).odd
    if odd:
        kept = [i for i, label in enumerate(pool.labels) if label not in odd]
        pool = pool.choose(kept)
    shares = shares_of(subsets(pool.networks, n), pool.networks)
    scores = score_ensembles(pool, shares)
    values = getattr(scores, score)
    lacking = [np.ones(len(shares), bool), *(shares.T == 0)]
    return np.array([values[some].mean() / scores.le_nll(some) - 1 for some in lacking])


@claim(
    "before-after",
    "CNLL is nearly the same with the temperature before averaging and after",
    section=_WAYS,
    bounds=Bounds(-0.01, 0.01),
)
def nearly_equal(evidence: Evidence) -> tuple[Estimate, str]:
    """Find by how much CNLL differs between the two ways of applying a temperature.

    Section *Theoretical view* ("the two calibration procedures perform similarly in
    practice") and the appendix *Difference in CNLL* ("the difference between CNLL
    values is low in all the cases"). The number is before minus after as a part of
    CNLL, of largest size over n > 1 and pools; the interval is Student's t over
    disjoint ensembles, of which there are at least four, widened since one of several
    points was chosen. Nearly the same is within 1 %.
    """
    points = []
    for k in range(len(evidence.pools)):
        both = evidence.comparison(k)
        told = (both.n > 1) & (both.n < known_below(evidence.curve(k)))
        for i in np.flatnonzero(told & (both.ensembles >= _LEAST)):
            scale = both.before[i]
            apart = (both.difference[i] / scale, both.error[i] / scale)
            points.append((abs(apart[0]), *apart, both.ensembles[i], both.n[i], k))
    if not points:
        raise InputError(
            f"no pool has the logits of {2 * _LEAST} networks, from which {_LEAST}"
            " disjoint pairs tell the error of a difference; record more"
        )
    _, apart, error, ensembles, n, k = max(points)
    value = around(apart, error, int(ensembles) - 1, len(points))
    below = sum(each[1] < 0 for each in points)
    return value, (
        f"the largest difference, before minus after, is {apart:+.2%} of CNLL, of"
        f" n = {n} networks of {evidence.pools[k].pool.name!r}; before is better in"
        f" {below} of {len(points)} points"
    )


@claim(
    "before-better",
    "in most cases CNLL is slightly better with the temperature before averaging",
    section=_WAYS,
    bounds=Bounds(most=0.0),
)
def before_better(evidence: Evidence) -> tuple[Estimate, str]:
    """Find which way of applying a temperature is better.

    Section *Theoretical view* ("in most of the cases the second one performs slightly
    better", which is before averaging) and the appendix *Difference in CNLL*. The
    number is before minus after as a part of CNLL, a mean over n > 1 and pools; the
    interval is Student's t over pools, at least three.
    """
    means = []
    for k in range(len(evidence.pools)):
        both = evidence.comparison(k)
        told = (both.n > 1) & (both.n < known_below(evidence.curve(k)))
        apart = (both.difference / both.before)[told]
        if len(apart):
            means.append(round(float(apart.mean()), _DECIMALS))
    if len(means) < 3:
        raise InputError(
            f"{counted(len(means), 'pool')} with the logits of two networks or more do"
            " not tell what is usual, but three do; train other widths"
        )
    value = interval(means)
    return value, (
        f"before minus after is {value.value:+.3%} of CNLL in the mean, and below 0 in"
        f" {sum(each < 0 for each in means)} of {len(means)} pools"
    )
