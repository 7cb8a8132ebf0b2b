"""Figures of predictions: how far they are off, of ensembles and of splits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.checks import InputError
from ensize.figures import style
from ensize.figures.drawings import BEFORE, Drawn, Lacking, counts_of, of_each, plane_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ensize.evidence import Evidence
    from ensize.planes import Plane

    # n, what is true there, and how far the prediction is off, of pools by their index.
    Rows = Mapping[int, tuple[Any, Any, Any]]

_METHODS = ("paper", "robust")


@of_each("errors-of-all", "Errors of predictions from all", "figure 19")
def errors_of_all(found: Evidence) -> Drawn:
    """Draw the error of CNLL predicted from n = 1 … 4, all networks at hand."""
    plane = plane_in(found)
    rows = {}
    # Pools have their last n to themselves, which would leave gaps.
    common = plane.curves[int(plane.networks.argmax())].n
    for k in range(len(plane)):
        n, true, predicted = found.from_all(k)
        some = np.isin(n, common)
        rows[k] = (n[some], true[some], np.abs(predicted - true)[some])
    if not any(len(n) for n, _, _ in rows.values()):
        raise Lacking(
            f"the pools of {found.name} have at most {plane.networks.max()} networks,"
            " but predictions are of more than four; train at least 8 of a size"
        )
    figure, axes = style.page(height=2.1)
    records = _errors(figure, axes, plane, {"paper": rows})
    caption = (
        "Error of CNLL (nats) of n networks as the paper's law predicts it from"
        " ensembles of one to four, averaged over all networks at hand:"
        f" {_relative(records)} of CNLL; {BEFORE}. {counts_of(found)}."
    )
    return Drawn(figure, caption, records)


@of_each("errors-of-six", "Errors of predictions from six", "figures 6 and 20, left")
def errors_of_six(found: Evidence) -> Drawn:
    """Draw the root mean squared error of CNLL predicted from six networks."""
    plane = plane_in(found)
    tried = {k: found.from_six(k) for k in range(len(plane))}
    tests = {k: each for k, each in tried.items() if each is not None}
    if not tests:
        raise Lacking(
            f"the pools of {found.name} have at most {plane.networks.max()} networks,"
            " but six predict and others than these must tell the truth; train at least"
            " 12 of a size"
        )
    rows = {
        method: {
            k: (each.n, each.truth, each.rmse(method).value)
            for k, each in tests.items()
        }
        for method in _METHODS
    }
    figure, axes = style.page(1, 2, height=2.1)
    records = _errors(figure, axes, plane, rows)
    said = []
    for axis, method in zip(axes[0], _METHODS, strict=True):
        axis.set_title(f"method {method}")
        own = [each for each in records if each["method"] == method]
        said.append(f"by method {method} {_relative(own)} of CNLL")
    caption = (
        "Root mean squared error of CNLL (nats) of n networks as predicted from six:"
        f" {', '.join(said)}. Over {_range([each.sets for each in tests.values()])}"
        " sets of six without a network in common; the truth is what all other"
        f" networks show, of at most 64; {BEFORE}. {counts_of(found)}."
    )
    return Drawn(figure, caption, records)


@of_each("optimal-splits", "Predicted and true best splits", "figures 6 and 20, right")
def optimal_splits(found: Evidence) -> Drawn:
    """Draw how many networks the best split has, truly and as six predict it."""
    plane_in(found)
    figure, axes = style.page(height=2.3)
    axis = axes[0, 0]
    records: list[dict[str, Any]] = []
    said = []
    for method in _METHODS:
        try:
            tried = found.optimal_splits(method)
        except InputError as error:
            raise Lacking(f"{found.name}: {error}") from error
        records += [{"method": method, **each} for each in tried.records()]
        shares = tried.shares
        said.append(
            f"by method {method} {shares['exact']:.0%} exactly and"
            f" {shares['neighbor']:.0%} next door"
        )
    for i, (key, method, label) in enumerate(
        (
            ("true", "paper", "true"),
            ("predicted", "paper", "method paper"),
            ("predicted", "robust", "method robust"),
        )
    ):
        those = [each for each in records if each["method"] == method]
        budget, mean = (
            np.array([each[name] for each in those])
            for name in ("budget", f"{key}_mean")
        )
        spread = np.nan_to_num([each[f"{key}_sd"] for each in those])
        axis.errorbar(
            budget * 1.05 ** (i - 1),  # side by side
            mean,
            # No ensemble has less than a network.
            yerr=[np.minimum(spread, mean - 0.75), spread],
            elinewidth=0.7,
            ms=4 - 0.5 * i,
            label=label,
            **style.series((2, 0, 1)[i]),
        )
    budgets = sorted({each["budget"] for each in records})
    style.log_size(axis, budgets, label="budget n·s (parameters)")
    style.log_count(axis)
    axis.set_ylabel("networks n of the best split")
    style.shared_legend(figure, axis.get_legend_handles_labels()[0])
    caption = (
        "Networks of the best split of each budget of parameters, as the networks not"
        " in a set of six show it, and as six networks of each size predict it:"
        f" {', '.join(said)}. Means and standard deviations over"
        f" {_range([each['sets'] for each in records])} sets of six; {BEFORE}."
        f" {counts_of(found)}."
    )
    return Drawn(figure, caption, records)


def _errors(
    figure: Any, axes: Any, plane: Plane, rows_of: Mapping[str, Rows]
) -> list[dict[str, Any]]:
    """Draw errors over n and s, a map for each method, all on one scale."""
    some = next(iter(rows_of.values()))
    n = np.unique(np.concatenate([at for at, _, _ in some.values()]))
    maps = np.full((len(rows_of), len(plane), len(n)), np.nan)
    records = []
    for table, (method, rows) in zip(maps, rows_of.items(), strict=True):
        for k, (at, true, error) in rows.items():
            table[k, np.searchsorted(n, at)] = error
            records += [
                {
                    "method": method,
                    "pool": plane.names[k],
                    "size": int(plane.sizes[k]),
                    "n": int(one),
                    "cnll": float(value),
                    "error": float(off),
                }
                for one, value, off in zip(at, true, error, strict=True)
            ]
    norm = style.log_scale_of(maps)
    for axis, table in zip(axes[0], maps, strict=True):
        shown = style.heat(axis, n, plane.sizes, table, norm=norm)
    for axis in axes[0, 1:]:
        axis.set_ylabel("")
        axis.tick_params(labelleft=False)
    style.bar(figure, shown, axes, "error of CNLL (nats)")
    return records


def _relative(records: Sequence[dict[str, Any]]) -> str:
    """Say how large errors are beside CNLL."""
    parts = sorted(each["error"] / each["cnll"] for each in records)
    return f"{parts[len(parts) // 2]:.2%} in the middle and at most {parts[-1]:.2%}"


def _range(counts: Sequence[float]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:.0f}" if low == high else f"{low:.0f} to {high:.0f}"
