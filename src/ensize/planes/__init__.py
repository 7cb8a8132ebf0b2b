"""Plane: the curves of several sizes of one family, along n, s and the budget."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ensize.checks import InputError, one_of
from ensize.curves import score as score_curve
from ensize.planes.budgets import (
    COSTS,
    Advantages,
    BudgetCut,
    along_budget,
    budget_of,
    find_advantages,
)
from ensize.planes.readings import SCORES, Luck, Reading, Verdict
from ensize.planes.sizes import SizeCut, along_size
from ensize.planes.sources import LEAST, matching, sources_of
from ensize.scores.search import sketch_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from ensize.curves import Curve
    from ensize.predictions import Predictions, Progress
    from ensize.sketches import Sketch

    Floats = NDArray[np.float64]

__all__ = [
    "COSTS",
    "SCORES",
    "Advantages",
    "BudgetCut",
    "Plane",
    "Reading",
    "SizeCut",
    "Verdict",
    "budget_of",
    "plane_of",
]

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Plane:
    """CNLL and accuracy over (n, s): a curve along n for each size of a family.

    Parameters
    ----------
    pools
        The predictions of each size, from the smallest to the largest.
    curves
        Their scores along n, up to the number of networks of each pool.
    seconds
        How long one network of each pool takes to predict the test set; NaN where it
        is not known.
    recipe
        What the networks' recipe is called, for sentences.
    warnings, options
        What a reader should know, and the choices that shaped the plane.
    """

    pools: tuple[Predictions | Sketch, ...]
    curves: tuple[Curve, ...]
    seconds: Floats
    recipe: str
    warnings: tuple[str, ...]
    options: dict[str, Any]
    calibrate_on: tuple[Predictions | Sketch, ...] | None = None
    _memory: dict[Any, Any] = dataclasses.field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.pools)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the pools."""
        return tuple(each.pool.name for each in self.pools)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Parameters of one network of each pool, ascending."""
        return np.array([each.pool.size for each in self.pools], np.int64)

    @property
    def networks(self) -> NDArray[np.int64]:
        """How many networks each pool has, odd ones left out."""
        return np.array([curve.networks for curve in self.curves])

    def costs(self, cost: str = "parameters") -> Floats:
        """Say what one network of each pool costs, in parameters or other units."""
        one_of("cost", cost, COSTS)
        if cost == "parameters":
            return self.sizes.astype(np.float64)
        known = self.seconds
        if cost == "multiply-adds":
            counts = [each.pool.multiply_adds for each in self.pools]
            known = np.array([each or np.nan for each in counts], np.float64)
        if np.isnan(known).any():
            name = self.names[int(np.argmax(np.isnan(known)))]
            raise InputError(
                f"pool {name!r} does not say how many {cost} a prediction takes; give"
                " the budget in parameters, or record the pool with it"
            )
        if (np.diff(known) <= 0).any():
            k = int(np.argmax(np.diff(known) <= 0))
            raise InputError(
                f"pool {self.names[k + 1]!r} is larger than {self.names[k]!r} but takes"
                f" no more {cost} a prediction; give the budget in parameters"
            )
        return known

    def at(self, n: ArrayLike, *, score: str = "cnll") -> Floats:
        """Read the measured score of n networks of each size, (sizes, len(n)).

        NaN stands where a pool has fewer networks.
        """
        one_of("score", score, SCORES)
        wanted = np.atleast_1d(np.asarray(n, np.float64))
        if not ((wanted >= 1) & (wanted == np.floor(wanted))).all():
            raise InputError(f"n is {n!r}; give whole numbers of networks from 1 on")
        return np.array(
            [self.luck(k, score).value(wanted) for k in range(len(self))]
        ).reshape(len(self), *np.shape(n))

    def along_size(self, n: int = 1, *, score: str = "cnll") -> SizeCut:
        """Cut at n networks: the score along s, with its law if one holds.

        For n = 1 a law is expected, with an exponent near -0.5; for n > 1 the curve
        may turn (section *NLL as a function of network size*).
        """
        return along_size(self, n, one_of("score", score, SCORES))

    def along_budget(
        self,
        budgets: Sequence[float | str] | None = None,
        *,
        score: str = "cnll",
        cost: str = "parameters",
    ) -> BudgetCut:
        """Find the best score of n·s ≤ B for each budget, with its law.

        The lower envelope of the curves along n, on a log-uniform grid of B (section
        *NLL as a function of the total parameter count*).
        """
        return along_budget(self, budgets, one_of("score", score, SCORES), cost)

    def advantage(
        self,
        budgets: Sequence[float | str] | None = None,
        *,
        score: str = "cnll",
        cost: str = "parameters",
    ) -> Advantages:
        """Compare the best measured split of each budget with a single network.

        Budgets are the pools' own sizes if not given, those of which a single network
        was measured; between them it is interpolated.
        """
        return find_advantages(self, budgets, one_of("score", score, SCORES), cost)

    def records(self) -> list[dict[str, Any]]:
        """List the points of all curves as plain records, by size and n."""
        return [
            {"pool": name, "size": int(size), **record}
            for name, size, curve in zip(
                self.names, self.sizes, self.curves, strict=True
            )
            for record in curve.records()
        ]

    def luck(self, k: int, score: str) -> Luck:
        """Return how one pool's curve would vary with other networks; kept."""
        return self.remember(
            ("luck", k, score), lambda: Luck.of(self.curves[k], score, (k, self._seed))
        )

    def remember(self, key: Any, make: Callable[[], T]) -> T:
        """Make something that belongs to this plane once."""
        if key not in self._memory:
            self._memory[key] = make()
        kept: T = self._memory[key]
        return kept

    @property
    def _seed(self) -> int:
        return int(self.options["seed"])


