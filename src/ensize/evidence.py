"""Evidence: what a store shows, computed once for claims, figures and reports."""

from __future__ import annotations

import dataclasses
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ensize.checks import InputError
from ensize.curves import score
from ensize.forecasts import back_test
from ensize.laws import Fit, fit
from ensize.planes import Plane, plane_of
from ensize.profiles import (
    TEMPERATURES,
    WIDE,
    Comparison,
    Profile,
    compare,
    profile,
    spaced,
)
from ensize.sketches import Sketch
from ensize.splits import optimal_splits_test
from ensize.stores import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ensize.curves import Curve
    from ensize.forecasts import BackTest
    from ensize.predictions import Predictions, Progress
    from ensize.splits import OptimalSplits

Floats = np.ndarray[Any, np.dtype[np.float64]]
T = TypeVar("T")

# A temperature after averaging needs all classes of every ensemble, and a set of six
# another truth, so that more networks than this are not asked. They make ten sets, as
# many as the paper tries.
_MOST = 64
# The widths that the paper calls standard.
_STANDARD = {"vgg16": 64, "wideresnet28": 160}
# The paper predicts large ensembles from those of one to four networks, of all
# networks or of six.
PAPER_SIZES = (1, 2, 3, 4)
SIX = 6


@dataclass(frozen=True, eq=False)
class Evidence:
    """One family of a store: its pools, its plane, and what else is asked of them.

    Parameters
    ----------
    name
        The study's name, or that of the folder.
    pools
        From the smallest to the largest; odd ones out are left out by what scores.
    plane
        Their plane; None where there are not two sizes with three networks each.
    lacking
        Why there is no plane.
    study
        What the study file declares; empty where there is none.
    seconds, prediction_seconds
        What one network of each pool took to train and to predict the test set, on
        average; NaN where that is not known.
    """

    name: str
    pools: tuple[Predictions | Sketch, ...]
    plane: Plane | None
    lacking: str
    study: dict[str, Any]
    seconds: Floats
    prediction_seconds: Floats
    _memory: dict[Any, Any] = dataclasses.field(default_factory=dict, repr=False)

    @property
    def objects(self) -> int:
        """How many objects the networks were asked about."""
        return self.pools[0].objects

    @property
    def sizes(self) -> Floats:
        """Parameters of one network of each pool; NaN where that is not known."""
        known = [each.pool.size for each in self.pools]
        return np.array([np.nan if each is None else each for each in known], float)

    @property
    def recipe(self) -> str:
        """What the recipe is called, for sentences."""
        return "" if self.plane is None else self.plane.recipe

    @property
    def unregularized(self) -> bool:
        """Whether all pools were trained without weight decay and dropout."""
        said = [each.pool.recipe or "" for each in self.pools]
        decays = [_said(each, "weight_decay") for each in said]
        drops = [_said(each, "dropout") for each in said]
        return all(x == 0 for x in decays) and all(not x for x in drops)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader should know of whatever rests on this evidence."""
        if self.plane is None:
            said = [w for k in range(len(self.pools)) for w in self.curve(k).warnings]
        else:
            said = list(self.plane.warnings)
        # There is no such option where evidence is asked.
        plain = (each.removesuffix("; keep them with --keep-odd") for each in said)
        return tuple(f"{self.name}: {each}" for each in dict.fromkeys(plain))

    @property
    def temperatures(self) -> Floats:
        """The paper's temperatures for such networks."""
        return WIDE if self.unregularized else TEMPERATURES

    @property
    def standard(self) -> int | None:
        """Which pool has the size that the paper calls standard, if there is one."""
        for k, each in enumerate(self.pools):
            if each.pool.width == _STANDARD.get(each.pool.family or "", -1):
                return k
        return None

    @property
    def usual(self) -> int:
        """Which pool stands for the others: of standard size, or else the largest."""
        return len(self.pools) - 1 if self.standard is None else self.standard

    def curve(self, k: int) -> Curve:
        """Score one pool along n."""
        if self.plane is not None:
            return self.plane.curves[k]
        return self.remember(("curve", k), lambda: score(self.pools[k]))

    def law(self, k: int, score: str = "cnll") -> Fit:
        """Fit the law along n to points that at least three ensembles make."""

        def fitted() -> Fit:
            curve = self.curve(k)
            some = curve.averaged()
            return fit(curve.n[some], getattr(curve, score)[some])

        return self.remember(("law", k, score), fitted)

    def profile(self, k: int, apply: str = "before") -> Profile:
        """Score one pool at fixed temperatures."""
        pool = self.pools[k] if apply == "before" else self._some(k)
        return self.remember(
            ("profile", k, apply),
            lambda: profile(pool, temperatures=self.temperatures, apply=apply),
        )

    def comparison(self, k: int) -> Comparison:
        """Calibrate the ensembles of one pool before averaging and after it."""
        pool = self._some(k)
        if isinstance(pool, Sketch):
            raise InputError(f"pool {pool.pool.name!r} holds sketches, not logits")
        return self.remember(("comparison", k), lambda: compare(pool))

    def from_all(self, k: int) -> tuple[Floats, Floats, Floats]:
        """Predict CNLL of n > 4 from n = 1 … 4, all networks at hand.

        The n, CNLL measured there, and what the paper's law says.
        """

        def predicted() -> tuple[Floats, Floats, Floats]:
            curve = self.curve(k)
            some = curve.averaged()
            n, cnll = curve.n[some], curve.cnll[some]
            first = np.isin(n, PAPER_SIZES)
            rest = n > PAPER_SIZES[-1]
            if first.sum() < len(PAPER_SIZES) or not rest.any():
                none = np.empty(0)
                return none, none, none
            law = fit(n[first], cnll[first], method="paper").law
            return n[rest].astype(float), cnll[rest], np.asarray(law(n[rest]))

        return self.remember(("from all", k), predicted)

    def from_six(self, k: int) -> BackTest | None:
        """Predict CNLL of n > 4 from six networks, and again from six others.

        None where there are too few others to tell the truth.
        """
        pool = self._some(k)
        n = [each for each in spaced(pool.networks - SIX) if each > PAPER_SIZES[-1]]
        if not n:
            return None
        return self.remember(
            ("from six", k), lambda: back_test(pool, to=n, keep_odd=True).pools[0]
        )

    def optimal_splits(self, method: str) -> OptimalSplits:
        """Predict best splits from six networks of each size; refused without a plane.

        Over the budgets of which two splits or more were measured.
        """
        plane = self.plane
        if plane is None:
            raise InputError(self.lacking)
        return self.remember(
            ("optimal splits", method),
            lambda: optimal_splits_test(plane, method=method),
        )

    def remember(self, key: Any, make: Callable[[], T]) -> T:
        """Make something that belongs to this evidence once."""
        if key not in self._memory:
            self._memory[key] = make()
        kept: T = self._memory[key]
        return kept

    def _some(self, k: int) -> Predictions | Sketch:
        pool = self.pools[k]
        return pool if pool.networks <= _MOST else pool.choose(range(_MOST))


