"""Worlds whose law is known: for tests, for demonstrations, to try a method on.

A `World` is a recipe for classifiers whose expected NLL is known to ten digits for
every ensemble size and temperature. A `Family` is such worlds along the size of the
networks, so that the best split of every budget is known. `LawPlane` and
`noisy_curve` do the same for curves, without classifiers.

Known is NLL_n(τ) with the temperature applied before averaging, and so is LE-NLL_n,
its minimum over τ. CNLL_n, with the minimum inside the expectation, has no formula:
on the whole test set it is a little lower, cross-validated a little higher, and from
a thousand objects on all agree within half a percent.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.checks import InputError, positive, viewed, whole
from ensize.predictions import Pool, Predictions
from ensize.theory import Expansion

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

DOUBLING = (1, 2, 4, 8, 16, 32, 64)

_TYPES = 32  # of objects, from hopeless to easy
_BELOW = 3.0  # how far the other wrong classes lie under the main competitor
_REACH = 8.5  # standard deviations of a margin beyond which nothing is left
_STEP = 0.25  # of both trapezoid rules; a smaller one changes nothing
_DEPTH = 300.0  # no log-probability further below 0 than this: seconds, not hours
_FACTOR = 4.0  # the best temperature is sought so far from `confidence`


@dataclass(frozen=True)
class World:
    """A recipe for classifiers, with its exact law.

    Network i gives object o the margin

        m_io = mean_o + luck·η_i + noise·ε_io,    η and ε standard normal,

    over the main competitor; the other wrong classes lie 3 below that one. All
    logits are multiplied by `confidence`. `luck` makes a network better or worse on
    all objects at once, so that scores of finite pools scatter as real ones do; for
    each object by itself networks are independent, and luck is but more noise.

    Parameters
    ----------
    classes, objects
        Counts.
    margin, spread
        Mean and standard deviation over objects of mean_o: 32 quantiles of a normal
        law, from hopeless objects, below 0, to easy ones.
    noise, luck
        Standard deviations of the margin: of its own, and a network's.
    confidence
        Scales the logits, and thereby the best temperature.
    seed
        Chooses true classes, competitors, and the order of objects.
    size
        Parameters of a network, for the pool; networks of two sizes draw apart.

    Examples
    --------
    >>> world = World()
    >>> temperature, nll = world.best([1, 4, np.inf])
    >>> temperature.round(3), nll.round(3)
    (array([1.318, 1.087, 0.917]), array([0.495, 0.405, 0.369]))
    >>> print(world.nll(1000).round(8), world.expansion()(1000, order=2).round(8))
    0.37032033 0.37032033
    """

    classes: int = 10
    objects: int = 1000
    margin: float = 2.5
    spread: float = 2.5
    noise: float = 1.2
    luck: float = 0.1
    confidence: float = 1.5
    seed: int = 0
    size: int | None = None

    def __post_init__(self) -> None:
        """Refuse what is no world."""
        for name, least in (("classes", 2), ("objects", 1), ("seed", 0)):
            whole(name, getattr(self, name), least)
        whole("size", 1 if self.size is None else self.size, 1)
        positive("confidence", self.confidence)
        if not np.isfinite(self.margin):
            raise InputError(f"margin is {self.margin!r}; give a finite number")
        for name in ("spread", "noise", "luck"):
            if not 0 <= getattr(self, name) < np.inf:
                raise InputError(f"{name} is {getattr(self, name)!r}; give 0 or more")

    def predictions(
        self, networks: int | Sequence[int], *, seed: int = 0, dtype: Any = np.float32
    ) -> Predictions:
        """Draw a pool: so many networks, or those with these indexes.

        A network depends on nothing but the world, `seed` and its index: a pool of
        six is the first six of a pool of twelve.
        """
        if not isinstance(networks, Sequence):
            networks = range(whole("networks", networks, 1))
        rng = np.random.default_rng(self.seed)
        kind = rng.permutation(self._kinds())
        true = rng.integers(self.classes, size=self.objects)
        rival = (true + rng.integers(1, self.classes, self.objects)) % self.classes
        every, rows = np.arange(self.objects), []
        for index in networks:
            stream = (self.size or 0, whole("seed", seed), whole("index", index))
            entropy = np.random.SeedSequence(self.seed, spawn_key=stream)
            rng = np.random.default_rng(entropy)
            quality = self.luck * rng.standard_normal()
            own = self.noise * rng.standard_normal(self.objects)
            logits = np.full((self.objects, self.classes), -_BELOW)
            logits[every, rival] = 0.0
            logits[every, true] = self._means()[kind] + quality + own
            rows.append((self.confidence * logits).astype(dtype))
        name = "world" if self.size is None else f"world-{self.size}"
        return Predictions.gather(
            rows,
            true,
            labels=[f"network {index}" for index in networks],
            pool=Pool(name, family="synthetic", size=self.size),
        )

    def nll(self, n: ArrayLike, *, temperature: float = 1.0) -> Floats:
        """Compute the expected NLL_n(τ), applied before averaging; n may be infinite.

        As -log x = ∫ (e^{-tx} - e^{-t}) dt/t, and as networks are independent,

            NLL_n = -log μ + ∫ (φ(t)^n - e^{-nt}) dt/t,    φ(t) = E e^{-tp/μ},

        over t > 0: a smooth integral along log t. It is right to 1e-10 up to
        n = 10⁴; rounding grows as n·1e-15.
        """
        sizes = viewed("n", n).astype(np.float64)
        if not ((sizes >= 1) & (sizes == np.floor(sizes))).all():
            raise InputError(f"n is {n!r}; give whole numbers from 1 on, or infinity")
        p, chance = self._says(temperature)
        mu = p @ chance
        ratios = p / mu[:, None]
        values = np.full(sizes.size, -np.log(mu) @ self._shares())
        finite = np.flatnonzero(np.isfinite(sizes))
        if finite.size:
            # Beyond these ends the two terms agree to 1e-17, or both are below it.
            most = sizes.flat[finite].max() * (ratios**2 @ chance).max()
            first, last = -20 - np.log(most) / 2, np.log(40 / ratios.min())
            t = np.exp(np.arange(first, last + _STEP, _STEP))
            phi = np.stack([np.exp(-np.outer(t, each)) @ chance for each in ratios])
        for i in finite:
            difference = phi ** sizes.flat[i] - np.exp(-sizes.flat[i] * t)
            values[i] += _STEP * difference.sum(axis=1) @ self._shares()
        return values.reshape(sizes.shape)[()]

    def expansion(self, *, temperature: float = 1.0) -> Expansion:
        """Expand NLL_n(τ) in 1/n, with exact coefficients (Proposition 1)."""
        p, chance = self._says(temperature)
        mu = p @ chance
        away = p - mu[:, None]
        return Expansion.of_moments(
            mu, away**2 @ chance, third=away**3 @ chance, weights=self._shares()
        )

    def best(self, n: ArrayLike) -> tuple[Floats, Floats]:
        """Find the temperature with the least expected NLL_n, and LE-NLL_n there.

        It is sought from a quarter of `confidence` to four times it; a world whose
        best lies at an end is refused.
        """
        # Here, so that importing this room stays light; SciPy has no types.
        import scipy.optimize as so  # type: ignore[import-untyped]  # noqa: PLC0415

        sizes, reach = np.asarray(n, np.float64), float(np.log(_FACTOR))
        found = [
            so.minimize_scalar(
                lambda x, k=k: self.nll(k, temperature=self.confidence * np.exp(x)),
                bounds=(-reach, reach),
                method="bounded",
                options={"xatol": 1e-6},
            )
            for k in sizes.flat
        ]
        shifts = np.reshape([each.x for each in found], sizes.shape)
        if (reach - np.abs(shifts) < 1e-3).any():
            raise InputError(
                "the best temperature of this world is not within a factor of four of"
                " its confidence; give it less noise or more spread"
            )
        least = np.reshape([each.fun for each in found], sizes.shape)
        return (self.confidence * np.exp(shifts))[()], least[()]

    def _kinds(self) -> NDArray[np.int64]:
        return np.arange(self.objects) * _TYPES // self.objects

    def _shares(self) -> Floats:
        """Say which share of the objects is of each type."""
        return np.bincount(self._kinds(), minlength=_TYPES) / self.objects

    def _means(self) -> Floats:
        ranks = (np.arange(_TYPES) + 0.5) / _TYPES
        scores = np.array([NormalDist().inv_cdf(rank) for rank in ranks])
        return self.margin + self.spread * scores

    def _says(self, temperature: float) -> tuple[Floats, Floats]:
        """Tabulate the true class's probability, (types, nodes), and nodes' chances.

        A margin is normal, and p = 1 / (1 + A e^{-m/τ}) a smooth step as wide as τ:
        the trapezoid rule with a step well below that converges geometrically. The
        nodes reach further up than down since hopeless objects live on rare luck.
        """
        scale = self.confidence / positive("temperature", temperature)
        deviation = float(np.hypot(self.noise, self.luck)) * scale
        means = scale * self._means()[:, None]
        if means.min() - _REACH * deviation < -_DEPTH:
            raise InputError(
                f"at temperature {temperature:g} this world's probabilities are too"
                " small to be summed; ask for a higher one, or make less noise"
            )
        step = min(0.4, _STEP / max(deviation, _STEP))
        nodes = np.arange(-_REACH, _REACH + deviation + step, step)
        chance = np.exp(-(nodes**2) / 2)
        margins = means + deviation * nodes
        wrong = 1 + (self.classes - 2) * np.exp(-_BELOW * scale)
        return 1 / (1 + wrong * np.exp(-margins)), chance / chance.sum()


@dataclass(frozen=True, eq=False)
class Splits:
    """The splits of one budget: n networks of a size, and the CNLL of each split."""

    n: NDArray[np.int64]
    size: NDArray[np.int64]
    value: Floats

    @property
    def best(self) -> int:
        """How many networks the best split has."""
        return int(self.n[self.value.argmin()])


@dataclass(frozen=True)
class Family:
    """Worlds along the size of their networks: a plane whose best splits are known.

    With s relative to the standard size, networks have

        margin - shortfall·s^margin_exponent,    noise and luck times s^noise_exponent,

    where margin is that of `world`, for endless networks, and noise that of the
    standard size. No network is below the smallest size.

    >>> [Family.splits_pay().splits(b).best for b in (10**5, 10**6, 10**7)]
    [2, 4, 16]
    >>> [Family.single_wins().splits(b).best for b in (10**5, 10**6, 10**7)]
    [1, 1, 1]
    """

    world: World = dataclasses.field(default_factory=World)
    shortfall: float = 0.2
    margin_exponent: float = -0.5
    noise_exponent: float = 0.0
    standard: int = 1_000_000
    smallest: int = 10_000

    @classmethod
    def splits_pay(cls, **world: Any) -> Family:
        """Make networks that stay noisy as they grow: the best n rises with B."""
        return cls(World(**{"margin": 3.0, "noise": 1.5, **world}), 0.15)

    @classmethod
    def single_wins(cls, **world: Any) -> Family:
        """Make networks that lack more margin when split than averaging gives back."""
        return cls(World(**{"noise": 0.4, **world}), noise_exponent=-0.25)

    def of(self, size: int) -> World:
        """Return the world of networks of this size."""
        s = whole("size", size, self.smallest) / self.standard
        return dataclasses.replace(
            self.world,
            margin=self.world.margin - self.shortfall * s**self.margin_exponent,
            noise=self.world.noise * s**self.noise_exponent,
            luck=self.world.luck * s**self.noise_exponent,
            size=size,
        )

    def splits(self, budget: int, *, n: Sequence[int] = DOUBLING) -> Splits:
        """Score the splits of a budget by their exact LE-NLL."""
        counts, sizes = _affordable(budget, n, self.smallest)
        pairs = zip(counts.tolist(), sizes.tolist(), strict=True)
        values = [float(self.of(size).best(count)[1]) for count, size in pairs]
        return Splits(counts, sizes, np.array(values))


@dataclass(frozen=True)
class LawPlane:
    """A plane of values without classifiers, whose best split has a closed form.

    With s relative to the standard size,

        CNLL(n, s) = limit + shortfall·s^size_exponent
                     + gain·s^gain_exponent·n^exponent.

    >>> plane = LawPlane()
    >>> round(plane.optimum(4_000_000), 2), plane.splits(4_000_000).best
    (4.1, 4)
    """

    limit: float = 0.5
    shortfall: float = 0.1
    size_exponent: float = -0.5
    gain: float = 0.2
    gain_exponent: float = 0.0
    exponent: float = -0.9
    standard: int = 1_000_000
    smallest: int = 10_000

    def __post_init__(self) -> None:
        """Refuse a plane on which size or number does not help."""
        for name in ("shortfall", "gain"):
            positive(name, getattr(self, name))
        if max(self.size_exponent, self.exponent) >= 0:
            raise InputError("size_exponent and exponent of a plane are below 0")

    def __call__(self, n: ArrayLike, size: ArrayLike) -> Floats:
        """Say CNLL of n networks of this size."""
        s = np.asarray(size, np.float64) / self.standard
        gain = self.gain * s**self.gain_exponent
        single: Floats = self.limit + self.shortfall * s**self.size_exponent
        return single + gain * np.asarray(n, np.float64) ** self.exponent

    def optimum(self, budget: float) -> float:
        """Solve d CNLL(n, B/n)/dn = 0: the best n of a budget, not rounded."""
        # At n networks of size B/n the two terms go as n^rise and n^-fall.
        s, rise = positive("budget", budget) / self.standard, -self.size_exponent
        fall = self.gain_exponent - self.exponent
        if fall <= 0:  # small networks lose as much as many of them win
            return 1.0
        lost = rise * self.shortfall * s**self.size_exponent
        won = fall * self.gain * s**self.gain_exponent
        return float(max(1.0, (won / lost) ** (1 / (fall + rise))))

    def splits(self, budget: int, *, n: Sequence[int] = DOUBLING) -> Splits:
        """Score the splits of a budget."""
        counts, sizes = _affordable(budget, n, self.smallest)
        return Splits(counts, sizes, self(counts, sizes))


def noisy_curve(
    m: ArrayLike,
    law: tuple[float, float, float],
    *,
    noise: float = 0.0,
    shift: float = 0.0,
    seed: int = 0,
) -> Floats:
    """Draw a curve c + b·m^a with errors like those of measured curves.

    Points that share networks err together: each step from a point to the next, and
    from the last to the limit, has an error of `noise` times the step, and all points
    share one of `shift` times b. `law` is (c, b, a); m ascends; `seed` draws errors.

    >>> noisy_curve([1, 2, 4], (0.5, 0.2, -1.0)).round(6)
    array([0.7 , 0.6 , 0.55])
    """
    where = viewed("m", m).astype(np.float64)
    if where.ndim != 1 or not (np.diff(where, prepend=0.0) > 0).all():
        raise InputError("m does not ascend from above 0; sort it and drop repetitions")
    limit, gain, exponent = law
    rng = np.random.default_rng(seed)
    common = shift * gain * rng.standard_normal()
    steps = -np.diff(gain * where**exponent, append=0.0)
    steps *= 1 + noise * rng.standard_normal(len(steps))
    curve: Floats = limit + common + np.cumsum(steps[::-1])[::-1]
    return curve


def _affordable(
    budget: int, n: Sequence[int], smallest: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pair each n with the size B/n, unless networks would be too small."""
    counts = np.array([whole("n", k, 1) for k in n])
    sizes = whole("budget", budget, smallest) // counts
    able = sizes >= smallest
    if not able.any():
        raise InputError(f"no split of {budget} has networks of {smallest}; lower n")
    return counts[able], sizes[able]
