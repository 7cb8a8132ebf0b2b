"""Joint laws: CNLL over (n, s) at once, and whether they earn their keep.

A joint law would tell of sizes that nobody has trained. Three are tried, with s
relative to the largest size that they are fitted to:

    additive    c + d·s^p + g·n^a
    product     c + d·s^p + g·s^p·n^a
    scaled      c + d·s^p + g·s^q·n^a

Fitted to the sizes up to a quarter of the largest, they predict the rest of the plane.
Their rival is a law along n of each size by itself, continued along the size on a line
in s^-1/2 through the two largest sizes fitted. One that is nearer than the rival on
every pool held out is believed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.checks import InputError
from ensize.laws import fit
from ensize.planes.budgets import Candidate
from ensize.planes.readings import DRAWS, Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ensize.planes import Plane

    Predict = Callable[[Any, Any], Any]

Floats = np.ndarray[Any, np.dtype[np.float64]]

# A joint law is tried with at least this many sizes to fit it to.
_LEAST = 3
# Which part of the largest size the largest one fitted is, at most. Widths are whole
# numbers, so that a quarter is one only about.
_QUARTER = 0.3
# Curves that are refitted, to tell how luck moves a joint law.
_REFITS = 40
# Between which exponents of s, of the gain along s, and of n are sought, from where.
_BOUNDS = {"p": (-2.0, -0.02), "q": (-1.0, 1.0), "a": (-1.6, -0.3)}
_STARTS = ((-0.5, 0.0, -0.85), (-0.25, -0.2, -0.85), (-1.0, 0.2, -0.85))


@dataclass(frozen=True)
class JointLaw:
    """A law over (n, s)."""

    name: str
    limit: float
    shortfall: float
    gain: float
    p: float
    q: float
    a: float
    standard: float

    def __call__(self, n: Any, size: Any) -> Any:
        """Read it."""
        s = np.asarray(size, np.float64) / self.standard
        gained = self.gain * s**self.q * np.asarray(n, np.float64) ** self.a
        return self.limit + self.shortfall * s**self.p + gained


# What luck would have below 0 is as good as 0; residuals are relative.
_ZERO = 1e-6


@dataclass(frozen=True, eq=False)
class Points:
    """Measured points of a plane, with weights like 1/n that sum to 1 a pool."""

    n: Floats
    size: Floats
    value: Floats
    weight: Floats

    @classmethod
    def of(cls, plane: Plane, pools: Sequence[int], draw: int | None = None) -> Points:
        """Collect those of some pools, perhaps as other networks might have it."""
        rows = []
        for k in pools:
            luck = plane.luck(k, "cnll")
            value = luck.points if draw is None else luck.points + luck.off[draw]
            value = np.maximum(value, _ZERO)
            weight = 1 / luck.n
            size = np.full(len(value), float(plane.sizes[k]))
            rows.append((luck.n, size, value, weight / weight.sum()))
        return cls(*(np.concatenate(each) for each in zip(*rows, strict=True)))


def _fitted(name: str, points: Points, starts: Sequence[Any] = _STARTS) -> JointLaw:
    """Fit by least squares of relative residuals, from several starts."""
    # Here, so that importing this room stays light; SciPy has no types.
    from scipy.optimize import least_squares  # type: ignore[import-untyped]  # noqa: PLC0415

    standard = points.size.max()
    x, y = np.log(points.size / standard), points.value
    m, root = np.log(points.n), np.sqrt(points.weight)

    def exponents(free: Floats) -> tuple[float, float, float]:
        p, a = free[3], free[4]
        return p, {"additive": 0.0, "product": p}.get(name, free[-1]), a

    def residuals(free: Floats) -> Floats:
        c, d, g = np.exp(free[:3])
        p, q, a = exponents(free)
        value = c + d * np.exp(p * x) + g * np.exp(q * x + a * m)
        left: Floats = root * (value / y - 1)
        return left

    low, high = (
        [each[i] for each in (*[(-16.0, 3.0)] * 3, _BOUNDS["p"], _BOUNDS["a"])]
        for i in (0, 1)
    )
    if name == "scaled":
        low, high = [*low, _BOUNDS["q"][0]], [*high, _BOUNDS["q"][1]]
    level = math.log(y.min())
    best = None
    for p, q, a in starts:
        start = [level - 0.5, level - 2, level - 1, p, a]
        start += [q] if name == "scaled" else []
        found = least_squares(residuals, start, bounds=(low, high), x_scale="jac")
        if best is None or found.cost < best.cost:
            best = found
    assert best is not None  # noqa: S101  # there are starts
    c, d, g = np.exp(best.x[:3])
    p, q, a = exponents(best.x)
    return JointLaw(name, *map(float, (c, d, g, p, q, a, standard)))


CANDIDATES = ("additive", "product", "scaled")


def by_size(plane: Plane, pools: Sequence[int]) -> Predict:
    """Give each size its own law along n, and continue them on lines in s^-1/2."""
    laws = {
        k: fit(plane.luck(k, "cnll").n, plane.luck(k, "cnll").points) for k in pools
    }
    x = plane.sizes.astype(np.float64) ** -0.5

    def predict(n: Any, size: Any) -> Any:
        a, b = pools[-2], pools[-1]
        share = (np.asarray(size, np.float64) ** -0.5 - x[b]) / (x[a] - x[b])
        return share * laws[a].law(n) + (1 - share) * laws[b].law(n)

    return predict


@dataclass(frozen=True, eq=False)
class JointTest:
    """How far joint laws and their rival are off on sizes that they were not fitted to.

    Parameters
    ----------
    fitted, held_out
        The pools that the laws saw, and those that they were to predict.
    errors
        For each law, and for the rival `by size`, the root mean squared relative error
        on each pool held out.
    accepted
        The law that is nearer than its rival on every one of them, the nearest of
        several; None if there is none.
    """

    fitted: tuple[str, ...]
    held_out: tuple[str, ...]
    errors: dict[str, Floats]
    accepted: str | None

    def records(self) -> list[dict[str, Any]]:
        """List the errors as plain records."""
        return [
            {"law": law, "pool": pool, "error": float(error)}
            for law, errors in self.errors.items()
            for pool, error in zip(self.held_out, errors, strict=True)
        ]

    def table(self) -> str:
        """Write the errors, in percent, as a table for reading."""
        width = max(10, *map(len, self.held_out))
        head = " ".join(f"{pool:>{width}}" for pool in self.held_out)
        lines = [f"{'':10} {head}"]
        for law, errors in self.errors.items():
            cells = " ".join(f"{100 * each:{width}.2f}" for each in errors)
            lines.append(f"{law:10} {cells}")
        return "\n".join(lines)


def joint_law_test(plane: Plane) -> JointTest:
    """Fit joint laws to the small sizes of a plane, and see them predict the large."""
    return plane.remember("joint law test", lambda: _test(plane))


def _test(plane: Plane) -> JointTest:
    few = plane.sizes <= _QUARTER * plane.sizes[-1]
    fitted, held = np.flatnonzero(few).tolist(), np.flatnonzero(~few).tolist()
    if len(fitted) < _LEAST:
        raise InputError(
            f"the plane has {len(fitted)} sizes up to a quarter of the largest, but a"
            f" joint law is fitted to at least {_LEAST}; train smaller networks too"
        )
    points = Points.of(plane, fitted)
    laws: dict[str, Predict] = {name: _fitted(name, points) for name in CANDIDATES}
    laws["by size"] = by_size(plane, fitted)
    errors = {}
    for name, law in laws.items():
        off = []
        for k in held:
            truth = Points.of(plane, [k])
            away = law(truth.n, truth.size) / truth.value - 1
            off.append(math.sqrt(float(truth.weight @ away**2)))
        errors[name] = np.array(off)
    better = [name for name in CANDIDATES if (errors[name] < errors["by size"]).all()]
    accepted = min(better, key=lambda name: float(errors[name].max()), default=None)
    names = plane.names
    return JointTest(
        tuple(names[k] for k in fitted),
        tuple(names[k] for k in held),
        errors,
        accepted,
    )


def beyond(plane: Plane, budget: float) -> list[Candidate]:
    """Read the splits whose networks are larger than any trained, by a joint law.

    Nothing is read where no joint law has passed its test, nor further beyond the
    largest size than the test went.
    """
    largest = float(plane.sizes[-1])
    n = 2 ** np.arange(int(math.log2(max(budget / largest, 1))) + 1)
    n = n[budget / n > largest * (1 + 1e-9)]
    n = n[budget / n <= largest / _QUARTER]
    few = int((plane.sizes <= _QUARTER * plane.sizes[-1]).sum())
    if not len(n) or few < _LEAST:
        return []
    test = joint_law_test(plane)
    if test.accepted is None:
        return []
    law, others = plane.remember(
        "joint law", lambda: _with_refits(plane, str(test.accepted))
    )
    error = float(test.errors[test.accepted].max())
    random = np.random.default_rng((plane.options["seed"], 0))
    which = random.integers(len(others), size=DRAWS)
    # What its shape is wrong by moves all that is read of it together.
    wrong = 1 + error * random.standard_normal(DRAWS)
    found = []
    for count in n.tolist():
        size = budget / count
        read = np.array([each(count, size) for each in others])
        reading = Reading(float(law(count, size)), read[which] * wrong, "joint law")
        found.append(Candidate(None, count, int(size), budget, reading))
    return found


def _with_refits(plane: Plane, name: str) -> tuple[JointLaw, list[JointLaw]]:
    """Fit a law to all sizes, and again as luck might have had them."""
    every = range(len(plane))
    law = _fitted(name, Points.of(plane, every))
    start = [(law.p, law.q, law.a)]
    others = [
        _fitted(name, Points.of(plane, every, draw), start) for draw in range(_REFITS)
    ]
    return law, others