def plane_of(
    source: Any,
    *,
    family: str | None = None,
    apply: str = "before",
    calibrate_on: Any = None,
    keep_odd: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> Plane:
    """Score the ensembles of every size of a family.

    Parameters
    ----------
    source
        A store, its path, or what `ensize.load` returned for each of several pools
        (each with its size).
    family
        Which family, where a store has several.
    apply, keep_odd, seed
        As for `ensize.score`.
    calibrate_on
        Where to choose temperatures instead of by cross-validation: a store of the
        same networks' predictions on other objects, or such pools.
    progress
        Told what is being done and which share of it is done.

    Examples
    --------
    >>> from ensize.synthetic import Family
    >>> worlds = [Family.splits_pay().of(s) for s in (20_000, 80_000, 320_000)]
    >>> plane = plane_of([world.predictions(4) for world in worlds])
    >>> plane.at([1, 4]).round(2)
    array([[0.7 , 0.55],
           [0.54, 0.41],
           [0.49, 0.36]])
    """
    found = sources_of(source, family)
    separate = None if calibrate_on is None else matching(calibrate_on, found)
    warnings: list[str] = []
    rows = []
    for k, pool in enumerate(found.pools):
        if progress is not None:
            progress("scoring the pools", k / len(found.pools))
        odd = () if keep_odd else _odd(pool, warnings)
        kept = [i for i, label in enumerate(pool.labels) if label not in odd]
        if len(kept) < LEAST:
            warnings.append(
                f"pool {pool.pool.name!r} is left out: it has {len(kept)} network"
                f"{'s' * (len(kept) != 1)}, and fewer than {LEAST} do not tell how far"
                " luck moves their scores"
            )
            continue
        chosen = pool.choose(kept)
        other = None if separate is None else separate[k].choose(kept)
        curve = score_curve(
            chosen,
            n=_grid(len(kept)),
            apply=apply,
            calibrate_on=other,
            keep_odd=True,
            seed=seed,
        )
        warnings += [f"pool {pool.pool.name!r}: {each}" for each in curve.warnings]
        rows.append((chosen, curve, found.seconds[k], other))
    if len(rows) < 2:
        raise InputError(
            f"{found.name} has {len(rows)} size{'s' * (len(rows) != 1)} with at least"
            f" {LEAST} networks, but a plane needs two; train more, or score and"
            " forecast one pool alone"
        )
    pools, curves, seconds, others = zip(*rows, strict=True)
    return Plane(
        pools=pools,
        curves=curves,
        seconds=np.array(seconds),
        recipe=found.recipe,
        warnings=tuple(dict.fromkeys(warnings)),
        options={
            "apply": apply,
            "calibrated": "cross-validated" if separate is None else "separately",
            "keep_odd": keep_odd,
            "seed": seed,
            "family": pools[0].pool.family,
        },
        calibrate_on=None if separate is None else others,
    )


def _odd(pool: Predictions | Sketch, warnings: list[str]) -> tuple[str, ...]:
    """Name the networks of a pool that did not train."""
    alone = score_curve(sketch_of(pool), n=[1])  # which leaves accuracy out
    if alone.odd:
        warnings += [each for each in alone.warnings if "odd ones out" in each]
    return alone.odd


def _grid(networks: int) -> list[int]:
    """Choose the n of a curve: each up to 8, then four for each doubling, and the end.

    Lines in 1/n between them miss a law by less than 2·10⁻⁴ of its gain.
    """
    steps = {round(8 * 2 ** (i / 4)) for i in range(4 * max(networks, 1).bit_length())}
    every = {*range(1, 9), *steps, networks - 1, networks}
    return sorted(n for n in every if 1 <= n <= networks)
