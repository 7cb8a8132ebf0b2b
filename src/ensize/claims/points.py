"""Points: what claims are made of, with and without each network.

Every table has the points of a pool in its first row and below it those without each
network, from which `estimates.jackknife` takes its errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.checks import InputError
from ensize.claims.verdicts import counted
from ensize.draws import balanced, subsets
from ensize.laws import Fits, fit_many
from ensize.scores import shares_of
from ensize.scores.search import sketch_of
from ensize.threads import one_blas_thread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ensize.curves import Curve
    from ensize.evidence import Evidence
    from ensize.planes import Plane
    from ensize.profiles import Profile

Floats = np.ndarray[Any, np.dtype[np.float64]]

# A law has three parameters, so that fewer points do not check it; and each point is
# to be a mean over at least three ensembles, as in the paper. Five networks have four.
_LEAST = 4
# A gain or a fall below this, in nats, is none, and must not be divided by.
_NO_GAIN = 1e-12
_SAME = 1e-9
# Of ensembles up to this size so many, nearly, tell how lucky those drawn were.
FEW, _MANY = 4, 1000
# Objects that are worked on at a time.
_BLOCK = 1000


@dataclass(frozen=True, eq=False)
class Points:
    """CNLL of one pool along n, with its law: first of all networks, then without each.

    Parameters
    ----------
    pool, size
        Whose points; the size is NaN where it is not known.
    n, rows
        The points, (1 + networks, points).
    laws
        The law of each row.
    """

    pool: str
    size: float
    n: Floats
    rows: Floats
    laws: Fits

    @property
    def shares(self) -> Floats:
        """The residuals of each law, as a part of the fall along n."""
        shares: Floats = self.laws.rmse / np.ptp(self.rows, axis=1)
        return shares

    @property
    def log_gains(self) -> Floats:
        """The logarithms of the laws' gains."""
        logs: Floats = np.log(np.maximum(self.laws.gain, _NO_GAIN))
        return logs


def with_and_without(n: Any, points: Floats, without: Floats, few: int) -> Floats:
    """Put the points of a pool above those without each of its networks.

    The mean of the latter knows, to second order, the ensembles that were not drawn.
    Of more than a few networks it takes the place of the points, as it has less of the
    luck of the draw, which bends a curve; of fewer the second order is not enough.
    """
    middle = without.mean(axis=0)
    points = np.where(n > few, middle, points)
    return np.concatenate([points[None], points + without - middle])


def points_of(evidence: Evidence, k: int) -> Floats:
    """Read CNLL of a pool along n, small ensembles freed of the luck of the draw.

    CNLL of an ensemble is nearly its NLL at the temperature that is best for its size,
    and this is cheap: of n = 2 to 4 a thousand ensembles tell it, and by how much those
    that were drawn are better or worse than most.
    """
    curve = evidence.curve(k)
    points, l = curve.cnll.copy(), curve.networks
    few = [
        n
        for n in curve.n.tolist()
        if 1 < n <= FEW and math.comb(l, n) > len(subsets(l, n))
    ]
    if not few or curve.options.get("apply", "before") != "before":
        return points
    pool = evidence.pools[k]
    kept = [i for i, label in enumerate(pool.labels) if label not in curve.odd]
    sketch = sketch_of(pool if len(kept) == pool.networks else pool.choose(kept))
    grid = np.log(sketch.grid.inverse_temperatures)
    for n in few:
        at = int(np.flatnonzero(curve.n == n)[0])
        node = int(np.abs(grid + math.log(curve.temperature[at])).argmin())
        logs = np.stack([each[node : node + 1][0] for each in sketch.rows])
        p = np.exp(logs.astype(np.float64) - logs.max(axis=0))
        drawn = subsets(l, n, curve.options["seed"])
        others = balanced(l, n, _MANY, curve.options["seed"] + 1)
        points[at] += _nll(p, others) - _nll(p, drawn)
    return points


