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
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize

Floats = np.ndarray[Any, np.dtype[np.float64]]

# The width of a column, in inches.
WIDTH = 3.3
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
    "xtick.labelsize": 6,
    "ytick.labelsize": 6,
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
    "svg.fonttype": "none",
}
# Dark to light, and none so light that it is lost on white: ordered in gray, too.
_RAMP = mpl.colormaps["viridis"]
DARK, MIDDLE, PALE = "#33204f", "#21918c", "#9a9a9a"
# What tells series apart where their color does not.
MARKERS = "osD^vP"
_UNITS = (("G", 1e9), ("M", 1e6), ("k", 1e3))


def page(rows: int = 1, columns: int = 1, *, height: float = 2.2) -> tuple[Figure, Any]:
    """Make an empty figure as wide as a column; its axes are an array."""
    layout = ConstrainedLayoutEngine(w_pad=0.03, h_pad=0.03)
    figure = Figure(figsize=(WIDTH, height), layout=layout)
    return figure, figure.subplots(rows, columns, squeeze=False)


def short(number: float) -> str:
    """Write a count of parameters in few characters.

    >>> short(15_300_000), short(61_706), short(640)
    ('15.3M', '61.7k', '640')
    """
    for unit, size in _UNITS:
        if number >= 0.9995 * size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


def ramp(count: int) -> list[Any]:
    """Choose colors for an ordered sequence, the last one the darkest."""
    return [_RAMP(x) for x in np.linspace(0.86, 0.0, max(count, 1))]


def key(figure: Figure, axes: Any, values: Sequence[float], label: str) -> None:
    """Draw the key to the colors of an ordered sequence beside the axes."""
    count = len(values)
    norm = BoundaryNorm(np.arange(count + 1) - 0.5, count)
    shown = ScalarMappable(norm, ListedColormap(ramp(count)))
    bar = figure.colorbar(shown, ax=axes, aspect=30, pad=0.02, fraction=0.06)
    # No more labels than have room.
    every = math.ceil(count / 9)
    ticks = np.arange(count - 1, -1, -every)[::-1]
    bar.set_ticks(list(ticks), labels=[short(values[i]) for i in ticks])
    bar.ax.tick_params(length=0)
    bar.ax.minorticks_off()
    bar.set_label(label)


def log_n(axes: Axes, largest: float, *, label: str = "networks n") -> None:
    """Make the number of networks a logarithmic axis with whole numbers on it."""
    axes.set_xscale("log", base=2)
    doublings = range(int(math.log2(max(largest, 1))) + 1)
    _plain(axes.xaxis, [2.0**i for i in doublings], 6)
    axes.set_xlabel(label)


def log_size(axes: Axes, sizes: Sequence[float], *, label: str) -> None:
    """Make parameters a logarithmic axis with short numbers on it."""
    axes.set_xscale("log")
    low, high = math.log10(min(sizes)), math.log10(max(sizes))
    steps = [10.0**i for i in range(math.ceil(low - 0.05), math.floor(high + 0.05) + 1)]
    _plain(axes.xaxis, steps if len(steps) > 1 else list(sizes), 5)
    axes.set_xlabel(label)


def log_y(axes: Axes, label: str) -> None:
    """Make the other axis logarithmic, with plain numbers where it spans few."""
    axes.set_yscale("log")
    axes.set_ylabel(label)
    low, high = axes.get_ylim()
    if high / low < 40:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for steps in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2, 3, 4, 5, 7)):
            ticks = [m * 10.0**d for d in decades for m in steps]
            inside = [each for each in ticks if low <= each <= high]
            if len(inside) > 2:
                break
        _plain(axes.yaxis, inside, 7)


def log_space(axes: Axes, label: str) -> None:
    """Label a logarithmic axis of distances to a limit, in powers of two."""
    axes.set_yscale("log", base=2)
    axes.set_ylabel(label)


def heat(
    axes: Axes,
    n: Floats,
    sizes: Floats,
    values: Floats,
    *,
    norm: Normalize,
    ramp_of: str = "viridis",
) -> Any:
    """Draw values over (n, s), both logarithmic; white where there are none."""
    shown = axes.pcolormesh(
        _edges(n),
        _edges(sizes),
        np.ma.masked_invalid(values),
        norm=norm,
        cmap=ramp_of,
        rasterized=False,
    )
    log_n(axes, float(n.max()))
    axes.set_yscale("log")
    every = math.ceil(len(sizes) / 8)
    _plain(axes.yaxis, list(sizes[::every]), len(sizes))
    axes.set_ylabel("parameters s")
    axes.grid(visible=False)
    return shown


def bar(figure: Figure, shown: Any, axes: Any, label: str) -> None:
    """Draw the scale of a heat map, its numbers plain."""
    found = figure.colorbar(shown, ax=axes, aspect=25, pad=0.02, fraction=0.07)
    found.set_label(label)
    if isinstance(shown.norm, LogNorm):
        low, high = shown.get_clim()
        if high / low < 40:
            decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)))
            steps = [m * 10.0**d for d in decades for m in (1, 1.5, 2, 3, 4, 5, 7)]
            inside = [each for each in steps if low <= each <= high]
            found.set_ticks(inside, labels=[f"{each:.2g}" for each in inside])
            found.ax.minorticks_off()


def scale_of(values: Floats) -> Normalize:
    """Choose the scale of a heat map of values above 0: logarithmic if it is wide."""
    there = values[np.isfinite(values) & (values > 0)]
    low, high = float(there.min()), float(there.max())
    if high > 3 * low:
        return LogNorm(low, high)
    return mpl.colors.Normalize(low, high)


def _edges(centers: Floats) -> Floats:
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


def plain_x(axes: Axes, ticks: Sequence[float]) -> None:
    """Write plain numbers along a logarithmic axis."""
    _plain(axes.xaxis, ticks, len(ticks))
