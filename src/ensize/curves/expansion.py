"""The second order of NLL around a pool: what leaving out a network changes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.scores.means import sums_before
from ensize.threads import one_blas_thread

if TYPE_CHECKING:
    from ensize.sketches import Sketch

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, eq=False)
class SecondOrder:
    """NLL of any subset to second order around the mean of the pool.

    With r_i = p_i/p̄ - 1 on each object and the mean over objects ⟨·⟩,

        NLL(S) ≈ NLL(pool) - Σ_{i∈S} ⟨r_i⟩/n + Σ_{i,j∈S} ⟨r_i r_j⟩/2n²,

    as in the proof of Proposition 1. Its mean over all subsets of a pool is known
    in closed form, with or without one of the networks.
    """

    first: Floats
    second: Floats

    @classmethod
    def of(cls, sketch: Sketch, inverse: float | None = None) -> SecondOrder:
        """Expand at the node nearest to 1/τ, if not given at the pool's best one."""
        networks, objects = sketch.networks, sketch.objects
        if inverse is None:
            everyone = np.full((1, networks), 1 / networks)
            every = np.ones((1, objects), bool)
            node = int(sums_before(sketch, everyone, every, sketch.grid).argmin())
        else:
            away = np.log(sketch.grid.inverse_temperatures / inverse)
            node = int(np.abs(away).argmin())
        logs = np.stack([each[node : node + 1][0] for each in sketch.rows])
        p = np.exp(logs.astype(np.float64) - logs.max(axis=0))
        r = p / p.mean(axis=0) - 1
        with one_blas_thread():
            return cls(r.mean(axis=1), r @ r.T / objects)

    def jackknife(self, values: Floats, shares: Floats) -> float:
        """Compute the delete-one standard error of a mean over subsets."""
        without = self.leave_one_out(values, shares)
        return float(math.sqrt((len(without) - 1) * without.var()))

    def leave_one_out(self, values: Floats, shares: Floats) -> Floats:
        """Average over the subsets that lack each network; NaN where none does.

        With every subset at hand the mean without network i is that over the
        subsets which lack it. With some of them drawn, that difference would carry
        the luck of the draw, at two to four times the variance: so the part which
        the expansion explains is taken in closed form, and only the rest, which is
        small, from the subsets drawn.
        """
        networks = shares.shape[1]
        lacking = shares.T == 0
        if networks < 2 or not lacking.any(axis=1).all():
            return np.full(networks, math.nan)
        n = int(np.count_nonzero(shares[0]))
        quadratic = np.einsum("ei,ij,ej->e", shares, self.second, shares, optimize=True)
        explained = quadratic / 2 - shares @ self.first
        spread = explained.var()
        slope = np.mean((values - values.mean()) * (explained - explained.mean()))
        slope = slope / spread if spread > 0 else 0.0
        rest = values - slope * explained
        without: Floats = slope * self._without(n)
        without += lacking @ rest / lacking.sum(axis=1)
        return without

    def _without(self, n: int) -> Floats:
        """Average the expansion over all subsets of n that lack each network."""
        l, own = len(self.first), np.diag(self.second)
        left = l - 1
        of_first = (self.first.sum() - self.first) / left
        of_own = (own.sum() - own) / left
        pairs = self.second.sum() - 2 * self.second.sum(axis=1) + own
        of_pairs = (pairs - (own.sum() - own)) / max(left * (left - 1), 1)
        without: Floats = (of_own + (n - 1) * of_pairs) / (2 * n) - of_first
        return without
