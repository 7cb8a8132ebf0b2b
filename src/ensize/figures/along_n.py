"""Figures along the number of networks: curves and their laws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.figures import style
from ensize.figures.drawings import Drawn, Lacking, counts_of, of_all, of_each, plane_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ensize.curves import Curve
    from ensize.evidence import Evidence
    from ensize.laws import Fit

# Fewer points than this make no curve worth looking at.
_POINTS = 4
_PARAMETERS = (
    ("limit", "limit c (nats)"),
    ("gain", "gain b (nats)"),
    ("exponent", "exponent a"),
    ("rmse_log2", "RMSE of log₂(y − c)"),
)
_WITH = "the temperature is applied before averaging"
# A size of ensembles stands in the key of few lines; more go into colors.
_WIDE_RANGE = 12


@of_each(
    "curves", "NLL and CNLL along n, with their laws", "figure 1, middle and right"
)
def curves(found: Evidence) -> Drawn:
    """Draw NLL_n and CNLL_n of one pool with their laws, plain and log-log."""
    return _two_laws(found, found.usual)


@of_each("elsewhere", "Ensembles recorded elsewhere", "figure 21 (ImageNet)")
def elsewhere(found: Evidence) -> Drawn:
    """Draw NLL_n and CNLL_n of a pool that no study of ours made."""
    if found.study:
        raise Lacking(
            f"{found.name} was made by a study; this figure is of networks recorded"
            " elsewhere: record some with Store.add or Store.record"
        )
    return _two_laws(found, found.usual)


@of_each("fixed-temperature", "Laws of NLL_n(τ) along the temperature", "figures 2, 10")
def fixed_temperature(found: Evidence) -> Drawn:
    """Draw limit, gain, exponent and RMSE of the laws of NLL_n(τ), a line a size."""
    plane = plane_in(found)
    figure, axes = style.page(2, 2, height=2.9)
    records: list[dict[str, Any]] = []
    shown = [k for k in range(len(plane)) if plane.networks[k] >= _POINTS + 2]
    if not shown:
        raise Lacking(_few(found, _POINTS + 2))
    colors = style.ramp(len(shown))
    for color, k in zip(colors, shown, strict=True):
        along = found.profile(k)
        for axis, (name, _) in zip(axes.flat, _PARAMETERS, strict=True):
            axis.plot(along.temperature, getattr(along.laws, name), color=color)
        for i, temperature in enumerate(along.temperature):
            records.append(_law_record(found, k, along.laws[i], tau=temperature))
    for axis, (_, label) in zip(axes.flat, _PARAMETERS, strict=True):
        axis.set_ylabel(label)
    for axis in axes[:, 0]:
        axis.margins(x=0.02)
    axes[1, 0].axhline(-1, color="0.4", lw=0.7, ls=":")
    for axis in (axes[0, 0], axes[0, 1]):
        style.log_y(axis, axis.get_ylabel())
    for axis in axes[1]:
        axis.set_xlabel("temperature τ")
    if found.unregularized:
        for axis in axes.flat:
            axis.set_xscale("log", base=2)
            style.plain_x(axis, [0.25, 0.5, 1, 2, 4, 8])
    style.key(figure, axes, [plane.sizes[k] for k in shown], "parameters s")
    caption = (
        "Laws c + b·n^a of NLL at a fixed temperature τ (nats), fitted to all n of"
        f" which there are three ensembles; {_WITH}. The dotted line is the exponent"
        f" of theory, -1. {counts_of(found)}."
    )
    return Drawn(figure, caption, records)


@of_all("calibrated", "Laws of CNLL_n along the size", "figures 3, 13")
def calibrated(found: Sequence[Evidence]) -> Drawn:
    """Draw limit, gain, exponent and RMSE of the laws of CNLL_n against the size."""
    return _parameters(found)


@of_all("unregularized-laws", "Laws of CNLL_n without regularization", "figure 15")
def unregularized_laws(found: Sequence[Evidence]) -> Drawn:
    """Draw the laws of CNLL_n where networks were trained without regularization."""
    some = [each for each in found if each.unregularized]
    if not some:
        raise Lacking(
            "no store was trained without weight decay and dropout; add one of a study"
            " that turns them off (weight_decay = 0, dropout = 0)"
        )
    return _parameters(some)


@of_each("temperature-curves", "NLL_n(τ) for many τ, before and after", "figure 8")
def temperature_curves(found: Evidence) -> Drawn:
    """Draw NLL_n(τ) of the smallest networks, applied before averaging and after."""
    k = 0
    before = found.profile(k)
    rows = [before]
    if hasattr(found.pools[k], "logits"):
        rows.append(found.profile(k, "after"))
    figure, axes = style.page(1, 2, height=2.1)
    records = []
    chosen = before.temperature[:: max(1, len(before.temperature) // 12)]
    colors = style.ramp(len(chosen))
    scores = []
    for axis, along in zip(axes.flat, rows, strict=False):
        at = np.searchsorted(along.temperature, chosen)
        for color, i in zip(colors, at, strict=True):
            axis.plot(along.n, along.nll[i], color=color, lw=0.8)
        axis.plot(along.n, along.le_nll, color="black", lw=1.6, label="LE-NLL")
        axis.set_title(f"τ applied {along.apply}")
        style.log_n(axis, float(along.n.max()))
        scores.append(along.le_nll)
        for i in at:
            for n, value in zip(along.n, along.nll[i], strict=True):
                records.append(
                    {
                        "apply": along.apply,
                        "temperature": float(along.temperature[i]),
                        "n": int(n),
                        "nll": float(value),
                    }
                )
        for n, value in zip(along.n, along.le_nll, strict=True):
            records.append(
                {"apply": along.apply, "temperature": "best", "n": int(n), "nll": value}
            )
    least = min(float(each.min()) for each in scores)
    most = max(float(each.max()) for each in scores)
    for axis in axes.flat:
        axis.set_ylim(least - 0.15 * (most - least), most + 1.5 * (most - least))
    axes[0, 0].set_ylabel("NLL (nats)")
    axes[0, 0].legend(loc="upper right")
    if len(rows) == 1:
        axes[0, 1].text(
            0.5, 0.5, "sketches hold\nno other classes", ha="center",
            va="center", transform=axes[0, 1].transAxes,
        )  # fmt: skip
        axes[0, 1].set_axis_off()
    style.key(figure, axes, list(chosen), "temperature τ")
    caption = (
        "NLL_n(τ) of the smallest networks for many temperatures, and LE-NLL_n, the"
        " least of all at each n (black); axes are cut where NLL is far above it."
        f" Pool {found.pools[k].pool.name}, {before.networks} networks before,"
        f" {rows[-1].networks} after averaging, {found.objects:,} test objects."
    )
    return Drawn(figure, caption, records)


@of_each("high-temperature", "A high temperature on small networks", "figure 11")
def high_temperature(found: Evidence) -> Drawn:
    """Draw NLL_n(τ) of the smallest networks and its law at τ = 1 and τ = 3."""
    along = found.profile(0)
    some = along.ensembles >= 3
    if some.sum() < _POINTS:
        raise Lacking(_few(found, _POINTS + 2))
    figure, axes = style.page(2, 2, height=2.8)
    records = []
    for row, temperature in zip(axes, (1.0, 3.0), strict=True):
        i = int(np.abs(along.temperature - temperature).argmin())
        law = along.laws[i]
        n, value = along.n[some], along.nll[i][some]
        records += _draw_law(
            row, n, value, law, style.DARK, "o", f"τ = {along.temperature[i]:.3g}"
        )
        row[0].set_ylabel("NLL (nats)")
        style.log_space(row[1], "NLL − c (nats)")
        row[0].set_title(f"τ = {along.temperature[i]:.3g}", loc="left")
        for axis in row:
            style.log_n(axis, float(n.max()))
    caption = (
        "NLL_n(τ) of the smallest networks at a usual and a high temperature with its"
        " law, plain and as the distance to the limit. Pool"
        f" {found.pools[0].pool.name}, {along.networks} networks,"
        f" {found.objects:,} test objects."
    )
    return Drawn(figure, caption, records)


@of_each("temperatures", "The best temperature along n", "figure 12")
def temperatures(found: Evidence) -> Drawn:
    """Draw the mean best temperature of ensembles of n networks, a line a size."""
    plane = plane_in(found)
    figure, axes = style.page(height=2.1)
    axis = axes[0, 0]
    records = []
    for color, name, size, curve in zip(
        style.ramp(len(plane)), plane.names, plane.sizes, plane.curves, strict=True
    ):
        some = curve.averaged()
        n, best = curve.n[some], curve.temperature[some]
        axis.plot(n, best, color=color, marker=".", ms=3)
        for at, value in zip(n, best, strict=True):
            records.append(
                {
                    "pool": name,
                    "size": int(size),
                    "n": int(at),
                    "temperature": float(value),
                }
            )
    style.log_n(axis, max(each["n"] for each in records))
    axis.set_ylabel("best temperature τ")
    style.key(figure, axes, list(plane.sizes), "parameters s")
    caption = (
        "The best temperature of ensembles of n networks, mean over ensembles and"
        f" halves of the test set; {_WITH}. {counts_of(found)}."
    )
    return Drawn(figure, caption, records)


def _two_laws(found: Evidence, k: int) -> Drawn:
    curve = found.curve(k)
    some = curve.averaged()
    if some.sum() < _POINTS:
        raise Lacking(_few(found, _POINTS + 2, k))
    figure, axes = style.page(1, 2, height=1.9)
    records = []
    for score, label, color, marker in (
        ("nll", "NLL, τ = 1", style.PALE, "s"),
        ("cnll", "CNLL", style.DARK, "o"),
    ):
        law = found.law(k, score)
        values = getattr(curve, score)[some]
        records += _draw_law(axes[0], curve.n[some], values, law, color, marker, label)
    for axis in axes[0]:
        style.log_n(axis, float(curve.n[some].max()))
    axes[0, 0].set_ylabel("NLL (nats)")
    style.log_space(axes[0, 1], "distance to the limit c (nats)")
    axes[0, 0].legend()
    of = found.pools[k].pool
    size = "" if of.size is None else f" of {style.short(of.size)} parameters"
    laws = [found.law(k, score) for score in ("nll", "cnll")]
    said = "; ".join(
        f"{name} = {law.limit:.4g} + {law.gain:.3g}·n^{law.exponent:.3g}"
        if np.isfinite(law.exponent)
        else f"{name}: {law.status}"
        for name, law in zip(("NLL", "CNLL"), laws, strict=True)
    )
    caption = (
        f"NLL at τ = 1 and CNLL (nats) of ensembles of n networks{size} with their"
        f" laws (lines), plain and as the distance to the limit: {said}. Pool"
        f" {of.name} of {found.name}, {curve.networks} networks,"
        f" {found.objects:,} test objects; points are means over at least three"
        f" ensembles; {_WITH}."
    )
    return Drawn(figure, caption, records)


def _draw_law(
    axes: Any, n: Any, values: Any, law: Fit, color: Any, marker: str, label: str
) -> list[dict[str, Any]]:
    """Draw points with their law, plain and as distances to the limit."""
    line = np.geomspace(1, float(n.max()), 100)
    plain, logs = axes
    plain.plot(n, values, marker, color=color, label=label, mec="none")
    plain.plot(line, law.law(line), color=color)
    above = values - law.limit
    if np.isfinite(law.exponent):
        logs.plot(n[above > 0], above[above > 0], marker, color=color, mec="none")
        logs.plot(line, law.law(line) - law.limit, color=color)
    return [
        {
            "curve": label,
            "n": int(at),
            "value": float(value),
            "law": float(law.law(float(at))),
            "above_limit": float(value - law.limit),
        }
        for at, value in zip(n, values, strict=True)
    ]


def _parameters(found: Sequence[Evidence]) -> Drawn:
    with_plane = [each for each in found if each.plane is not None]
    if not with_plane:
        raise Lacking(found[0].lacking if found else "there are no stores")
    figure, axes = style.page(2, 2, height=2.8)
    records: list[dict[str, Any]] = []
    greys = [style.DARK, style.MIDDLE, style.PALE, "#d0a000", "#884488", "#446688"]
    every: list[float] = []
    for i, each in enumerate(with_plane):
        plane = plane_in(each)
        shown = [k for k in range(len(plane)) if each.curve(k).averaged().sum() >= 4]
        if not shown:
            continue
        laws = [each.law(k) for k in shown]
        sizes = plane.sizes[shown]
        every += list(sizes)
        for axis, (name, _) in zip(axes.flat, _PARAMETERS, strict=True):
            axis.plot(
                sizes,
                [getattr(law, name) for law in laws],
                marker=style.MARKERS[i % len(style.MARKERS)],
                color=greys[i % len(greys)],
                ls=":" if each.unregularized else "-",
                label=each.name,
            )
        records += [
            _law_record(each, k, law) for k, law in zip(shown, laws, strict=True)
        ]
    if not records:
        raise Lacking(_few(with_plane[0], _POINTS + 2))
    for axis, (_, label) in zip(axes.flat, _PARAMETERS, strict=True):
        axis.set_ylabel(label)
        style.log_size(axis, every, label="")
    for axis in axes[1]:
        axis.set_xlabel("parameters s")
    axes[1, 0].axhline(-1, color="0.4", lw=0.7, ls="--")
    if len(with_plane) > 1:
        lines = axes[0, 0].get_lines()
        figure.legend(
            handles=lines, loc="outside upper center", ncols=min(2, len(lines))
        )
    caption = (
        "Laws c + b·n^a of CNLL_n (nats) for networks of s parameters, and how well"
        f" they fit; {_WITH}. Dotted lines: trained without regularization. The dashed"
        " line is the exponent of theory, -1. "
        + "; ".join(counts_of(each) for each in with_plane)
        + "."
    )
    return Drawn(figure, caption, records)


def _law_record(
    found: Evidence, k: int, law: Fit, tau: float | None = None
) -> dict[str, Any]:
    pool = found.pools[k].pool
    record: dict[str, Any] = {"store": found.name, "pool": pool.name, "size": pool.size}
    if tau is not None:
        record["temperature"] = float(tau)
    names = ("limit", "gain", "exponent", "rmse", "rmse_log2")
    record |= {name: getattr(law, name) for name in names}
    return {**record, "status": str(law.status)}


def _few(found: Evidence, needed: int, k: int = 0) -> str:
    curve: Curve = found.curve(k)
    return (
        f"pool {found.pools[k].pool.name!r} of {found.name} has {curve.networks}"
        f" networks, too few for a law along n; train at least {needed}"
    )
