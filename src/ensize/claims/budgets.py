"""Budgets: the law along the budget, and whether it is best split, and at what cost."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ensize.checks import InputError
from ensize.claims.estimates import Estimate, interval, jackknife
from ensize.claims.points import FEW, Floats, known_plane, with_and_without
from ensize.claims.verdicts import Bounds, Contradiction, claim, counted
from ensize.laws import fit_many
from ensize.planes.budgets import candidates, measured
from ensize.planes.readings import LEVELS, sense
from ensize.planes.sizes import CLOSE, PRIOR

if TYPE_CHECKING:
    from ensize.evidence import Evidence
    from ensize.planes import Plane
    from ensize.planes.budgets import Advantages

_SECTION = "NLL as a function of the total parameter count"
_APPENDIX = "appendix Power law approximation of NLL as a function of the memory"
_APPENDIX += " budget. MSA effect"
# Of how many networks a split is whose time is compared, and for how many budgets at
# most: the largest, as small networks take the time of an empty round.
_FEW, _LARGEST = 4, 3


@claim(
    "cnll-b-law",
    "CNLL_B, the best of each budget, is closely approximated by a power law",
    section=f"{_SECTION}; {_APPENDIX}",
    bounds=Bounds(most=CLOSE["budget"]),
)
def cnll_law(evidence: Evidence) -> tuple[Estimate, str]:
    """Find how far the best CNLL of each budget is from a law.

    Section *NLL as a function of the total parameter count* ("the approximation is
    tight") and the appendix *Power law approximation of NLL as a function of the memory
    budget*. The number is the RMSE as a part of the fall along the budget; jackknife
    over networks. A tenth is allowed: whole networks make a staircase, whose steps no
    law follows.
    """
    plane = known_plane(evidence)
    cut = plane.along_budget()
    if cut.law is None:
        raised = Contradiction if cut.verdict.code == "does not hold" else InputError
        raise raised(cut.verdict.sentence)

    def share(rows: Floats) -> Floats:
        best = rows.min(axis=1)
        laws = fit_many(cut.budget, best, weights="uniform", prior=PRIOR)
        left: Floats = laws.rmse / (best[:, 0] - best.min(axis=1))
        return left

    value = jackknife(share, _along_budget(plane, cut.budget)).at_least_0
    return value, (
        f"over {len(cut.budget)} budgets, {cut.budget[0]:,.0f} to"
        f" {cut.budget[-1]:,.0f} parameters, the law leaves residuals of"
        f" {value.value:.1%} of the fall, with a = {cut.law.exponent:.2f}"
    )


def _along_budget(plane: Plane, budgets: Floats) -> list[Floats]:
    """Read CNLL of as many networks as each budget allows, pool by pool."""
    tables = []
    for k, (size, curve) in enumerate(zip(plane.sizes, plane.curves, strict=True)):
        luck = plane.luck(k, "cnll")
        n = np.floor(budgets / size * (1 + 1e-12)).clip(0, curve.networks)
        assert curve.cnll_without is not None  # noqa: S101 # planes score all subsets
        # All networks together cannot be left out: as much off as all but one.
        without, last = curve.cnll_without.copy(), curve.n == curve.networks
        off = without - without.mean(axis=0)
        before_last = curve.n == curve.n[~last].max()
        without[:, last] = curve.cnll[last] + off[:, before_last]
        rows = with_and_without(curve.n, curve.cnll, without, FEW)
        read = luck.between(rows, n.clip(1))
        tables.append(np.where(n > 0, read, np.inf))
    return tables


@claim(
    "split-pays",
    "a split is better than one network of the standard size with as many parameters",
    section=f"{_SECTION}; {_APPENDIX}",
    bounds=Bounds(least=0.0),
)
def split_pays(evidence: Evidence) -> tuple[Estimate, str]:
    """Find by how much the best split of the standard budget beats a single network.

    Section *NLL as a function of the total parameter count*: "for a fixed memory
    budget, a single network may perform worse than an ensemble of several medium-size
    networks of the same total parameter count" (memory split advantage). The number is
    the advantage in CNLL as a part of the single network's; the interval is of draws of
    the plane, with what the split owes to having been chosen taken off. The standard
    budget is the size that the paper calls standard, or the largest where there is
    none.
    """
    found, at = _advantages(evidence)
    if not at.any():
        raise InputError(
            "no split of the standard budget was measured; train more networks of"
            " smaller sizes"
        )
    return _advantage(found, int(np.flatnonzero(at)[0]))


@claim(
    "split-pays-below",
    "a split is better than one network for budgets below the standard one, too",
    section=f"{_SECTION}; {_APPENDIX}",
    bounds=Bounds(least=0.0),
)
def split_pays_below(evidence: Evidence) -> tuple[Estimate, str]:
    """Find by how much the best split beats a single network below the standard size.

    Section *NLL as a function of the total parameter count*: "the MSA-effect holds even
    for budgets smaller than the standard budget". The number is as for `split-pays`, of
    the largest budget below the standard one.
    """
    found, _ = _advantages(evidence)
    below = found.budget < evidence.sizes[evidence.usual] * (1 - 1e-9)
    if not below.any():
        raise InputError(
            "no split of a budget below the standard one was measured; train more"
            " networks of smaller sizes"
        )
    value, sentence = _advantage(found, int(np.flatnonzero(below)[-1]))
    sure = int((found.low[below] > 0).sum())
    return value, (
        f"{sentence}; a split surely wins at {sure} of"
        f" {counted(int(below.sum()), 'budget')} below the standard one"
    )


def _advantages(evidence: Evidence) -> tuple[Advantages, Floats]:
    """Compare splits with single networks, and say which budget is the standard one."""
    plane = known_plane(evidence)
    found = plane.remember("claims: advantages", plane.advantage)
    return found, np.isclose(found.budget, evidence.sizes[evidence.usual])


def _advantage(found: Advantages, k: int) -> tuple[Estimate, str]:
    single = found.single[k]
    columns = (found.advantage[k], found.low[k], found.high[k])
    value = Estimate(*(float(each / single) for each in columns))
    better = "better" if value.value > 0 else "worse"
    return value, (
        f"of {found.budget[k]:,.0f} parameters {found.n[k]} networks of"
        f" {found.size[k]:,} have CNLL {found.value[k]:.4f}, a single one"
        f" {single:.4f}: the split is {better} by {abs(value.value):.1%}"
    )


@claim(
    "accuracy-split",
    "for accuracy the best split has as many networks as for CNLL, or fewer",
    section=_APPENDIX,
    bounds=Bounds(least=0.5),
)
def accuracy_split(evidence: Evidence) -> tuple[Estimate, str]:
    """Find for how many budgets accuracy wants no more networks than CNLL.

    Appendix *Power law approximation of NLL as a function of the memory budget. MSA
    effect*: "the optimal memory split is usually achieved for accuracy at the same n or
    at the smaller n than for CNLL". The number is the part of the budgets for which
    that is so, the sizes of the pools for which a split was measured; the interval is
    of draws of the plane. Usually is more than half.
    """
    plane = known_plane(evidence)
    if np.isnan(plane.curves[0].accuracy).any():
        raise InputError(
            "the store holds sketches, which know no accuracy; record logits"
        )
    agreed, values = [], []
    for budget in plane.costs():
        best = []
        for score in ("cnll", "accuracy"):
            found = candidates(
                plane, budget, score, "parameters", measured(plane, score)
            )
            n = np.array([each.n for each in found])
            draws = np.column_stack([each.reading.draws for each in found])
            here = np.array([[each.reading.value for each in found]])
            every = sense(score) * np.vstack([here, draws])
            best.append(n[every.argmin(axis=1)])
        if n.min() < n.max():
            values.append(best[1][0] <= best[0][0])
            agreed.append(best[1][1:] <= best[0][1:])
    if not values:
        raise InputError("no two splits of a budget were measured; train more networks")
    value, drawn = float(np.mean(values)), np.mean(agreed, axis=0)
    low, high = np.quantile(np.append(drawn, value), LEVELS)
    return Estimate(value, min(float(low), value), max(float(high), value)), (
        f"the best split for accuracy has no more networks than that for CNLL at"
        f" {sum(values)} of {len(values)} budgets"
    )


@claim(
    "split-training-time",
    "training a split of a few networks is only moderately slower than a single one",
    section=f"{_SECTION}; {_APPENDIX}, timing analysis",
    bounds=Bounds(most=2.0),
)
def training_time(evidence: Evidence) -> tuple[Estimate, str]:
    """Compare how long four networks and a single one of their total size train.

    Section *NLL as a function of the total parameter count* and the timing analysis of
    the appendix on budgets: four networks of size S take 64 s for an epoch, a single
    one of 4 S takes 42 s. The number is the ratio, all networks one after the other, a
    geometric mean over the three largest budgets; the interval is Student's t over
    these. Moderately is at most twice.
    """
    return _slower(evidence, evidence.seconds, "training")


@claim(
    "split-prediction-time",
    "predicting with a split of a few networks is only moderately slower",
    section=f"{_SECTION}; {_APPENDIX}, timing analysis",
    bounds=Bounds(most=2.0),
)
def prediction_time(evidence: Evidence) -> tuple[Estimate, str]:
    """Compare how long four networks and a single one of their total size predict.

    The timing analysis of the appendix on budgets: four networks of size S take 132 s,
    a single one of 4 S takes 111 s. The number is as for `split-training-time`.
    """
    return _slower(evidence, evidence.prediction_seconds, "predicting with")


def _slower(evidence: Evidence, seconds: Floats, doing: str) -> tuple[Estimate, str]:
    known = np.isfinite(evidence.sizes) & np.isfinite(seconds) & (seconds > 0)
    sizes, took = evidence.sizes[known], seconds[known]
    whole = sizes[sizes >= _FEW * sizes.min(initial=math.inf) * (1 - 1e-9)][-_LARGEST:]
    if len(whole) < _LARGEST:
        raise InputError(
            f"the seconds of networks of {_LARGEST} sizes and of a quarter of each are"
            f" not known; they are where `ensize study` trained networks that differ by"
            " more than that"
        )
    # Between two sizes on a line in log-log.
    part, alone = (
        np.interp(np.log(at), np.log(sizes), np.log(took))
        for at in (whole / _FEW, whole)
    )
    ratios = math.log(_FEW) + part - alone
    value = interval(ratios).through(math.exp)
    each = ", ".join(f"{math.exp(ratio):.2f}" for ratio in ratios)
    return value, (
        f"{doing} {_FEW} networks one after the other takes {value.value:.2f} times as"
        f" long as one of their total size ({each} for the {len(whole)} largest)"
    )
