"""Figures over the plane of n and s: CNLL, and differences of its kinds, as maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import Normalize

from ensize.figures import style
from ensize.figures.drawings import (
    BEFORE,
    Drawn,
    Lacking,
    counts_of,
    counts_of_all,
    of_all,
    of_each,
    plane_in,
    unregularized_in,
)
from ensize.profiles import above_envelope, doubling, spaced
from ensize.sketches import Sketch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ensize.evidence import Evidence

Floats = np.ndarray[Any, np.dtype[np.float64]]


@of_each("plane", "The plane of CNLL over n and s", "figure 1, left")
def cnll_plane(found: Evidence) -> Drawn:
    """Draw CNLL of n networks of s parameters as a map."""
    plane_in(found)
    return _planes([found])


@of_all("unregularized-plane", "The plane of CNLL without regularization", "figure 14")
def unregularized_plane(found: Sequence[Evidence]) -> Drawn:
    """Draw CNLL over n and s where networks were trained without regularization."""
    return _planes(unregularized_in(found))


@of_each("before-after", "CNLL before minus after, over n and s", "figure 7")
def before_after(found: Evidence) -> Drawn:
    """Draw how much CNLL depends on which way round the temperature is applied."""
    plane = plane_in(found)
    if any(isinstance(each, Sketch) for each in found.pools):
        raise Lacking(
            f"{found.name} holds sketches, which know the probability of the true class"
            " only; a temperature applied after averaging needs logits: record these"
        )
    rows = [found.comparison(k) for k in range(len(plane))]
    n = max((each.n for each in rows), key=len)
    maps = [_rows(n, [(each.n, each.difference_whole) for each in rows])]
    maps.append(_rows(n, [(each.n, each.difference) for each in rows]))
    figure, axes = style.page(1, 2, height=2.3)
    for axis, values, title in zip(axes[0], maps, _TITLES, strict=True):
        thousandths = 1000 * values
        reach = float(np.nanmax(np.abs(thousandths)))
        norm = Normalize(-reach, reach)
        shown = style.heat(axis, n, plane.sizes, thousandths, norm=norm, colors="PuOr")
        # Both ends are dark in gray: dots tell them apart. One network has no average.
        size, at = np.nonzero((values > 0) & (n > 1))
        axis.plot(n[at], plane.sizes[size], "k.", ms=2)
        axis.set_title(title)
        style.bar(figure, shown, axis, "difference (10⁻³ nats)", below=True)
    axes[0, 1].set_ylabel("")
    records = [
        {
            "size": int(size),
            "n": int(at),
            "ensembles": int(count),
            "whole": float(each.difference_whole[i]),
            "cross_validated": float(each.difference[i]),
            "error": float(each.error[i]),
        }
        for size, each in zip(plane.sizes, rows, strict=True)
        for i, (at, count) in enumerate(zip(each.n, each.ensembles, strict=True))
    ]
    caption = (
        "CNLL (nats) with the temperature applied before averaging minus CNLL with it"
        " applied after averaging, the temperature chosen and scored on all test"
        " objects (left) and by cross-validation (right). Dots: after averaging is"
        " better. Means over disjoint ensembles of at most 64 networks."
        f" {counts_of(found)}."
    )
    return Drawn(figure, caption, records)


@of_each("envelope", "CNLL minus LE-NLL, over n and s", "figure 9")
def envelope(found: Evidence) -> Drawn:
    """Draw what it changes to choose the temperature for each ensemble by itself."""
    plane = plane_in(found)
    n = np.array(doubling(int(plane.networks.max())))
    parts = []
    for curve in plane.curves:
        some = curve.averaged()
        whole, crossed = above_envelope(curve)
        parts.append(
            [
                (curve.n[some], 100 * (each / curve.le_nll)[some])
                for each in (whole, crossed)
            ]
        )
    maps = [_rows(n, [each[i] for each in parts]) for i in (0, 1)]
    figure, axes = style.page(1, 2, height=2.3)
    for axis, values, title in zip(axes[0], maps, _TITLES, strict=True):
        norm = Normalize(float(np.nanmin(values)), float(np.nanmax(values)))
        shown = style.heat(axis, n, plane.sizes, values, norm=norm)
        axis.set_title(title)
        style.bar(figure, shown, axis, "CNLL − LE-NLL (%)", below=True)
    axes[0, 1].set_ylabel("")
    records = [
        {
            "size": int(plane.sizes[k]),
            "n": int(n[i]),
            "whole_percent": float(maps[0][k, i]),
            "cross_validated_percent": float(maps[1][k, i]),
        }
        for k, i in np.argwhere(np.isfinite(maps[0])).tolist()
    ]
    largest = [float(np.nanmax(np.abs(values))) for values in maps]
    caption = (
        "CNLL minus LE-NLL, in percent of LE-NLL, the temperature of CNLL chosen and"
        f" scored on all test objects (left, at most {largest[0]:.2g} %) and by"
        f" cross-validation (right, at most {largest[1]:.2g} %), where there are three"
        f" ensembles; {BEFORE}. {counts_of(found)}."
    )
    return Drawn(figure, caption, records)


_TITLES = ("on all objects", "cross-validated")


def _planes(found: Sequence[Evidence]) -> Drawn:
    figure, axes = style.page(len(found), 1, height=0.3 + 1.8 * len(found))
    records: list[dict[str, Any]] = []
    for axis, each in zip(axes[:, 0], found, strict=True):
        plane = plane_in(each)
        n = np.array(spaced(int(plane.networks.max())))
        values = plane.at(n)
        shown = style.heat(axis, n, plane.sizes, values, norm=style.scale_of(values))
        style.bar(figure, shown, axis, "CNLL (nats)")
        style.budgets(axis, n, plane.sizes)
        if len(found) > 1:
            axis.set_title(each.name, loc="left", parse_math=False)
        records += [
            {
                "store": each.name,
                "pool": plane.names[k],
                "size": int(plane.sizes[k]),
                "n": int(n[i]),
                "cnll": float(values[k, i]),
            }
            for k, i in np.argwhere(np.isfinite(values)).tolist()
        ]
    caption = (
        "CNLL (nats) of ensembles of n networks of s parameters each. Ensembles on a"
        f" dashed line have equally many parameters in all; {BEFORE}."
        f" {counts_of_all(found)}."
    )
    return Drawn(figure, caption, records)


def _rows(n: Any, curves: Sequence[tuple[Any, Floats]]) -> Floats:
    """Put curves into the rows of one table, NaN where they have no point."""
    table = np.full((len(curves), len(n)), np.nan)
    for row, (at, values) in zip(table, curves, strict=True):
        there, which, mine = np.intersect1d(n, at, return_indices=True)
        if len(there):
            row[which] = values[mine]
    return table
