"""Figures along the temperature: NLL at fixed ones, and the best."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.figures import style
from ensize.figures.drawings import (
    BEFORE,
    POINTS,
    Drawn,
    counts_of,
    counts_of_all,
    of_all,
    of_each,
    plane_in,
    too_few,
    with_planes,
)
from ensize.figures.lines import PARAMETERS, RMSE_SAYS, draw_law, law_record
from ensize.sketches import Sketch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ensize.evidence import Evidence
    from ensize.profiles import Profile

# So many temperatures are told apart in a figure.
_TOLD_APART = 9
# A usual temperature and a high one.
_USUAL, _HIGH = 1.0, 3.0


@of_each("fixed-temperature", "Laws of NLL_n(τ) along τ", "figures 2 and 10")
def fixed_temperature(found: Evidence) -> Drawn:
    """Draw limit, gain, exponent and RMSE of the laws of NLL_n(τ), a line a size."""
    plane = plane_in(found)
    shown = np.flatnonzero(plane.networks >= POINTS + 2)
    if not len(shown):
        raise too_few(found, POINTS + 2)
    figure, axes = style.page(2, 2, height=2.9)
    records: list[dict[str, Any]] = []
    for color, k in zip(style.ramp(len(shown)), shown.tolist(), strict=True):
        along = found.profile(k)
        for axis, (name, _) in zip(axes.flat, PARAMETERS, strict=True):
            axis.plot(along.temperature, getattr(along.laws, name), color=color)
        records += [
            law_record(found, k, along.laws[i], temperature=temperature)
            for i, temperature in enumerate(along.temperature)
        ]
    for axis, (_, label) in zip(axes.flat, PARAMETERS, strict=True):
        axis.set_ylabel(label)
    for axis in axes[0]:
        style.log_y(axis, axis.get_ylabel())
    for axis in axes[1]:
        axis.set_xlabel("temperature τ")
    axes[1, 0].axhline(-1, color="0.4", lw=0.7, ls="--")
    for axis in axes.flat:
        axis.margins(x=0.02)
        if found.unregularized:
            style.log_x(axis, [0.25, 1, 4])
        else:
            axis.set_xticks([1, 2, 3])
    style.key(figure, axes, plane.sizes[shown].tolist(), "parameters s")
    caption = (
        "Laws c + b·n^a of NLL at a fixed temperature τ (nats), fitted to all n of"
        f" which there are three ensembles, and how well they fit ({RMSE_SAYS});"
        f" {BEFORE}. The dashed line is the exponent of theory, −1. {counts_of(found)}."
    )
    return Drawn(figure, caption, records)


@of_each("temperature-curves", "NLL_n(τ) for many τ, before and after", "figure 8")
def temperature_curves(found: Evidence) -> Drawn:
    """Draw NLL_n(τ) and CNLL_n of the smallest networks, before and after averaging."""
    pool, curve = found.pools[0], found.curve(0)
    if curve.networks < POINTS:
        raise too_few(found, POINTS)
    some = curve.averaged()
    lines = [(found.profile(0), curve.n[some], curve.cnll[some])]
    if not isinstance(pool, Sketch):
        both = found.comparison(0)
        some = both.ensembles >= 3
        lines.append((found.profile(0, "after"), both.n[some], both.after[some]))
    figure, axes = style.page(1, 2, height=2.2)
    records: list[dict[str, Any]] = []
    for axis, (along, n, cnll) in zip(axes.flat, lines, strict=False):
        at = _spread(len(along.temperature))
        for color, i in zip(style.ramp(len(at)), at, strict=True):
            axis.plot(along.n, along.nll[i], color=color, lw=0.8)
        axis.plot(n, cnll, color="black", lw=1.4, ls="--", label="CNLL")
        axis.set_title(f"τ {along.apply} averaging")
        style.log_n(axis, float(along.n.max()))
        records += _curve_records(along, at, n, cnll)
    least = min(float(cnll.min()) for _, _, cnll in lines)
    most = max(float(cnll.max()) for _, _, cnll in lines)
    for axis in axes.flat:
        # NLL far above CNLL is cut, or else nothing could be told apart below.
        axis.set_ylim(least - 0.15 * (most - least), most + 1.5 * (most - least))
    axes[0, 0].set_ylabel("NLL (nats)")
    style.shared_legend(figure, axes[0, 0].get_lines()[-1:])
    axes[0, 1].tick_params(labelleft=False)
    if len(lines) == 1:
        style.say_in(axes[0, 1], "sketches hold\nno other classes")
    temperatures = lines[0][0].temperature
    shown = temperatures[_spread(len(temperatures))].tolist()
    style.key(figure, axes, shown, "temperature τ", digits=2)
    networks = [str(along.networks) for along, _, _ in lines]
    caption = (
        "NLL_n(τ) of the smallest networks at fixed temperatures τ, and CNLL_n"
        " (dashed), in nats, with the temperature applied before averaging and after"
        " it; what is far above CNLL is cut off."
        f" Pool {pool.pool.name} of {found.name}, {' and '.join(networks)} networks,"
        f" {found.objects:,} test objects."
    )
    return Drawn(figure, caption, records)


@of_each("high-temperature", "A high temperature on small networks", "figure 11")
def high_temperature(found: Evidence) -> Drawn:
    """Draw NLL_n(τ) of the smallest networks and its law at τ = 1 and τ = 3."""
    along = found.profile(0)
    some = along.ensembles >= 3
    if some.sum() < POINTS:
        raise too_few(found, POINTS + 2)
    figure, axes = style.page(2, 2, height=2.8)
    records = []
    n, counts = along.n[some], along.ensembles[some]
    for row, wanted in zip(axes, (_USUAL, _HIGH), strict=True):
        i = int(np.abs(along.temperature - wanted).argmin())
        temperature = float(along.temperature[i])
        drawn = draw_law(row, n, along.nll[i][some], along.laws[i], color=style.DARK)
        records += [
            {"temperature": temperature, "n": int(at), "ensembles": int(count), **each}
            for at, count, each in zip(n, counts, drawn, strict=True)
        ]
        row[0].set_ylabel(f"NLL, τ = {temperature:.3g}\n(nats)")
        style.log_space(row[1], "distance to limit\n(nats)")
        for axis in row:
            style.log_n(axis, float(n.max()), label="")
    for axis in axes[-1]:
        axis.set_xlabel("networks n")
    caption = (
        "NLL_n(τ) of the smallest networks at a usual temperature and at a high one,"
        " with its law, plain and as the distance to the limit (nats). Pool"
        f" {found.pools[0].pool.name} of {found.name}, {along.networks} networks,"
        f" {found.objects:,} test objects; {BEFORE}."
    )
    return Drawn(figure, caption, records)


@of_all("temperatures", "The best temperature along n", "figure 12")
def temperatures(found: Sequence[Evidence]) -> Drawn:
    """Draw the mean best temperature of ensembles of n networks, a line a size."""
    some = with_planes(found)
    figure, axes = style.page(len(some), 1, height=0.3 + 1.7 * len(some))
    records: list[dict[str, Any]] = []
    for axis, each in zip(axes[:, 0], some, strict=True):
        plane = plane_in(each)
        for color, name, size, curve in zip(
            style.ramp(len(plane)), plane.names, plane.sizes, plane.curves, strict=True
        ):
            kept = curve.averaged()
            n, best = curve.n[kept], curve.temperature[kept]
            axis.plot(n, best, color=color, marker=".", ms=3)
            records += [
                {
                    "store": each.name,
                    "pool": name,
                    "size": int(size),
                    "n": int(at),
                    "temperature": float(value),
                    "spread": float(spread),
                }
                for at, value, spread in zip(
                    n, best, curve.temperature_sd[kept], strict=True
                )
            ]
        style.log_n(axis, max(line.get_xdata()[-1] for line in axis.get_lines()))
        axis.set_ylabel("best temperature τ")
        if len(some) > 1:
            axis.set_title(each.name, loc="left", parse_math=False)
        style.key(figure, axis, plane.sizes.tolist(), "parameters s")
    caption = (
        "The best temperature of ensembles of n networks, mean over ensembles and"
        f" halves of the test set; {BEFORE}. {counts_of_all(some)}."
    )
    return Drawn(figure, caption, records)


def _spread(count: int) -> list[int]:
    """Choose some of so many, evenly and with both ends."""
    few = min(count, _TOLD_APART)
    return [round(x) for x in np.linspace(0, count - 1, few).tolist()]


def _curve_records(
    along: Profile, at: list[int], n: Any, cnll: Any
) -> list[dict[str, Any]]:
    fixed = [
        {
            "apply": along.apply,
            "score": "nll",
            "temperature": float(along.temperature[i]),
            "n": int(each),
            "value": float(value),
        }
        for i in at
        for each, value in zip(along.n, along.nll[i], strict=True)
    ]
    best = [
        {
            "apply": along.apply,
            "score": "cnll",
            "temperature": None,
            "n": int(each),
            "value": float(value),
        }
        for each, value in zip(n, cnll, strict=True)
    ]
    return [*fixed, *best]
