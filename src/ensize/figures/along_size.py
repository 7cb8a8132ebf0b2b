"""Figures along the size of the networks, and along the budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.figures import style
from ensize.figures.drawings import BEFORE, Drawn, counts_of, of_each, plane_in
from ensize.figures.lines import draw_law, law_said

if TYPE_CHECKING:
    from ensize.evidence import Evidence
    from ensize.laws import Fit
    from ensize.planes import Plane

# Sizes of ensembles that are told apart.
_ENSEMBLES = (1, 2, 4, 8, 16)


@of_each("sizes", "NLL and CNLL along the size", "figures 4 and 16")
def sizes(found: Evidence) -> Drawn:
    """Draw NLL_s and CNLL_s of one network with its law, and of ensembles."""
    plane = plane_in(found)
    cut = plane.along_size(1)
    figure, axes = style.page(2, 2, height=3.2)
    records: list[dict[str, Any]] = []
    alone = _at(plane, 1, "nll")
    top, bottom = axes
    top[0].plot(plane.sizes, alone, color=style.PALE, marker="s", label="NLL, τ = 1")
    drawn = draw_points(top, cut.size, cut.value, cut.law, style.DARK)
    top[0].get_lines()[1].set_label("CNLL")
    top[0].vlines(cut.size, cut.low, cut.high, color=style.DARK, lw=0.7)
    style.shared_legend(figure, top[0].get_lines()[:2])
    top[0].set_ylabel("NLL of one (nats)")
    style.log_space(top[1], "distance to limit (nats)")
    if cut.law is None:
        style.say_in(top[1], "no law holds")
    several = [n for n in _ENSEMBLES if (plane.networks >= n).sum() > 1]
    for axis, score in zip(bottom, ("nll", "cnll"), strict=True):
        for color, n in zip(style.ramp(len(several)), several, strict=True):
            values = _at(plane, n, score)
            axis.plot(plane.sizes, values, color=color, marker=".", ms=3)
            records += [
                {"score": score, "n": n, "size": int(s), "value": float(value)}
                for s, value in zip(plane.sizes, values, strict=True)
                if np.isfinite(value)
            ]
    bottom[0].set_ylabel("NLL, τ = 1 (nats)")
    bottom[1].set_ylabel("CNLL (nats)")
    for axis in axes.flat:
        style.log_size(axis, plane.sizes.tolist(), label="")
    for axis in bottom:
        axis.set_xlabel("parameters s")
    style.key(figure, bottom, several, "networks n")
    of_law = {int(s): each for s, each in zip(cut.size, drawn, strict=True)}
    for each in records:
        if (each["score"], each["n"]) == ("cnll", 1):
            each |= {
                name: of_law[each["size"]][name] for name in ("law", "above_limit")
            }
    law = "no law" if cut.law is None else law_said("CNLL", cut.law, "s")
    caption = (
        "NLL at τ = 1 and CNLL (nats) of networks of s parameters: of one network,"
        f" plain and as the distance to the limit of its law ({law}; a law"
        f" {cut.verdict.code}), and of ensembles of n; bars are intervals of 90 %;"
        f" {BEFORE}. {counts_of(found)}."
    )
    return Drawn(figure, caption, records)


@of_each(
    "budgets",
    "CNLL along the budget, the envelope of curves",
    "figures 5 and 17, left and middle",
)
def budgets(found: Evidence) -> Drawn:
    """Draw the curves of all sizes by their budget n·s, and their envelope's law."""
    plane = plane_in(found)
    cut = plane.along_budget()
    figure, axes = style.page(1, 2, height=2.2)
    records: list[dict[str, Any]] = []
    for color, size, name, curve in zip(
        style.ramp(len(plane)), plane.sizes, plane.names, plane.curves, strict=True
    ):
        total = size * curve.n
        axes[0, 0].plot(total, curve.cnll, color=color, lw=0.8)
        records += [
            {"line": name, "n": int(n), "budget": float(b), "cnll": float(value)}
            for n, b, value in zip(curve.n, total, curve.cnll, strict=True)
        ]
    style_of = {"color": "black", "marker": "."}
    (best,) = axes[0, 0].plot(
        cut.budget, cut.value, ls="none", label="best split", **style_of
    )
    drawn = draw_points(axes[0], cut.budget, cut.value, cut.law, "black", again=False)
    if cut.law is None:
        style.say_in(axes[0, 1], "no law holds")
    records += [
        {
            "line": "envelope",
            "n": int(n),
            "budget": float(budget),
            "cnll": float(value),
            **{name: each[name] for name in ("law", "above_limit")},
        }
        for n, budget, value, each in zip(
            cut.n, cut.budget, cut.value, drawn, strict=True
        )
    ]
    for axis in axes.flat:
        style.log_size(axis, cut.budget.tolist(), label="budget n·s")
    reach = float(cut.budget[-1])
    axes[0, 0].set_xlim(float(plane.sizes[0]) / 1.3, 1.3 * reach)
    style.log_y(axes[0, 0], "CNLL (nats)")
    style.log_space(axes[0, 1], "distance to limit (nats)")
    style.shared_legend(figure, [best])
    style.key(figure, axes, plane.sizes.tolist(), "parameters s")
    law = "no law" if cut.law is None else law_said("CNLL", cut.law, "B")
    caption = (
        "CNLL (nats) of ensembles by their parameters in all, B = n·s, a line for each"
        " size of networks, with the best split of each budget (black), and the law of"
        f" these, plain and as the distance to its limit ({law}; a law"
        f" {cut.verdict.code}); {BEFORE}. {counts_of(found)}."
    )
    return Drawn(figure, caption, records)


def draw_points(
    axes: Any, at: Any, values: Any, law: Fit | None, color: str, *, again: bool = True
) -> list[dict[str, Any]]:
    """Draw points with a law, if there is one."""
    if law is not None:
        return draw_law(axes, at, values, law, color=color, ms=2.6 if again else 2)
    if again:
        axes[0].plot(at, values, "o", color=color)
    return [{"value": float(x), "law": None, "above_limit": None} for x in values]


def _at(plane: Plane, n: int, score: str) -> Any:
    """Read a score of n networks of each size; NaN where there are fewer."""
    return np.array(
        [
            getattr(curve, score)[curve.n == n][0] if curve.networks >= n else np.nan
            for curve in plane.curves
        ]
    )
