"""Curve: scores along the number of networks, with errors that count networks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.checks import InputError, one_of, positive, whole
from ensize.curves.expansion import SecondOrder
from ensize.draws import DRAWS, chance_level, disjoint, odd_ones_out, subsets
from ensize.predictions import Predictions
from ensize.scores import APPLY, Scores, score_ensembles, shares_of
from ensize.scores.search import sketch_of
from ensize.sketches import Sketch
from ensize.temperatures import calibrate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ensize.predictions import Progress

Floats = np.ndarray[Any, np.dtype[np.float64]]

# Temperatures at which logits of ±10⁴ stay numbers.
# By which part CNLL on halves may be above that on all objects. On test sets of
# thousands it is a hundredth of this.
_ABOVE = 0.1
_LOW, _HIGH = 1e-20, 1e20

# The columns of a curve, in the order of its table and its JSON.
COLUMNS = (
    "n",
    "ensembles",
    "nll",
    "cnll",
    "cnll_se",
    "cnll_whole",
    "le_nll",
    "accuracy",
    "brier",
    "jensen_gap",
    "temperature",
    "temperature_sd",
)


@dataclass(frozen=True, eq=False)
class Curve:
    """Expected scores of ensembles of n networks, one entry for each n.

    NaN stands where a score cannot be known: accuracy and Brier score of sketches,
    the standard error where no network can be left out.

    Parameters
    ----------
    n, ensembles
        The number of networks, and how many ensembles were averaged.
    nll
        At τ = 1, or at the fixed temperature.
    cnll, cnll_se
        Calibrated NLL by test-time cross-validation, and its standard error.
    cnll_whole
        Calibrated and scored on all objects.
    le_nll
        The least mean NLL at one temperature for all ensembles.
    accuracy, brier
        At τ = 1.
    jensen_gap
        Mean member NLL minus ensemble NLL, at the temperature of `nll`.
    temperature, temperature_sd
        Mean and spread of the best temperature over halves and ensembles.
    networks, objects, classes
        What was scored, the odd ones left out.
    odd
        The networks that were left out.
    warnings
        Sentences on what a reader should know.
    options
        The choices that shaped the curve.
    cnll_without, accuracy_without
        The points without each network, (networks, points), from which errors of what
        several points make together follow; None of disjoint ensembles.
    at_edge
        Of which part of the ensembles the best temperature lies at the edge of what was
        searched, so that their CNLL is not known.
    """

    n: NDArray[np.int64]
    ensembles: NDArray[np.int64]
    nll: Floats
    cnll: Floats
    cnll_se: Floats
    cnll_whole: Floats
    le_nll: Floats
    accuracy: Floats
    brier: Floats
    jensen_gap: Floats
    temperature: Floats
    temperature_sd: Floats
    networks: int
    objects: int
    classes: int
    odd: tuple[str, ...]
    warnings: tuple[str, ...]
    options: dict[str, Any]
    cnll_without: Floats | None = None
    accuracy_without: Floats | None = None
    at_edge: Floats | None = None

    def averaged(self, least: int = 3) -> NDArray[np.bool_]:
        """Tell which points are means over so many ensembles.

        The paper fits laws to measured curves at points of at least three runs:
        ``fit(curve.n[curve.averaged()], curve.cnll[curve.averaged()])``.
        """
        enough: NDArray[np.bool_] = self.ensembles >= least
        return enough

    def records(self) -> list[dict[str, float]]:
        """List the points as plain records, which pandas and Polars read."""
        columns = [getattr(self, name).tolist() for name in COLUMNS]
        rows = zip(*columns, strict=True)
        return [dict(zip(COLUMNS, row, strict=True)) for row in rows]

    def table(self) -> str:
        """Write the points as a table for reading."""
        shown = [name for name in COLUMNS if not np.isnan(getattr(self, name)).all()]
        rows = [[_figure(record[name]) for name in shown] for record in self.records()]
        widths = [max(map(len, column)) for column in zip(shown, *rows, strict=True)]
        lines = [
            "  ".join(
                cell.rjust(width) for cell, width in zip(row, widths, strict=True)
            )
            for row in [shown, *rows]
        ]
        return "\n".join(lines)


def _figure(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    # Adding zero takes the sign from a zero.
    return "–" if math.isnan(value) else f"{round(value, 5) + 0.0:.5f}"


def score(
    pool: Predictions | Sketch,
    *,
    n: Sequence[int] | None = None,
    ensembles: str = "all",
    apply: str = "before",
    temperature: float | None = None,
    calibrate_on: Predictions | Sketch | None = None,
    keep_odd: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> Curve:
    """Score the ensembles of a pool along n.

    Parameters
    ----------
    pool
        What `ensize.load` returned.
    n
        The numbers of networks; every one from 1 on if not given.
    ensembles
        ``"all"`` scores every subset where that is affordable, otherwise balanced
        random ones; ``"disjoint"`` cuts the pool into ⌊ℓ/n⌋ groups, as the paper.
    apply
        Whether the temperature is applied ``"before"`` averaging or ``"after"``.
    temperature
        A fixed temperature at which to report `nll`, instead of 1.
    calibrate_on
        Predictions of the same networks on other objects, to choose the
        temperature there instead of by cross-validation.
    keep_odd
        Keep the networks that did not train.
    seed
        Of draws and halvings.
    progress
        Told what is being done and which share of it is done.

    Examples
    --------
    >>> import ensize
    >>> pool = ensize.Predictions.of(
    ...     [[[2, 0], [0, 1], [1, 0], [0, 3]], [[1, 0], [0, 2], [0, 0.5], [0, 2]]],
    ...     targets=[0, 1, 0, 1],
    ... )
    >>> curve = ensize.score(pool)
    >>> curve.n, curve.accuracy
    (array([1, 2]), array([0.875, 1.   ]))
    """
    if not isinstance(pool, (Predictions, Sketch)):
        raise InputError(
            f"score was given {type(pool).__name__}; give it what ensize.load or"
            " ensize.Predictions.of returned"
        )
    one_of("ensembles", ensembles, DRAWS)
    one_of("apply", apply, APPLY)
    if temperature is not None:
        _check_within(positive("temperature", temperature))
    if calibrate_on is not None:
        _check_same(calibrate_on, pool)
    warnings: list[str] = []
    sketch = sketch_of(pool, progress=progress)
    odd: tuple[str, ...] = ()
    if not keep_odd:
        out = _odd(sketch, warnings)
        odd = tuple(pool.labels[i] for i in out)
        left = np.setdiff1d(np.arange(pool.networks), out)
        if calibrate_on is not None:
            calibrate_on = calibrate_on.choose(left)
        pool, sketch = pool.choose(left), sketch.choose(left)
    _note_twins(sketch, warnings)
    sizes = _sizes(n, pool.networks)
    draw = disjoint if ensembles == "disjoint" else subsets
    drawn = [draw(pool.networks, size, seed) for size in sizes]
    shares = np.vstack([shares_of(each, pool.networks) for each in drawn])
    scores = score_ensembles(
        pool,
        shares,
        apply=apply,  # type: ignore[arg-type] # checked above
        temperature=temperature,
        calibrate_on=calibrate_on,
        seed=seed,
        sketch=sketch,
        progress=progress,
    )
    _note(scores, pool, warnings)
    ends = np.cumsum([len(each) for each in drawn])
    parts = [slice(end - len(each), end) for each, end in zip(drawn, ends, strict=True)]
    cnll, whole = (_means(each, parts) for each in (scores.cnll, scores.cnll_whole))
    if calibrate_on is None:
        _note_halves(sizes, cnll, whole, warnings)
    without: dict[str, Floats] = {}
    if ensembles == "disjoint":
        errors = np.array([_independent_error(scores.cnll[part]) for part in parts])
    else:
        second = SecondOrder.of(sketch)
        for name, values in (("cnll", scores.cnll), ("accuracy", scores.accuracy)):
            points = [
                second.leave_one_out(values[part], shares[part]) for part in parts
            ]
            without[f"{name}_without"] = np.array(points).T
        errors = jackknife_error(without["cnll_without"])
    return Curve(
        n=np.array(sizes),
        ensembles=np.array([len(each) for each in drawn]),
        nll=_means(scores.nll, parts),
        cnll=cnll,
        cnll_se=errors,
        cnll_whole=whole,
        le_nll=np.array([scores.le_nll(part) for part in parts]),
        accuracy=_means(scores.accuracy, parts),
        brier=_means(scores.brier, parts),
        jensen_gap=_means(scores.jensen_gap, parts),
        temperature=_means(scores.temperatures, parts),
        temperature_sd=np.array([scores.temperatures[part].std() for part in parts]),
        networks=pool.networks,
        objects=pool.objects,
        classes=pool.classes,
        odd=odd,
        warnings=tuple(warnings),
        options={
            "ensembles": ensembles,
            "apply": apply,
            "temperature": temperature,
            "calibrated": "cross-validated" if calibrate_on is None else "separately",
            "keep_odd": keep_odd,
            "seed": seed,
        },
        **without,
        at_edge=_means(scores.at_edge.astype(np.float64), parts),
    )


def _check_within(temperature: float) -> None:
    if not _LOW <= temperature <= _HIGH:
        raise InputError(
            f"temperature is {temperature:g}, where float32 holds no tempered logits;"
            f" give one from {_LOW:g} to {_HIGH:g}"
        )


def _check_same(separate: Predictions | Sketch, pool: Predictions | Sketch) -> None:
    if separate.networks != pool.networks:
        raise InputError(
            f"the predictions to calibrate on are of {separate.networks} networks, but"
            f" the pool has {pool.networks}; give the same networks in the same order"
        )
    if separate.classes != pool.classes:
        raise InputError(
            f"the predictions to calibrate on have {separate.classes} classes, but the"
            f" pool has {pool.classes}; give predictions of the same networks"
        )


def _means(values: Floats, parts: list[slice]) -> Floats:
    return np.array([values[part].mean() for part in parts])


def _sizes(n: Sequence[int] | None, networks: int) -> list[int]:
    if n is None:
        return list(range(1, networks + 1))
    sizes = sorted({whole("n", each, least=1) for each in n})
    if not sizes:
        raise InputError("n is empty; give the numbers of networks to score")
    if sizes[-1] > networks:
        raise InputError(
            f"n is {sizes[-1]}, but the pool has {networks}"
            f" network{'s' * (networks > 1)}; ask for fewer, or add networks"
        )
    return sizes


def _odd(sketch: Sketch, warnings: list[str]) -> NDArray[np.intp]:
    """Find the odd networks, and say which they are."""
    alone = calibrate(sketch.grid, sketch.member_nll()).nll
    chance = chance_level(sketch.targets)
    if (alone > 0.99 * chance).all():
        warnings.append(
            f"no network of {sketch.pool.name} is better than chance (NLL"
            f" {chance:.4g}); check that the targets belong to these predictions"
        )
    odd = odd_ones_out(alone, chance)
    if len(odd):
        listed = ", ".join(sketch.labels[i] for i in odd[:5])
        more = f" and {len(odd) - 5} more" if len(odd) > 5 else ""
        share = len(odd) / sketch.networks
        warnings.append(
            f"{len(odd)} of {sketch.networks} networks ({share:.0%}) are the odd ones"
            f" out and are left out: {listed}{more}; keep them with --keep-odd"
        )
    return odd


def _note_twins(sketch: Sketch, warnings: list[str]) -> None:
    """Say when a network stands in the pool twice: clones bias every ensemble."""
    first: dict[bytes, str] = {}
    for label, row in zip(sketch.labels, sketch.member_nll(), strict=True):
        said = row.tobytes()
        twin = first.get(said)
        first.setdefault(said, label)
        if twin is not None:
            warnings.append(
                f"{label} says the same as {twin}; a network that stands in a pool"
                " twice makes ensembles look worse than they are: take it out"
            )


def _note_halves(
    sizes: list[int], cnll: Floats, whole: Floats, warnings: list[str]
) -> None:
    """Say where half of the test set is too little to choose a temperature."""
    above = cnll - whole * (1 + _ABOVE)
    worst = int(above.argmax())
    if above[worst] > 0:
        warnings.append(
            "half of the objects is too little to choose a temperature: CNLL of"
            f" {sizes[worst]} is {cnll[worst]:.4g} where the halves choose for each"
            f" other, and {whole[worst]:.4g} where all do; test on more objects, or"
            " choose on separate ones (--calibrate-on)"
        )


def _note(scores: Scores, pool: Predictions | Sketch, warnings: list[str]) -> None:
    if scores.at_edge.any():
        warnings.append(
            f"the best temperature of {scores.at_edge.mean():.0%} of the ensembles lies"
            " at the edge of what was searched; their CNLL may be smaller still"
        )
    if isinstance(pool, Sketch):
        warnings.append(
            "the pool holds sketches, which know the probability of the true class"
            " only: accuracy and Brier score are unknown"
        )


def jackknife_error(without: Floats) -> Floats:
    """Compute delete-one standard errors from values without each network."""
    errors: Floats = np.sqrt((len(without) - 1) * without.var(axis=0))
    return errors


def _independent_error(values: Floats) -> float:
    """Compute the standard error of ensembles without a common member."""
    count = len(values)
    return math.nan if count < 2 else float(values.std(ddof=1) / math.sqrt(count))
