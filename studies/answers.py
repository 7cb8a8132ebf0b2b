"""What the studies kept here answer: the tables of docs/study.md, as Markdown.

    python studies/answers.py > docs/study-answers.md
    python studies/answers.py STORE > docs/study-cifar100.md

Nothing is trained; all is computed from the predictions in these folders, or in a store
of another study, in some twenty seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import ensize
from ensize.laws import fit
from ensize.planes import Plane, plane_of
from ensize.splits.trials import SET
from ensize.train.studies import Study
from ensize.train.studies.runs import chosen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HERE = Path(__file__).parent
KEPT = "cifar10-vgg16", "cifar10-vgg16-unregularized"
SHOWN = (1, 2, 4, 8, 16, 32)


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table in Markdown."""
    print("| " + " | ".join(head) + " |")
    print("|" + "---:|" * len(head))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print()


def networks(plane: Plane, path: Path) -> None:
    """Say how the networks of each width were trained, and how good one is."""
    print("### The networks\n")
    study, store = Study.read(path), ensize.Store(path)
    rows = []
    for k, pool in enumerate(plane.names):
        width, curve = int(plane.pools[k].pool.width or 0), plane.curves[k]
        recipe = study.recipe_at(width, chosen(store, pool))
        kept, trained = plane.pools[k].networks, len(store.seeds(pool))
        rows.append(
            (
                *(width, f"{plane.sizes[k]:,}", trained, trained - kept),
                *(f"{recipe.learning_rate:g}", f"{recipe.weight_decay:g}"),
                *(f"{curve.nll[0]:.3f}", f"{curve.cnll[0]:.3f}"),
                *(f"{curve.accuracy[0]:.3f}", f"{curve.temperature[0]:.2f}"),
            )
        )
    head = ("w", "parameters", "networks", "odd", "rate", "decay", "NLL", "CNLL")
    table((*head, "accuracy", "τ"), rows)


def plane_table(plane: Plane, score: str) -> None:
    """Print the (n, s) plane."""
    print(f"### The plane of {score}\n")
    rows = []
    for k, pool in enumerate(plane.names):
        curve = plane.curves[k]
        value = dict(zip(curve.n.tolist(), getattr(curve, score), strict=True))
        rows.append((pool, *(f"{value[n]:.4f}" if n in value else "" for n in SHOWN)))
    table(("pool", *(f"n = {n}" for n in SHOWN)), rows)


def laws(plane: Plane) -> None:
    """Print the laws of CNLL along n, by both methods, and their residuals."""
    print("### Laws along n\n")
    rows = []
    for k, pool in enumerate(plane.names):
        curve = plane.curves[k]
        some = curve.averaged()
        for method in ("robust", "paper"):
            law = fit(curve.n[some], curve.cnll[some], method=method)
            rows.append(
                (
                    *(pool, method, int(some.sum()), f"{law.limit:.4f}"),
                    *(f"{law.gain:.4f}", f"{law.exponent:.3f}", f"{law.rmse:.5f}"),
                    *(f"{law.rmse_log2:.4f}", law.status),
                )
            )
    head = ("pool", "method", "points", "c", "b", "a", "RMSE", "RMSE of log2")
    table((*head, "status"), rows)


def along_size(plane: Plane) -> None:
    """Print the laws along the size."""
    print("### Along the size\n")
    rows = []
    for n in (n for n in (1, 2, 4, 8) if n <= plane.networks.max()):
        cut = plane.along_size(n)
        a, low, high = cut.exponent
        exponent = f"{a:.3f} ({low:.3f} to {high:.3f})" if cut.law else "–"
        limit = f"{cut.law.limit:.3f}" if cut.law else "–"
        rows.append((n, len(cut.size), limit, exponent, f"{cut.turned:.2f}"))
        print(f"n = {n}: {cut.verdict.sentence}.\n")
    table(("n", "sizes", "c", "a", "probability of a turn"), rows)


def along_budget(plane: Plane) -> None:
    """Print the best CNLL of each budget, its law and the memory-split advantage."""
    print("### Along the budget, and the memory-split advantage\n")
    cut = plane.along_budget()
    print(f"Along B: {cut.verdict.sentence}.\n")
    head = ("budget", "best n", "pool", "CNLL", "90 %")
    each = [
        (
            *(f"{row['budget']:,.0f}", row["n"], row["pool"], f"{row['value']:.4f}"),
            f"{row['low']:.4f} to {row['high']:.4f}",
        )
        for row in cut.records()[::4]
    ]
    table(head, each)
    for score in ("cnll", "accuracy"):
        rows = [
            (
                *(score, f"{row['budget']:,.0f}", row["n"], f"{row['value']:.4f}"),
                *(f"{row['single']:.4f}", f"{row['advantage']:+.4f}"),
                f"{row['low']:+.4f} to {row['high']:+.4f}",
                f"{row['probability']:.2f}",
            )
            for row in plane.advantage(score=score).records()
        ]
        head = ("score", "budget", "best n > 1", "split", "one network", "advantage")
        table((*head, "90 %", "probability"), rows)


def predictions(plane: Plane) -> None:
    """Print predicted and true optimal splits, and the test of joint laws."""
    print("### Optimal splits predicted from six networks, and joint laws\n")
    rows = []
    for method in ("robust", "paper"):
        found = ensize.optimal_splits_test(plane, method=method)
        shares = " / ".join(f"{share:.0%}" for share in found.shares.values())
        lost = f"{found.lost.mean():.5f}"
        rows.append(
            (method, len(np.unique(found.budget)), len(found.true), shares, lost)
        )
    table(
        ("method", "budgets", "predictions", "exact / neighbor / worse", "lost"), rows
    )
    test = ensize.joint_law_test(plane)
    rows = [(law, *(f"{e:.2%}" for e in each)) for law, each in test.errors.items()]
    table(("joint law", *test.held_out), rows)
    print(f"Accepted: {test.accepted or 'none'}.\n")


def main() -> None:
    """Print everything."""
    given = [Path(each) for each in sys.argv[1:]]
    what = ", ".join(Study.read(path).name for path in given) or "the study"
    print(f"# Tables of {what}\n")
    print(f"Printed by `python studies/answers.py{' STORE' * len(given)}`.\n")
    for path in given or [HERE / name for name in KEPT]:
        plane = plane_of(path)
        print(f"## {Study.read(path).name}\n")
        networks(plane, path)
        plane_table(plane, "cnll")
        plane_table(plane, "accuracy")
        laws(plane)
        along_size(plane)
        along_budget(plane)
        if plane.networks.min() > SET:
            predictions(plane)


if __name__ == "__main__":
    main()
