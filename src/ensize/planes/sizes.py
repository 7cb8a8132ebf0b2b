"""Cuts along the size of the networks, and the law that may stand behind one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.checks import whole
from ensize.laws import Fit, Status, fit, fit_many
from ensize.planes.readings import LEVELS, Verdict, sense

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ensize.planes import Plane

Floats = np.ndarray[Any, np.dtype[np.float64]]
Judged = tuple[Fit | None, tuple[float, float, float], Verdict]

# The exponent along the size: near -0.5 in the paper, and we know little else.
PRIOR = (-0.5, 0.5)
# A law holds where its residuals are below this part of the fall of the points. Along
# the budget more is left: whole networks make a staircase, whose steps no law follows.
CLOSE = {"size": 0.05, "budget": 0.1}
# A turn or a fall is believed with this probability.
_SURE = 0.9
# Curves that are refitted for the interval of the exponent.
_REFITS = 400


@dataclass(frozen=True, eq=False)
class SizeCut:
    """A score along the size of the networks, for ensembles of n.

    Parameters
    ----------
    n, score
        What was cut.
    size, value, low, high
        The points, with intervals of 90 %, at sizes of which there are n networks.
    law
        The law c + b·s^a, or None where none holds; of accuracy, that of its errors.
    exponent
        The exponent with an interval of 90 %; NaN without a law.
    turned
        The probability that the largest size is not the best one.
    verdict
        Whether a law holds: `holds`, `does not hold` or `cannot be said`.
    """

    n: int
    score: str
    size: NDArray[np.int64]
    value: Floats
    low: Floats
    high: Floats
    law: Fit | None
    exponent: tuple[float, float, float]
    turned: float
    verdict: Verdict

    def records(self) -> list[dict[str, Any]]:
        """List the points as plain records."""
        columns = zip(self.size, self.value, self.low, self.high, strict=True)
        return [
            {"size": int(s), "value": float(v), "low": float(a), "high": float(b)}
            for s, v, a, b in columns
        ]


def along_size(plane: Plane, n: int, score: str) -> SizeCut:
    """Cut a plane at n networks."""
    n = whole("n", n, 1, int(plane.networks.max()))
    there = np.flatnonzero(plane.networks >= n)
    readings = [plane.luck(int(k), score).reading(n) for k in there]
    size = plane.sizes[there]
    value = np.array([each.value for each in readings])
    draws = np.column_stack([each.draws for each in readings])
    low, high = np.quantile(draws, LEVELS, axis=0)
    ways = sense(score) * draws
    turned = float(np.mean(ways[:, -1] > ways.min(axis=1)))
    law, exponent, verdict = judge(
        size.astype(np.float64), value, draws, score, turned, "size"
    )
    return SizeCut(n, score, size, value, low, high, law, exponent, turned, verdict)


def judge(
    m: Floats, value: Floats, draws: Floats, score: str, turned: float, along: str
) -> Judged:
    """Fit a law with uniform weights, and say whether it describes the points."""

    def without(code: str, sentence: str) -> Judged:
        return None, (np.nan, np.nan, np.nan), Verdict(code, sentence)

    loss, lost = (value, draws) if score == "cnll" else (1 - value, 1 - draws)
    if len(m) < 4:
        return without(
            "cannot be said",
            f"there are {len(m)} points along the {along}, and any three lie on some"
            " law; at least 4 are needed",
        )
    fall = loss[0] - loss.min()
    error = float(np.median(lost.std(axis=0)))
    if turned >= _SURE:
        best = m[int(loss.argmin())]
        return without(
            "does not hold",
            f"the curve turns: it is best at the {along} {best:,.0f} and worse at"
            f" {m[-1]:,.0f} with probability {turned:.2f}; no law is fitted",
        )
    if fall <= 4 * error:
        return without(
            "cannot be said",
            f"the points fall by {fall:.2g} along the {along}, little more than their"
            f" standard error of {error:.2g}; add networks, or a wider range",
        )
    found = fit(m, loss, weights="uniform", prior=PRIOR)
    if found.status in (Status.NOT_DECREASING, Status.CONSTANT):
        return without("does not hold", found.message)
    share = found.rmse / fall
    # A draw may leave the scores' range, where no law can be fitted.
    sound = (lost[:_REFITS] > 0).all(axis=1)
    refits = fit_many(m, lost[:_REFITS][sound], weights="uniform", prior=PRIOR)
    spread = refits.exponent[np.isfinite(refits.exponent)]
    low, high = np.quantile(spread, LEVELS) if len(spread) else (np.nan, np.nan)
    exponent = (found.exponent, float(low), float(high))
    close = found.rmse <= max(CLOSE[along] * fall, 2 * error)
    sentence = (
        f"a law with exponent {found.exponent:.2f} ({low:.2f} to {high:.2f}) leaves"
        f" residuals of {share:.1%} of the fall along the {along}"
    )
    if close:
        return found, exponent, Verdict("holds", sentence)
    sentence += f", more than {CLOSE[along]:.0%}"
    return found, exponent, Verdict("does not hold", sentence)