def _nll(p: Floats, members: NDArray[np.intp]) -> float:
    """Average NLL of ensembles, up to what is the same for all of them."""
    shares = shares_of(members, len(p))
    with one_blas_thread():
        parts = np.array_split(np.arange(p.shape[1]), 1 + p.shape[1] // _BLOCK)
        total = sum(np.log(shares @ p[:, part]).sum() for part in parts)
    return float(-total / (len(shares) * p.shape[1]))


def known_below(curve: Curve) -> float:
    """Find the n from which on CNLL is not known, or infinity.

    Where the networks leave no error in half of the test set, or where among many one
    votes for each true class, no temperature is low enough for it, and the other half
    pays without bound. `score` tells which ensembles end at the edge of its search.
    """
    if curve.at_edge is None:
        return math.inf
    return float(min(curve.n[(curve.at_edge > 0) & curve.averaged()], default=math.inf))


def along_n(evidence: Evidence) -> tuple[Points, ...]:
    """Gather the pools with enough points for a law along n."""

    def gathered() -> tuple[Points, ...]:
        found = []
        for k, pool in enumerate(evidence.pools):
            curve = evidence.curve(k)
            some = curve.averaged() & (curve.n < known_below(curve))
            without = curve.cnll_without
            if some.sum() < _LEAST or without is None:
                continue
            if np.ptp(curve.cnll[some]) < _SAME:
                continue
            n = curve.n[some].astype(np.float64)
            points = points_of(evidence, k)[some]
            rows = with_and_without(n, points, without[:, some], FEW)
            size = float(evidence.sizes[k])
            found.append(Points(pool.pool.name, size, n, rows, fit_many(n, rows)))
        return tuple(found)

    found = evidence.remember("claims: along n", gathered)
    if not found:
        for k, pool in enumerate(evidence.pools):
            check_known(pool.pool.name, evidence.curve(k))
        raise InputError(
            "no pool has five networks that do not say the same, so that no law along n"
            " can be checked; train more"
        )
    return found


@dataclass(frozen=True, eq=False)
class Tempered:
    """NLL_n(τ) of one pool, with its laws at each temperature.

    Parameters
    ----------
    profile
        What ensembles score along the temperature.
    n, rows
        The points that at least three ensembles make, (1 + networks, temperatures,
        points).
    limit, gain, exponent, rmse
        Of the laws, (1 + networks, temperatures).
    """

    profile: Profile
    size: float
    n: Floats
    rows: Floats
    limit: Floats
    gain: Floats
    exponent: Floats
    rmse: Floats

    @property
    def pool(self) -> str:
        """The name of the pool."""
        return self.profile.pool.name

    @property
    def shares(self) -> Floats:
        """The residuals of each law, as a part of the fall along n."""
        shares: Floats = self.rmse / np.ptp(self.rows, axis=2)
        return shares


def along_temperature(evidence: Evidence) -> tuple[Tempered, ...]:
    """Gather the pools with enough points for laws at fixed temperatures."""

    def gathered() -> tuple[Tempered, ...]:
        found = []
        for k in range(len(evidence.pools)):
            profile = evidence.profile(k)
            some = profile.ensembles >= 3
            if some.sum() < _LEAST or profile.nll_without is None:
                continue
            if np.ptp(profile.nll[:, some], axis=1).min() < _SAME:
                continue
            n = profile.n[some].astype(np.float64)
            without = np.swapaxes(profile.nll_without, 0, 1)
            points = profile.nll[:, some]
            rows = with_and_without(n, points, without[:, :, some], 2)
            laws = fit_many(n, rows.reshape(-1, len(n)))
            columns = (laws.limit, laws.gain, laws.exponent, laws.rmse)
            tables = [each.reshape(rows.shape[:2]) for each in columns]
            tables[1] = np.maximum(tables[1], _NO_GAIN)
            found.append(Tempered(profile, float(evidence.sizes[k]), n, rows, *tables))
        return tuple(found)

    found = evidence.remember("claims: along temperature", gathered)
    if not found:
        raise InputError(
            "no pool has five networks that do not say the same, so that no law along n"
            " can be checked at fixed temperatures; train more"
        )
    return found


def falling(found: tuple[Points, ...]) -> tuple[Points, ...]:
    """Return pools whose CNLL surely falls along n, or say which does not."""
    for each in found:
        if not np.isfinite(each.laws.exponent).all():
            raise InputError(
                f"CNLL of pool {each.pool!r} does not surely fall along n, so that it"
                " has no exponent and no gain; train more"
            )
    return found


def check_known(pool: str, curve: Curve, n: float = math.inf) -> None:
    """Refuse a pool if CNLL of up to n of its networks is not known."""
    first = known_below(curve)
    if first <= n and math.isfinite(first):
        raise InputError(
            f"the best temperature of some ensembles of n = {first:.0f} of pool"
            f" {pool!r} lies at the edge of what was searched, so that their CNLL is"
            " not known: the test set is too small, or too easy for them"
        )


def known_plane(
    evidence: Evidence, *, sizes: int = 2, n: float | None = math.inf
) -> Plane:
    """Return the plane, or say why there is none with so many sizes.

    It is refused if CNLL up to n networks is not known; of None it need not be.
    """
    if evidence.plane is None:
        raise InputError(evidence.lacking)
    if len(evidence.plane) < sizes:
        raise InputError(
            f"{counted(len(evidence.plane), 'size')} with three networks or more do not"
            f" tell this, but {sizes} may; train other widths"
        )
    for name, curve in zip(evidence.plane.names, evidence.plane.curves, strict=True):
        if n is not None:
            check_known(name, curve, n)
    return evidence.plane


def sized(rows: tuple[Any, ...], least: int = 3) -> tuple[Any, ...]:
    """Keep the pools whose size is known, or say that there are too few."""
    known = tuple(each for each in rows if np.isfinite(each.size))
    if len(known) < least:
        raise InputError(
            f"{counted(len(known), 'size')} with five networks or more do not tell what"
            f" becomes of something with the size, but {least} may; train other widths"
        )
    return known