def gather_evidence(
    stores: Any, *, progress: Progress | None = None
) -> tuple[Evidence, ...]:
    """Open stores and score their pools, one evidence for each family of each store.

    Parameters
    ----------
    stores
        A store or its path, several of them, or evidence that is gathered already.
    progress
        Told what is being done and which share of it is done.
    """
    given = opened(stores)
    found: list[Evidence] = []
    for each in given:
        found += [each] if isinstance(each, Evidence) else _of_store(each, progress)
    names = [each.name for each in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        # Two folders of one study, such as a copy, must not take each other's name.
        count: dict[str, int] = dict.fromkeys(twice, 0)
        for i, each in enumerate(found):
            if each.name in count:
                count[each.name] += 1
                name = f"{each.name}-{count[each.name]}"
                found[i] = dataclasses.replace(each, name=name)
    return tuple(found)


def evidence_of(pools: Sequence[Predictions | Sketch], name: str = "pools") -> Evidence:
    """Take pools in memory, each with its size, in the place of a store.

    >>> from ensize.synthetic import Family
    >>> worlds = [Family.splits_pay().of(s) for s in (20_000, 80_000)]
    >>> found = evidence_of([world.predictions(6) for world in worlds])
    >>> found.plane.sizes, round(found.law(1).limit, 2)
    (array([20000, 80000]), 0.37)
    """
    unknown = np.full(len(pools), np.nan)
    return _evidence(name, tuple(pools), {}, unknown, unknown)


def opened(stores: Any) -> list[Store | Evidence]:
    """Open stores, or say what is wrong with them, before anything takes long."""
    one = isinstance(stores, (str, os.PathLike, Evidence))
    given = [stores] if one else list(stores)
    if not given:
        raise InputError("there are no stores; give at least one")
    return [x if isinstance(x, (Store, Evidence)) else Store.open(x) for x in given]


def _of_store(store: Store, progress: Progress | None) -> list[Evidence]:
    study = store.declared()
    by_family: dict[str, list[Predictions | Sketch]] = {}
    for each in store.pools():
        if each.networks:
            pool = store.read(each.name)
            by_family.setdefault(pool.pool.family or "", []).append(pool)
    if not by_family:
        raise InputError(f"{store.path} holds no networks yet; record some first")
    name = str(study.get("name") or _folder_name(store.path))
    found = []
    for family, pools in sorted(by_family.items()):
        called = name if len(by_family) == 1 else f"{name}-{family or 'other'}"
        ordered = sorted(pools, key=lambda each: each.pool.size or 0)
        names = [each.pool.name for each in ordered]
        spent, asked = (
            np.array([store.average(pool, key) for pool in names])
            for key in ("seconds", "prediction_seconds")
        )
        found.append(
            _evidence(called, tuple(ordered), study, spent, asked, progress=progress)
        )
    return found


def _evidence(
    name: str,
    pools: tuple[Predictions | Sketch, ...],
    study: dict[str, Any],
    seconds: Floats,
    prediction_seconds: Floats,
    *,
    progress: Progress | None = None,
) -> Evidence:
    plane, lacking = None, ""
    try:
        plane = plane_of(list(pools), progress=progress)
    except InputError as error:
        lacking = str(error).replace("what was handed in", name, 1)
    if plane is not None:
        recipe = f"study {study['name']}" if study.get("name") else plane.recipe
        plane = dataclasses.replace(plane, recipe=recipe)
        # Pools with too few networks have no part in a plane.
        at = [[each.pool.name for each in pools].index(each) for each in plane.names]
        pools, seconds = plane.pools, seconds[at]
        prediction_seconds = prediction_seconds[at]
    return Evidence(
        name, tuple(pools), plane, lacking, study, seconds, prediction_seconds
    )


def _folder_name(path: Path) -> str:
    """Name a store by its folder; `DIR/store`, which `ensize demo` makes, by DIR."""
    whole = path.resolve()
    return whole.parent.name if whole.name == "store" else whole.name


def _said(recipe: str, key: str) -> float | None:
    """Find a number in what a pool says of its recipe."""
    match = re.search(rf"\b{key} ([0-9.]+(?:[eE][+-]?[0-9]+)?)", recipe)
    return float(match[1]) if match else None
