"""How good splits and searches are: the tables of docs/splits.md.

    python benchmarks/splits.py            # on worlds, two minutes
    python benchmarks/splits.py STORE...   # predicted and joint laws, on your networks

On worlds the best split of every budget is known.
"""

from __future__ import annotations

import sys

import numpy as np

import ensize
from ensize.checks import InputError
from ensize.synthetic import Family

FAMILIES = {
    "splits pay": Family.splits_pay(objects=1000),
    "single wins": Family.single_wins(objects=1000),
}
SIZES = [25_000 * 2**i for i in range(5)]
METHODS = ("robust", "paper")


def plane_from(
    family: Family, networks: list[int], sizes: list[int], seed: int = 0
) -> ensize.Plane:
    """Score pools of a family."""
    pairs = zip(sizes, networks, strict=True)
    pools = [family.of(size).predictions(n, seed=seed) for size, n in pairs]
    return ensize.plane_of(pools)


def sure(planes: int = 20, budgets: tuple[int, ...] = (100_000, 400_000)) -> None:
    """Compare verdicts and probabilities with the truth."""
    print(f"\nSplits of {planes} planes of six networks a size, {len(budgets)} budgets")
    print(
        "world        method  split  no split  open  best found  said to be"
        "  CNLL lost  in 90 %  of advantages"
    )
    for name, family in FAMILIES.items():
        exact = {budget: family.splits(budget) for budget in budgets}
        rows: dict[str, list[tuple[float, ...]]] = {method: [] for method in METHODS}
        for seed in range(planes):
            plane = plane_from(family, [6] * len(SIZES), SIZES, seed)
            for budget, known in exact.items():
                truth = dict(zip(known.n.tolist(), known.value.tolist(), strict=True))
                for method, row in rows.items():
                    found = ensize.split(plane, budget, method=method)
                    several = [each for each in found.splits if each.n > 1]
                    rival = min(several, key=lambda each: each.value).n
                    inside = [s.low < truth[s.n] < s.high for s in found.splits]
                    code, n = found.verdict.code, found.best.n
                    row.append(
                        (
                            *(code == each for each in ("split", "no split")),
                            code == "cannot be said",
                            n == known.best,
                            found.best.probability,
                            truth[n] - known.value.min(),
                            np.mean(inside),
                            found.low < truth[1] - truth[rival] < found.high,
                        )
                    )
        for method, row in rows.items():
            split, single, open_, hits, claims, lost, inside_, ahead = np.mean(
                row, axis=0
            )
            print(
                f"{name:12} {method:7} {split:5.0%}  {single:8.0%}  {open_:4.0%}"
                f"  {hits:10.0%}  {claims:10.0%}  {lost:9.4f}  {inside_:7.0%}"
                f"  {ahead:13.0%}"
            )


def predicted(plane: ensize.Plane) -> None:
    """Predict best splits from six networks of each size."""
    for method in METHODS:
        found = ensize.optimal_splits_test(plane, method=method)
        shares = ", ".join(f"{name} {x:.0%}" for name, x in found.shares.items())
        print(f"\nPredicted from six networks of each size ({method}): {shares}")
        print(found.table())


def searched(runs: int = 20) -> None:
    """Search with networks drawn anew each time."""
    print(f"\nSearches, {runs} each; parameters in budgets")
    print(
        "world        budget     method  patience  best found  neighbor  CNLL lost"
        "  networks  in full  parameters"
    )
    for name, budget in (
        ("splits pay", 400_000),
        ("splits pay", 3_000_000),
        ("single wins", 400_000),
    ):
        family = FAMILIES[name]
        known = family.splits(budget)
        for method in METHODS:
            for patience in (0, 1):
                rows = []
                for seed in range(runs):
                    search = ensize.MemorySplitSearch(
                        budget,
                        smallest=family.smallest,
                        method=method,
                        patience=patience,
                    )
                    while wanted := search.ask():
                        world = family.of(wanted.size)
                        told = world.predictions(wanted.seeds, seed=seed)
                        search.tell(wanted, told)
                    cost, n = search.cost, search.best.n if search.best else 1
                    away = abs(np.log2(n / known.best))
                    truth = float(family.of(budget // n).best(n)[1])
                    rows.append(
                        (
                            away == 0,
                            away == 1,
                            truth - known.value.min(),
                            cost.networks_trained,
                            cost.networks_full,
                            cost.parameters_trained / budget,
                        )
                    )
                hit, near, lost, trained, full, parameters = np.mean(rows, axis=0)
                print(
                    f"{name:12} {budget:9,}  {method:7} {patience:8}  {hit:10.0%}"
                    f"  {near:8.0%}  {lost:9.4f}  {trained:8.1f}  {full:7.1f}"
                    f"  {parameters:10.2f}"
                )


def joint(plane: ensize.Plane, name: str) -> None:
    """Print how far joint laws are off on sizes held out, in percent."""
    try:
        found = ensize.joint_law_test(plane)
    except InputError as error:
        print(f"\nJoint laws of {name}: {error}")
        return
    print(f"\nJoint laws of {name}: relative error in % on sizes held out;")
    print(f"fitted to {', '.join(found.fitted)}; accepted: {found.accepted}")
    print(found.table())


def main(stores: list[str]) -> None:
    """Print the tables."""
    for store in stores:
        plane = ensize.plane_of(store)
        print(f"\n{store}")
        predicted(plane)
        joint(plane, store)
    if not stores:
        sure()
        predicted(
            plane_from(FAMILIES["splits pay"], [64, 48, 36, 24, 18], SIZES, seed=1)
        )
        searched()
        many = [12_500 * 2**i for i in range(7)]
        for name, family in FAMILIES.items():
            joint(plane_from(family, [12] * len(many), many), name)


if __name__ == "__main__":
    main(sys.argv[1:])
