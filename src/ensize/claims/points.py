"""Points: what claims are made of, with and without each network.

Every table has the points of a pool in its first row and below it those without each
network, from which `estimates.jackknife` takes its errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.checks import InputError
from ensize.laws import Fits, fit_many

if TYPE_CHECKING:
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


def along_n(evidence: Evidence) -> tuple[Points, ...]:
    """Gather the pools with enough points for a law along n."""

    def gathered() -> tuple[Points, ...]:
        found = []
        for k, pool in enumerate(evidence.pools):
            curve = evidence.curve(k)
            some = curve.averaged()
            without = curve.cnll_without
            if some.sum() < _LEAST or without is None:
                continue
            if np.ptp(curve.cnll[some]) < _SAME:
                continue
            n = curve.n[some].astype(np.float64)
            rows = np.vstack([curve.cnll, without])[:, some]
            size = float(evidence.sizes[k])
            found.append(Points(pool.pool.name, size, n, rows, fit_many(n, rows)))
        return tuple(found)

    found = evidence.remember("claims: along n", gathered)
    if not found:
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
            rows = np.concatenate([profile.nll[None], without])[:, :, some]
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


def known_plane(evidence: Evidence, *, sizes: int = 2) -> Plane:
    """Return the plane, or say why there is none with so many sizes."""
    if evidence.plane is None:
        raise InputError(evidence.lacking)
    if len(evidence.plane) < sizes:
        raise InputError(
            f"there are {len(evidence.plane)} sizes with three networks or more, but"
            f" this takes {sizes}; train other widths"
        )
    return evidence.plane


def sized(rows: tuple[Any, ...], least: int = 3) -> tuple[Any, ...]:
    """Keep the pools whose size is known, or say that there are too few."""
    known = tuple(each for each in rows if np.isfinite(each.size))
    if len(known) < least:
        raise InputError(
            f"there are {len(known)} sizes with five networks or more, but to tell what"
            f" becomes of something with the size takes {least}; train other widths"
        )
    return known
