"""Temperatures: what they do to the laws along n, and which of them is best."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ensize.checks import InputError
from ensize.claims.along_n import SECTION, slope_along
from ensize.claims.estimates import Estimate, interval, jackknife, most_striking
from ensize.claims.points import Floats, Tempered, along_temperature, sized
from ensize.claims.verdicts import Bounds, claim, counted
from ensize.draws import disjoint
from ensize.predictions import Predictions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ensize.evidence import Evidence

# Pairs of networks are compared with each network: at least three pairs, and no more
# networks than these, as their logits are all read.
_PAIRED, _MOST = 6, 32
# Further decimals of a difference are rounding.
_DECIMALS = 9
_FIXED = "appendix NLL with fixed temperature as a function of ensemble size"


@claim(
    "exponent-temperature",
    "the exponent of NLL_n(τ) tends to -1 as the temperature grows",
    section=f"{SECTION}; {_FIXED}",
    bounds=Bounds(most=0.0),
)
def exponent_along_temperature(evidence: Evidence) -> tuple[Estimate, str]:
    """Find whether the exponent comes nearer to -1 as the temperature grows.

    Section *NLL as a function of ensemble size* (NLL with fixed temperature): "when the
    temperature grows, the general behaviour is that a approaches -1 more and more
    tightly", which breaks for small networks. The number is the distance of a from -1
    at the highest temperature minus that at the lowest, a mean over pools; jackknife
    over networks.
    """
    found = along_temperature(evidence)
    ends = [each.exponent[:, [0, -1]] for each in found]

    def nearer(rows: Floats) -> Floats:
        off = np.abs(rows + 1)
        mean: Floats = (off[:, :, 1] - off[:, :, 0]).mean(axis=1)
        return mean

    value = jackknife(nearer, ends)
    low, high = np.mean([each[0] for each in ends], axis=0)
    several = sum(abs(each[0, 1] + 1) < abs(each[0, 0] + 1) for each in ends)
    at = found[0].profile.temperature
    return value, (
        f"a is {low:.3f} at τ = {at[0]:.2g} and {high:.3f} at τ = {at[-1]:.2g}, means"
        f" over pools; it is nearer to -1 at the higher one in {several} of"
        f" {len(found)}"
    )


@claim(
    "gain-temperature",
    "the gain b of NLL_n(τ) falls as the temperature grows",
    section=f"{SECTION}; {_FIXED}",
    bounds=Bounds(most=1.0),
)
def gain_along_temperature(evidence: Evidence) -> tuple[Estimate, str]:
    """Find whether the gain of ensembling falls at every step of the temperature.

    Section *NLL as a function of ensemble size* (NLL with fixed temperature): "the gain
    is higher for low temperatures", and with high ones "b approaches zero"; the
    appendix *NLL with fixed temperature as a function of ensemble size*: "parameter b
    decreases when the temperature grows". The number is the largest ratio of b at one
    temperature to b at the one below it, over temperatures and pools; jackknife over
    networks.
    """
    found = along_temperature(evidence)
    gains = [each.gain for each in found]

    def steepest(rows: Floats) -> Floats:
        most: Floats = (rows[:, :, 1:] / rows[:, :, :-1]).max(axis=(1, 2))
        return most

    value = jackknife(steepest, gains)
    whole = [float(each[0, -1] / each[0, 0]) for each in gains]
    at = found[0].profile.temperature
    return value, (
        f"from one temperature to the next b is at most {value.value:.3f} times as"
        f" large; from τ = {at[0]:.2g} to {at[-1]:.2g} it falls to"
        f" {min(whole):.2g} of itself, or {max(whole):.2g}, depending on the pool"
    )


def _bests(pool: Tempered) -> Floats:
    """Find the best temperature of each n, with and without each network.

    Between the temperatures on a parabola in log τ through the lowest three; NaN where
    the lowest is the first or the last.
    """
    log = np.log(pool.profile.temperature)
    nll = np.moveaxis(pool.rows, 1, -1)
    lowest = nll.argmin(axis=-1)
    inside = (lowest > 0) & (lowest < len(log) - 1)
    middle = lowest.clip(1, len(log) - 2)
    (x0, x1, x2) = (log[middle + step] for step in (-1, 0, 1))
    (y0, y1, y2) = (
        np.take_along_axis(nll, middle[..., None] + step, -1)[..., 0]
        for step in (-1, 0, 1)
    )
    left, right = (y1 - y0) / (x1 - x0), (y2 - y1) / (x2 - x1)
    # The slope is `left` halfway from x0 to x1, and `right` halfway from x1 to x2.
    steps = -left / (right - left) * (x2 - x0) / 2
    best: Floats = np.where(inside, np.exp((x0 + x1) / 2 + steps), np.nan)
    return best


def _settled(found: Sequence[Tempered]) -> list[tuple[Tempered, Floats]]:
    """Pair each pool with its best temperatures, where these were searched."""
    paired = [(each, _bests(each)) for each in found]
    known = [(each, bests) for each, bests in paired if np.isfinite(bests).all()]
    if not known:
        at = found[0].profile.temperature
        raise InputError(
            f"the best temperatures lie outside {at[0]:.2g} to {at[-1]:.2g}, where they"
            " were sought"
        )
    return known


@claim(
    "temperature-converges",
    "the best temperature converges as n grows",
    section=f"{SECTION}; appendix Convergence of temperature",
    bounds=Bounds(most=1.0),
)
def temperature_converges(evidence: Evidence) -> tuple[Estimate, str]:
    """Find whether the best temperature moves less with every doubling of n.

    Section *NLL as a function of ensemble size* ("for given network size, the optimal
    temperature converges when n → ∞") and the appendix *Convergence of temperature*.
    The number is the factor by which its step shrinks from one doubling to the next,
    below 1 where the steps add up to a limit, 1 for a logarithm: from the first and
    last doubling that three ensembles make, a geometric mean over pools; jackknife
    over networks.
    """
    factors, along = [], []
    for each, bests in _settled(along_temperature(evidence)):
        doubled = bests[:, np.isin(each.n, 2.0 ** np.arange(16))]
        steps = np.log(np.maximum(np.abs(np.diff(np.log(doubled), axis=1)), 1e-12))
        factors.append((steps[:, -1] - steps[:, 0]) / (steps.shape[1] - 1))
        along.append((each.n[-1], each.pool, bests[0]))
    value = jackknife(lambda rows: rows.mean(axis=1), factors).through(math.exp)
    n, pool, bests = max(along, key=lambda each: each[0])
    return value, (
        f"with every doubling of n the step of the best temperature is"
        f" {value.value:.2g} times the one before; {pool!r} goes from {bests[0]:.3f} at"
        f" n = 1 to {bests[-1]:.3f} at n = {n:.0f}"
    )


@claim(
    "temperature-size",
    "the best temperature rises with the size of the networks, for ensembles as well",
    section=SECTION,
    bounds=Bounds(least=0.0),
)
def temperature_along_size(evidence: Evidence) -> tuple[Estimate, str]:
    """Find whether larger networks want a higher temperature.

    Section *NLL as a function of ensemble size* (NLL with fixed temperature): "the
    optimal temperature increases, when the network size grows. ... the same holds even
    for large ensembles". The number is the exponent of the best temperature along s, at
    the largest n that three ensembles of every pool make; jackknife over networks.
    """
    pools = sized(along_temperature(evidence))
    known = _settled(pools)
    sized(tuple(each for each, _ in known))
    n = min(each.n[-1] for each, _ in known)
    bests = [np.log(bests[:, each.n <= n][:, -1]) for each, bests in known]
    sizes = np.log([each.size for each, _ in known])
    value = jackknife(slope_along(sizes), bests)
    ends = [(known[k][0].pool, math.exp(bests[k][0])) for k in (0, -1)]
    return value, (
        f"for n = {n:.0f} the best temperature goes as s^{value.value:.2g}, from"
        f" {ends[0][1]:.3f} of {ends[0][0]!r} to {ends[1][1]:.3f} of {ends[1][0]!r}"
    )


@claim(
    "after-rises",
    "applied after averaging, NLL_n(τ) may rise with n at high temperatures",
    section=f"{SECTION}; appendix Power law in NLL with temperature applied after"
    " averaging; appendix Dynamics of NLL with fixed temperature and CNLL",
    bounds=Bounds(least=0.0),
)
def after_rises(evidence: Evidence) -> tuple[Estimate, str]:
    """Find a pool whose NLL rises from one network to two, temperature after averaging.

    Appendix *Dynamics of NLL with fixed temperature and CNLL*: "when the temperature is
    applied after averaging, NLL_n(τ) starts growing w.r.t. n for high values of τ",
    which the appendix *Power law in NLL with temperature applied after averaging*
    explains. The number is the rise at the highest temperature, in nats, of the pool
    whose rise is surest; the interval is Student's t over disjoint pairs of networks,
    widened since one of several pools was chosen.
    """
    pools = [
        each
        for each in evidence.pools
        if isinstance(each, Predictions) and each.networks >= _PAIRED
    ]
    if not pools:
        raise InputError(
            f"no pool has the logits of {_PAIRED} networks, and a temperature applied"
            " after averaging takes logits; record logits"
        )
    at = float(evidence.temperatures[-1])
    found = [interval(_rises(each, at), chosen_of=len(pools)) for each in pools]
    best = most_striking(found)
    rising = sum(each.low > 0 for each in found)
    return found[best], (
        f"at τ = {at:.2g} applied after averaging, NLL of two networks is that of one"
        f" {found[best].value:+.4f} nats in {pools[best].pool.name!r}; it surely rises"
        f" in {rising} of {counted(len(pools), 'pool')}"
    )


def _rises(pool: Predictions, temperature: float) -> Floats:
    """Compare disjoint pairs with their networks, at a temperature after averaging."""
    pairs = disjoint(min(pool.networks, _MOST), 2)

    def nll(log_p: Floats) -> float:
        scaled = log_p / temperature
        true = np.take_along_axis(scaled, pool.targets[:, None], axis=1)[:, 0]
        return float((np.logaddexp.reduce(scaled, axis=1) - true).mean())

    rises = []
    for pair in pairs:
        logits = [pool.logits(i, 0, pool.objects).astype(np.float64) for i in pair]
        one, other = (z - np.logaddexp.reduce(z, axis=1)[:, None] for z in logits)
        both = np.logaddexp(one, other) - math.log(2)
        rises.append(nll(both) - (nll(one) + nll(other)) / 2)
    return np.round(rises, _DECIMALS)
