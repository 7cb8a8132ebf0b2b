"""Trials: what back-tests found, each figure with its own uncertainty."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ensize.forecasts.outcomes import Interval, count_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats = np.ndarray[Any, np.dtype[np.float64]]

# The rival: a straight line in 1/n.
LINE = "line"
# The level of bounds on what several pools say.
_LEVEL = 0.95


class Estimates(NamedTuple):
    """Values with their standard errors."""

    value: Floats
    se: Floats


@dataclass(frozen=True, eq=False)
class BackTest:
    """The errors of forecasts from disjoint sets of one pool.

    The keys of `errors`, `halves` and `at_bound` are the methods and their rival, the
    line in 1/n, as ``"line"``.

    Parameters
    ----------
    pool, networks
        The pool's name, and how many networks it has.
    members
        How many networks a set has.
    n
        The numbers of networks that were forecast.
    truth, truth_se
        What they score, and how far that may be off, on average over the sets.
    errors
        Forecast minus truth, (sets, n).
    halves
        Half-widths of the intervals, (sets, n); NaN where there is none.
    at_bound
        Whether a fit ended with its limit at the bound, (sets,).
    odd
        The networks that were left out.
    warnings
        Sentences on what a reader should know.
    """

    pool: str
    networks: int
    members: int
    n: Floats
    truth: Floats
    truth_se: Floats
    errors: dict[str, Floats]
    halves: dict[str, Floats]
    at_bound: dict[str, NDArray[np.bool_]]
    odd: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods, and the line in 1/n."""
        return tuple(self.errors)

    @property
    def sets(self) -> int:
        """How many disjoint sets there were."""
        return len(next(iter(self.errors.values())))

    def rmse(self, method: str) -> Estimates:
        """Compute the root mean squared error at each n."""
        squares = _mean(self.errors[method] ** 2)
        root = np.sqrt(squares.value)
        exact = root == 0
        return Estimates(root, squares.se / (2 * np.where(exact, 1, root)))

    def bias(self, method: str) -> Estimates:
        """Average the errors at each n."""
        return _mean(self.errors[method])

    def half_width(self, method: str) -> Estimates:
        """Average the half-widths of the intervals at each n."""
        return _mean(self.halves[method])

    def coverage(self, method: str) -> Estimates:
        """Count how often the truth lay in the interval at each n."""
        inside = self.inside(method)
        return Estimates(inside.mean(axis=0), _share_error(inside))

    def bound(self, method: str) -> Estimates:
        """Count how often the fit ended at its bound."""
        at_bound = self.at_bound[method].astype(np.float64)
        return Estimates(at_bound.mean(axis=0), _share_error(at_bound))

    def inside(self, method: str) -> Floats:
        """Say which intervals hold the truth, (sets, n); NaN where there is none."""
        half = self.halves[method]
        return np.where(np.isnan(half), np.nan, np.abs(self.errors[method]) <= half)

    def records(self) -> list[dict[str, Any]]:
        """List what was found, one record for each method and n."""
        listed = []
        for method in self.methods:
            columns = {
                name: getattr(self, name)(method)
                for name in ("rmse", "bias", "coverage", "half_width", "bound")
            }
            for i, n in enumerate(self.n.tolist()):
                record = {
                    "pool": self.pool,
                    "method": method,
                    "n": count_of(n),
                    "truth": float(self.truth[i]),
                    "truth_se": float(self.truth_se[i]),
                }
                for name, each in columns.items():
                    record[name] = float(np.broadcast_to(each.value, len(self.n))[i])
                    record[f"{name}_se"] = float(
                        np.broadcast_to(each.se, len(self.n))[i]
                    )
                listed.append(record)
        return listed

    def table(self) -> str:
        """Write what was found as a table for reading."""
        title = (
            f"{self.pool}: {self.sets} disjoint sets of {self.members} of"
            f" {self.networks} networks"
        )
        rows = [["method", "n", "truth", "rmse", "bias", "coverage", "half-width"]]
        rows[0].append("at bound")
        for each in self.records():
            n, line = each["n"], each["method"] == LINE
            rows.append(
                [
                    each["method"],
                    "∞" if math.isinf(n) else str(n),
                    f"{each['truth']:.5f} ± {each['truth_se']:.5f}",
                    f"{each['rmse']:.5f} ± {each['rmse_se']:.5f}",
                    f"{each['bias']:.5f} ± {each['bias_se']:.5f}",
                    "–"
                    if line
                    else f"{each['coverage']:.2f} ± {each['coverage_se']:.2f}",
                    "–" if line else f"{each['half_width']:.5f}",
                    "–" if line else f"{each['bound']:.0%}",
                ]
            )
        return f"{title}\n{_aligned(rows)}"


