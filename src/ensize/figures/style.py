"""Style: how figures look, so that they can be read in a column and in gray."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    MaxNLocator,
    NullLocator,
    StrMethodFormatter,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize

Floats = np.ndarray[Any, np.dtype[np.float64]]

# The width of a column, in inches.
WIDTH = 3.3
_TICKS = 6
RC: Any = {
    "font.family": "DejaVu Sans",  # comes with the library: the same everywhere
    "font.size": 7,
    "axes.titlesize": 7,
    "axes.labelsize": 7,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "0.9",
    "grid.linewidth": 0.5,
    "xtick.labelsize": _TICKS,
    "ytick.labelsize": _TICKS,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.fontsize": 6,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "lines.linewidth": 1.0,
    "lines.markersize": 2.6,
    "figure.dpi": 100,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,
    # The same figure, the same bytes.
    "svg.hashsalt": "ensize",
    "svg.fonttype": "path",
}
# Dark to light, and none so light that it is lost on white: ordered in gray, too.
_RAMP = mpl.colormaps["viridis"]
DARK, MIDDLE, PALE = "#33204f", "#21918c", "#9a9a9a"
# What tells series without an order apart: color, and where there is none lightness
# and marker.
_SERIES = (DARK, MIDDLE, PALE, "#d0a000", "#884488", "#446688")
_MARKERS = "osD^vP"
# Round numbers in a decade, few to many.
_STEPS = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0))
_UNITS = (("G", 1e9), ("M", 1e6), ("k", 1e3))


def page(rows: int = 1, columns: int = 1, *, height: float = 2.2) -> tuple[Figure, Any]:
    """Make an empty figure as wide as a column; its axes are an array."""
    layout = ConstrainedLayoutEngine(w_pad=0.03, h_pad=0.03)
    figure = Figure(figsize=(WIDTH, height), layout=layout)
    axes = figure.subplots(rows, columns, squeeze=False)
    for each in axes.flat:
        # How many ticks there are depends on it, even when the figure is saved.
        each.tick_params(labelsize=_TICKS)
    return figure, axes


def short(number: float, digits: int = 3) -> str:
    """Write a count of parameters in few characters.

    >>> short(15_300_000), short(61_706), short(640)
    ('15.3M', '61.7k', '640')
    """
    for unit, size in _UNITS:
        if number >= 0.9995 * size:
            return f"{number / size:.{digits}g}{unit}"
    return f"{number:.{digits}g}"


def ramp(count: int) -> list[Any]:
    """Choose colors for an ordered sequence, the last one the darkest."""
    return [_RAMP(x) for x in np.linspace(0.86, 0.0, max(count, 1))]


def series(index: int) -> dict[str, Any]:
    """Choose how one of a few series without an order looks.

    Lightness and marker tell them apart, too, so that color is not needed.
    """
    return {
        "color": _SERIES[index % len(_SERIES)],
        "marker": _MARKERS[index % len(_MARKERS)],
    }


def shared_legend(figure: Figure, handles: Sequence[Any]) -> None:
    """Put a legend of all axes above them."""
    longest = max(len(str(each.get_label())) for each in handles)
    # So many letters fit into a column, with seven for each handle.
    columns = max(1, min(len(handles), 66 // (longest + 7)))
    figure.legend(handles=handles, loc="outside upper center", ncols=columns)


def say_in(axes: Axes, text: str) -> None:
    """Say in place of a drawing why there is none."""
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)
    axes.set_axis_off()


def key(
    figure: Figure, axes: Any, values: Sequence[float], label: str, *, digits: int = 3
) -> None:
    """Draw the key to the colors of an ordered sequence beside the axes."""
    count = len(values)
    norm = BoundaryNorm(np.arange(count + 1) - 0.5, count)
    shown = ScalarMappable(norm, ListedColormap(ramp(count)))
    bar = figure.colorbar(shown, ax=axes, aspect=30, pad=0.02, fraction=0.06)
    # No more labels than have room.
    every = math.ceil(count / 9)
    ticks = np.arange(count - 1, -1, -every)[::-1]
    bar.set_ticks(list(ticks), labels=[short(values[i], digits) for i in ticks])
    bar.ax.tick_params(length=0, labelsize=_TICKS)
    bar.ax.minorticks_off()
    bar.set_label(label)


def log_n(
    axes: Axes, largest: float, *, least: float = 1, label: str = "networks n"
) -> None:
    """Make the number of networks a logarithmic axis with whole numbers on it."""
    axes.set_xscale("log", base=2)
    first, last = math.ceil(math.log2(least)), math.floor(math.log2(largest))
    powers = [2.0**i for i in range(first, last + 1)]
    _plain(axes.xaxis, powers or [least], 6)
    axes.set_xlabel(label)


def log_count(axes: Axes) -> None:
    """Make a number of networks the other axis, logarithmic with whole numbers."""
    axes.set_yscale("log", base=2)
    high = max(axes.get_ylim()[1], 2.4)
    axes.set_ylim(0.7, high)
    _plain(axes.yaxis, [2.0**i for i in range(math.ceil(math.log2(high)))], 8)


def log_x(axes: Axes, ticks: Sequence[float]) -> None:
    """Make an axis logarithmic with plain numbers where they are wanted."""
    axes.set_xscale("log")
    _plain(axes.xaxis, ticks, len(ticks))


def log_size(axes: Axes, sizes: Sequence[float], *, label: str) -> None:
    """Make parameters a logarithmic axis with round and short numbers on it."""
    axes.set_xscale("log")
    _plain(axes.xaxis, _round_numbers(0.9 * min(sizes), 1.1 * max(sizes), 2), 4)
    axes.set_xlabel(label)


def log_y(axes: Axes, label: str) -> None:
    """Make the other axis logarithmic, with plain numbers."""
    axes.set_yscale("log")
    axes.set_ylabel(label)
    _plain(axes.yaxis, _round_numbers(*axes.get_ylim(), 3), 6)


def log_space(axes: Axes, label: str) -> None:
    """Make an axis of distances to a limit logarithmic, in powers of two if it is wide.

    Of what is there already: to be called when all is drawn.
    """
    axes.set_yscale("log", base=2)
    axes.set_ylabel(label)
    low, high = axes.get_ylim()
    if high < 8 * low:
        _plain(axes.yaxis, _round_numbers(low, high, 3), 6)


def heat(
    axes: Axes,
    n: Any,
    sizes: Any,
    values: Floats,
    *,
    norm: Normalize,
    colors: str = "viridis",
) -> Any:
    """Draw values over (n, s), both logarithmic; white where there are none."""
    shown = axes.pcolormesh(
        _edges(n), _edges(sizes), np.ma.masked_invalid(values), norm=norm, cmap=colors
    )
    log_n(axes, float(n.max()), least=float(n.min()))
    axes.set_yscale("log")
    _plain(axes.yaxis, list(sizes), 8)
    axes.set_ylabel("parameters s")
    axes.grid(visible=False)
    return shown


def budgets(axes: Axes, n: Any, sizes: Any) -> None:
    """Draw lines of equal n·s over a map."""
    reach, edges = np.array([1.0, 4.0 * n.max()]), (axes.get_xlim(), axes.get_ylim())
    for total in sizes[-1] * 4.0 ** np.arange(-20, 20):
        axes.plot(reach, total / reach, color="white", lw=0.6, ls=(0, (4, 3)))
    axes.set_xlim(*edges[0])
    axes.set_ylim(*edges[1])


def bar(
    figure: Figure, shown: Any, axes: Any, label: str, *, below: bool = False
) -> None:
    """Draw the scale of a map, its numbers plain."""
    under = shown.get_array().min() < shown.norm.vmin
    where: Any = {"aspect": 25, "pad": 0.02, "fraction": 0.07}
    where |= {"extend": "min" if under else "neither"}
    if below:
        where |= {"orientation": "horizontal", "pad": 0.04}
    found = figure.colorbar(shown, ax=axes, **where)
    found.set_label(label)
    found.ax.tick_params(labelsize=_TICKS)
    if below:
        found.locator = MaxNLocator(3)
        found.formatter = StrMethodFormatter("{x:.4g}")
        found.update_ticks()
    if isinstance(shown.norm, LogNorm):
        low, high = shown.norm.vmin or 1.0, shown.norm.vmax or 1.0
        inside = _round_numbers(low, high, 3)
        found.set_ticks(inside, labels=[f"{each:.2g}" for each in inside])
        found.ax.minorticks_off()


def scale_of(values: Floats) -> Normalize:
    """Choose the scale of a heat map of values above 0: logarithmic if it is wide."""
    there = values[np.isfinite(values) & (values > 0)]
    low, high = float(there.min()), float(there.max())
    if high > 3 * low:
        return LogNorm(low, high)
    return mpl.colors.Normalize(low, high)


def log_scale_of(values: Floats) -> Normalize:
    """Choose a logarithmic scale for errors, whose smallest are but luck."""
    there = values[np.isfinite(values) & (values > 0)]
    high = float(there.max())
    low = max(float(there.min()), high / 100)
    return LogNorm(low if low < high else high / 2, high)


def cell(value: Any) -> str:
    """Write a number of a table; a dash where it is not known.

    >>> cell(15_300_000), cell(0.03127), cell(float("nan"))
    ('15.3M', '0.0313', '–')
    """
    return "–" if math.isnan(value) else short(value)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Figure:
    """Make a figure of a table, its numbers flush right."""
    lines = len(rows) + 1
    figure = Figure(figsize=(WIDTH, 0.17 * lines + 0.1))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(0, len(head))
    axes.set_ylim(lines + 0.2, -0.4)
    for i, row in enumerate([head, *rows]):
        for k, text in enumerate(row):
            axes.text(k + 0.92, i + 0.35, text, ha="right", va="center", fontsize=7)
    for at, width in ((-0.25, 0.8), (0.9, 0.5), (lines + 0.0, 0.8)):
        axes.axhline(at, 0.02, 0.98, color="black", lw=width)
    return figure


def _round_numbers(low: float, high: float, least: int) -> list[float]:
    """List round numbers between two, for a logarithmic scale, at least so many.

    >>> _round_numbers(2, 40, 3), _round_numbers(0.5, 1, 3)
    ([3.0, 10.0, 30.0], [0.6, 0.75, 0.9])
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in _STEPS:
        numbers = [m * 10.0**decade for decade in decades for m in steps]
        inside = [each for each in numbers if low <= each <= high]
        if len(inside) >= least:
            return inside
    # So narrow a scale is nearly linear.
    evenly = MaxNLocator(least + 1).tick_values(low, high)
    return [float(f"{each:.6g}") for each in evenly if low <= each <= high]


def _edges(centers: Any) -> Floats:
    """Put edges half way, on a logarithmic scale, between neighbors."""
    logs = np.log(np.asarray(centers, np.float64))
    if len(logs) == 1:
        return np.exp([logs[0] - 0.35, logs[0] + 0.35])
    middle = (logs[1:] + logs[:-1]) / 2
    first, last = 2 * logs[0] - middle[0], 2 * logs[-1] - middle[-1]
    edges: Floats = np.exp([first, *middle, last])
    return edges


def _plain(axis: Any, ticks: Sequence[float], most: int) -> None:
    every = math.ceil(len(ticks) / most)
    axis.set_major_locator(FixedLocator(list(ticks)[::every]))
    axis.set_major_formatter(FuncFormatter(lambda x, _: short(x)))
    axis.set_minor_locator(NullLocator())
