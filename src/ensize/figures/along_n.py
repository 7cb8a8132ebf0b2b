"""Figures along the number of networks: curves, and their laws along the size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ensize.figures import style
from ensize.figures.drawings import (
    BEFORE,
    POINTS,
    Drawn,
    Lacking,
    counts_of_all,
    of_all,
    of_each,
    plane_in,
    too_few,
    unregularized_in,
    with_planes,
)
from ensize.figures.lines import (
    PARAMETERS,
    RMSE_SAYS,
    draw_law,
    law_record,
    law_said,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ensize.evidence import Evidence


@of_each(
    "curves", "NLL and CNLL along n, with their laws", "figure 1, middle and right"
)
def curves(found: Evidence) -> Drawn:
    """Draw NLL_n and CNLL_n of one pool with their laws, plain and log-log."""
    return _two_laws(found)


@of_each("elsewhere", "Ensembles recorded elsewhere", "figure 21 (ImageNet)")
def elsewhere(found: Evidence) -> Drawn:
    """Draw NLL_n and CNLL_n of a pool that no study of ours made."""
    if found.study:
        raise Lacking(
            f"{found.name} was made by a study; this figure is of networks recorded"
            " elsewhere: record some with Store.add or Store.record"
        )
    return _two_laws(found)


@of_all("calibrated", "Laws of CNLL_n along the size", "figures 3 and 13")
def calibrated(found: Sequence[Evidence]) -> Drawn:
    """Draw limit, gain, exponent and RMSE of the laws of CNLL_n against the size."""
    return _parameters(with_planes(found))


@of_all("unregularized-laws", "Laws of CNLL_n without regularization", "figure 15")
def unregularized_laws(found: Sequence[Evidence]) -> Drawn:
    """Draw the laws of CNLL_n where networks were trained without regularization."""
    return _parameters(unregularized_in(found))


def _two_laws(found: Evidence) -> Drawn:
    k = found.usual
    curve = found.curve(k)
    some = curve.averaged()
    if some.sum() < POINTS:
        raise too_few(found, POINTS + 2, k)
    figure, axes = style.page(1, 2, height=1.9)
    records, said = [], []
    n = curve.n[some]
    for score, label, color, marker in (
        ("nll", "NLL, τ = 1", style.PALE, "s"),
        ("cnll", "CNLL", style.DARK, "o"),
    ):
        law, values = found.law(k, score), getattr(curve, score)[some]
        drawn = draw_law(axes[0], n, values, law, color=color, marker=marker)
        axes[0, 0].get_lines()[-2].set_label(label)
        records += [
            {"score": score, "n": int(at), "ensembles": int(count), **each}
            for at, count, each in zip(n, curve.ensembles[some], drawn, strict=True)
        ]
        said.append(law_said(score.upper(), law))
    for axis in axes[0]:
        style.log_n(axis, float(n.max()))
    axes[0, 0].set_ylabel("NLL (nats)")
    style.log_space(axes[0, 1], "distance to limit (nats)")
    style.shared_legend(figure, axes[0, 0].get_lines()[::2])
    of = found.pools[k].pool
    size = "" if of.size is None else f" of {style.short(of.size)} parameters"
    caption = (
        f"NLL at τ = 1 and CNLL (nats) of ensembles of n networks{size} with their"
        f" laws (lines), plain and as the distance to the limit: {'; '.join(said)}."
        f" Pool {of.name} of {found.name}, {curve.networks} networks,"
        f" {found.objects:,} test objects; points are means over at least three"
        f" ensembles; {BEFORE}."
    )
    return Drawn(figure, caption, records)


def _parameters(found: Sequence[Evidence]) -> Drawn:
    figure, axes = style.page(2, 2, height=2.8)
    records: list[dict[str, Any]] = []
    sizes: list[float] = []
    drawn: list[Evidence] = []
    for each in found:
        plane = plane_in(each)
        points = [each.curve(k).averaged().sum() for k in range(len(plane))]
        shown = [k for k, count in enumerate(points) if count >= POINTS]
        if not shown:
            continue
        laws = [each.law(k) for k in shown]
        look = style.series(len(drawn))
        for axis, (name, _) in zip(axes.flat, PARAMETERS, strict=True):
            axis.plot(
                plane.sizes[shown],
                [getattr(law, name) for law in laws],
                ls=":" if each.unregularized else "-",
                label=each.name.replace("$", r"\$"),  # else a formula
                **look,
            )
        drawn.append(each)
        sizes += plane.sizes[shown].tolist()
        records += [
            law_record(each, k, law) for k, law in zip(shown, laws, strict=True)
        ]
    if not records:
        raise too_few(found[0], POINTS + 2)
    for axis, (_, label) in zip(axes.flat, PARAMETERS, strict=True):
        axis.set_ylabel(label)
        style.log_size(axis, sizes, label="")
    for axis in axes[1]:
        axis.set_xlabel("parameters s")
    axes[1, 0].axhline(-1, color="0.4", lw=0.7, ls="--")
    if len(drawn) > 1:
        style.shared_legend(figure, axes[0, 0].get_lines())
    caption = (
        "Laws c + b·n^a of CNLL_n (nats) for networks of s parameters, and how well"
        f" they fit ({RMSE_SAYS}); {BEFORE}. Dotted lines: trained without"
        " regularization. The dashed line is the exponent of theory, −1."
        f" {counts_of_all(drawn)}."
    )
    return Drawn(figure, caption, records)
