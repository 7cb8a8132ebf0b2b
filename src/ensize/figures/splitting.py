"""Figures of splits: what n networks of a budget score against a single one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.figures import style
from ensize.figures.drawings import BEFORE, Drawn, Lacking, counts_of, of_each, plane_in
from ensize.planes.budgets import candidates, measured
from ensize.planes.readings import sense

if TYPE_CHECKING:
    from ensize.evidence import Evidence
    from ensize.planes import Plane

# So many budgets are told apart.
_BUDGETS = 7
# Splits are drawn that use so much of their budget: of others, such as a single network
# half as large, nothing is learned.
_USED = 0.95


@of_each("splits", "The splits of each budget, in CNLL", "figures 5 and 17, right")
def splits(found: Evidence) -> Drawn:
    """Draw CNLL of the splits of each budget, a line a budget."""
    return _splits(found, "cnll")


@of_each("splits-accuracy", "The splits of each budget, in accuracy", "figure 18")
def splits_accuracy(found: Evidence) -> Drawn:
    """Draw the accuracy of the splits of each budget, a line a budget."""
    plane = plane_in(found)
    if any(np.isnan(curve.accuracy).any() for curve in plane.curves):
        raise Lacking(
            f"{found.name} holds sketches, which know the probability of the true class"
            " only, so that accuracy is unknown: record logits"
        )
    return _splits(found, "accuracy")


def budgets_of(plane: Plane) -> list[float]:
    """Choose budgets of which a single network was measured, and splits as well."""
    able = plane.sizes[plane.sizes >= 2 * plane.sizes[0]]
    every = -(-len(able) // _BUDGETS)
    return [float(each) for each in able[::-1][::every][::-1]]


def _splits(found: Evidence, score: str) -> Drawn:
    plane = plane_in(found)
    budgets = budgets_of(plane)
    if not budgets:
        raise Lacking(
            f"no network of {found.name} has twice the parameters of another, so that"
            " no budget can be split; train more sizes"
        )
    figure, axes = style.page(height=2.4)
    axis = axes[0, 0]
    records: list[dict[str, Any]] = []
    percent = 100 if score == "accuracy" else 1
    for color, budget in zip(style.ramp(len(budgets)), budgets, strict=True):
        known = candidates(plane, budget, score, "parameters", measured(plane, score))
        listed = [each for each in known if each.total >= _USED * budget]
        n = np.array([each.n for each in listed])
        value = percent * np.array([each.reading.value for each in listed])
        best = int(np.argmin(sense(score) * value))
        axis.plot(n, value, color=color, marker=".", ms=3)
        axis.plot(n[best], value[best], "o", ms=6, mfc="none", mec=color)
        for i, each in enumerate(listed):
            low, high = each.reading.interval
            records.append(
                {
                    "budget": budget,
                    "n": each.n,
                    "size": each.size,
                    "pool": each.pool or "between",
                    score: float(each.reading.value),
                    "low": low,
                    "high": high,
                    "best": i == best,
                }
            )
    style.log_n(axis, max(each["n"] for each in records))
    axis.set_ylabel("accuracy (%)" if score == "accuracy" else "CNLL (nats)")
    style.key(figure, axis, budgets, "budget n·s (parameters)")
    what = "Accuracy (%)" if score == "accuracy" else "CNLL (nats)"
    single = sum(each["best"] and each["n"] == 1 for each in records)
    caption = (
        f"{what} of the splits of each budget of parameters into n networks; a ring"
        f" marks the best, which is a single network for {single} of {len(budgets)}"
        " budgets. Between two measured sizes it is interpolated;"
        f" {BEFORE}. {counts_of(found)}."
    )
    return Drawn(figure, caption, records)