@dataclass(frozen=True, eq=False)
class BackTests:
    """The back-tests of one or several pools, and what they say together.

    Parameters
    ----------
    pools
        Each pool's back-test.
    options
        The choices that shaped them.
    """

    pools: tuple[BackTest, ...]
    options: dict[str, Any]

    @property
    def sets(self) -> int:
        """How many disjoint sets there were in all."""
        return sum(each.sets for each in self.pools)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences on what a reader should know, those of all pools."""
        return tuple(sentence for each in self.pools for sentence in each.warnings)

    def ratio(self, method: str, rival: str) -> Interval:
        """Compare the errors of two methods: a geometric mean over n and pools.

        The interval, of 95 %, counts pools; of one pool alone, its sets.
        """
        return self._compare(
            [(each.errors[method], each.errors[rival]) for each in self.pools]
        )

    def width(self, method: str) -> Interval:
        """Compare half-widths with errors, as `ratio` compares errors."""
        return self._compare(
            [(each.halves[method], each.errors[method]) for each in self.pools]
        )

    def coverage(self, method: str) -> Interval:
        """Say how often intervals hold the truth, over n and pools.

        The interval, of 95 %, counts pools; but it is not narrower than the sets say.
        """
        inside = [each.inside(method).mean(axis=1) for each in self.pools]
        shares = np.array([each.mean() for each in inside])
        found = self._over_pools(shares, np.array([*map(_share_error, inside)]))
        return Interval(found[0], *(min(max(x, 0.0), 1.0) for x in found[1:]))

    def _compare(self, pairs: list[tuple[Floats, Floats]]) -> Interval:
        """Compare root mean squares over the sets, (sets, n) each."""

        def compared(squares: Floats, others: Floats) -> Any:
            return np.log(squares / others).mean(axis=-1) / 2

        logs, errors = [], []
        for one, other in pairs:
            ours, theirs = one**2, other**2
            logs.append(compared(ours.sum(axis=0), theirs.sum(axis=0)))
            # The delete-one jackknife over the sets.
            without = compared(ours.sum(axis=0) - ours, theirs.sum(axis=0) - theirs)
            errors.append(math.sqrt((len(one) - 1) * without.var()))
        found = self._over_pools(np.array(logs), np.array(errors))
        return Interval(*(math.exp(x) for x in found))

    def _over_pools(self, of_pools: Floats, errors: Floats) -> tuple[float, ...]:
        """Average over pools, whose own errors are known from their sets."""
        # Here, so that importing this room stays light; SciPy has no types.
        from scipy.special import stdtrit  # type: ignore[import-untyped]  # noqa: PLC0415

        mean, count = float(of_pools.mean()), len(of_pools)
        error, freedom = math.sqrt((errors**2).sum()) / count, self.sets - count
        if count > 1:
            spread = float(of_pools.std(ddof=1)) / math.sqrt(count)
            error, freedom = max(error, spread), count - 1
        half = error * float(stdtrit(max(freedom, 1), (1 + _LEVEL) / 2))
        return mean, mean - half, mean + half

    def records(self) -> list[dict[str, Any]]:
        """List what was found, one record for each pool, method and n."""
        return [record for each in self.pools for record in each.records()]

    def summary(self) -> list[dict[str, Any]]:
        """List what all pools say together, one record for each figure."""
        methods = self.options["methods"]
        pairs = [("robust", rival) for rival in ("paper", LINE)]
        rows = [
            (f"error of {one} / {other}", self.ratio(one, other))
            for one, other in pairs
            if {one, other} <= {*methods, LINE}
        ]
        for method in methods:
            rows.append((f"coverage of {method}", self.coverage(method)))
            rows.append((f"half-width / error of {method}", self.width(method)))
        return [{"figure": name, **interval._asdict()} for name, interval in rows]

    def table(self) -> str:
        """Write everything as tables for reading."""
        rows = [["figure", "value", "low", "high"]]
        for each in self.summary():
            name, *values = each.values()
            rows.append([name, *(f"{value:.3f}" for value in values)])
        pools = f"{len(self.pools)} pool{'s' * (len(self.pools) > 1)}"
        title = f"Together: {pools}, {self.sets} sets"
        tables = [each.table() for each in self.pools]
        return "\n\n".join([*tables, f"{title}\n{_aligned(rows)}"])


def _mean(values: Floats) -> Estimates:
    count = len(values)
    spread = (
        values.std(axis=0, ddof=1) if count > 1 else np.full_like(values[0], np.nan)
    )
    return Estimates(values.mean(axis=0), spread / math.sqrt(count))


def _share_error(inside: Floats) -> Floats:
    """Compute the standard error of shares, never 0: none seen is not none to come."""
    count = len(inside) + 2
    share = (inside.sum(axis=0) + 1) / count
    error: Floats = np.sqrt(share * (1 - share) / count)
    return error


def _aligned(rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True))
        for row in rows
    )
