"""How good forecasts are: back-tests on real pools and on worlds whose truth is known.

    python benchmarks/back_tests.py STORE... [--worlds] [--least 48]

Of each store every pool of at least so many networks is cut into disjoint sets of six,
and the truth taken from the networks that a set does not hold; `ensize demo` and
benchmarks/pools.py make such stores. In worlds the truth is exact, also of endlessly
many networks. It takes some ten seconds for each pool and each world.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import ensize
from ensize.forecasts.trials import LINE
from ensize.synthetic import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ensize.forecasts import BackTest, Interval

TO = [8, 16, 32, 64]


def of_stores(paths: list[str], least: int, seed: int) -> ensize.BackTests | None:
    """Back-test every large pool of some stores."""
    tested = []
    for path in paths:
        folder = Path(path).resolve()
        # That of the demo is DIR/store.
        named = folder.parent.name if folder.name == "store" else folder.name
        for status in ensize.Store.open(path).pools():
            if status.networks < least:
                continue
            pool = ensize.load(path, pool=status.name)
            found = ensize.back_test(pool, to=TO, seed=seed)
            for sentence in found.warnings:
                print(f"{status.name}: {sentence}", file=sys.stderr)
            label = f"{named}/{status.name}"
            renamed = dataclasses.replace(found.pools[0], pool=label)
            tested.append(dataclasses.replace(found, pools=(renamed,)))
    return joined(tested) if tested else None


def joined(tested: list[ensize.BackTests]) -> ensize.BackTests:
    """Put back-tests of single pools together."""
    pools = tuple(each for found in tested for each in found.pools)
    return dataclasses.replace(tested[0], pools=pools)


def worlds(objects: int = 2000) -> Iterator[World]:
    """List worlds of few classes and many, with little noise and much."""
    kinds = itertools.product((10, 100), (0.7, 1.5), (0.1, 0.3))
    for i, (classes, noise, luck) in enumerate(kinds):
        # Each has a seed of its own, or all would have the same luck.
        yield World(classes, objects, noise=noise, luck=luck, spread=3.5, seed=i)


def of_worlds(networks: int, seed: int) -> ensize.BackTests:
    """Back-test worlds, where the truth is known of any number of networks."""
    tested = []
    sizes = [*TO, math.inf]
    for world in worlds():
        drawn = world.predictions(networks, seed=seed)
        name = f"{world.classes} classes, noise {world.noise}, luck {world.luck}"
        pool = dataclasses.replace(
            drawn, pool=dataclasses.replace(drawn.pool, name=name)
        )
        truth = world.best(sizes)[1]
        tested.append(ensize.back_test(pool, to=sizes, truth=truth, seed=seed))
    return joined(tested)


def alone(tested: ensize.BackTests, each: BackTest) -> ensize.BackTests:
    """Look at one pool only."""
    return dataclasses.replace(tested, pools=(each,))


def show(title: str, tested: ensize.BackTests) -> None:
    """Print a line for each pool, and what all say together."""
    print(f"\n{title}")
    print("RMSE of robust in thousandths of a nat; ratios are means over n")
    width = max(len(each.pool) for each in tested.pools)
    few, many = (
        TO[0],
        int(min(max(each.n[np.isfinite(each.n)]) for each in tested.pools)),
    )
    print(
        f"{'pool':{width}}  sets  CNLL {few:>2}  RMSE {few:>2}  RMSE {many:>2}  / paper"
        "  / line  coverage  half / RMSE  bound (paper)"
    )
    for each in tested.pools:
        found = alone(tested, each)
        rmse = 1000 * each.rmse("robust").value
        bounds = (float(each.bound(name).value) for name in ("robust", "paper"))
        print(
            f"{each.pool:{width}}  {each.sets:4}  {each.truth[0]:7.4f}"
            f"  {rmse[0]:7.2f}  {rmse[each.n == many][0]:7.2f}"
            f"  {found.ratio('robust', 'paper').value:7.2f}"
            f"  {found.ratio('robust', LINE).value:6.2f}"
            f"  {found.coverage('robust').value:8.2f}"
            f"  {found.width('robust').value:11.2f}"
            "  {:4.0%} ({:.0%})".format(*bounds)
        )
    print(f"\nTogether, with bounds of 95 % that count {len(tested.pools)} pools")
    ratio, line = (tested.ratio("robust", rival) for rival in ("paper", LINE))
    coverage, half = tested.coverage("robust"), tested.width("robust")
    rows = [
        ("RMSE of robust / paper", ratio, "at most 0.5", ratio.value <= 1 / 2),
        ("RMSE of robust / line in 1/n", line, "at most 1", line.value <= 1),
        (
            f"coverage of robust, {tested.sets} sets",
            coverage,
            "0.85 to 0.95",
            coverage.low <= 0.95 and coverage.high >= 0.85,
        ),
        ("half-width / RMSE of robust", half, "at most 3", half.value <= 3),
    ]
    for name, value, aim, met in rows:
        print(f"{name:38} {said(value)}  aim: {aim}: {'met' if met else 'MISSED'}")
    for name, value in (
        ("coverage of paper", tested.coverage("paper")),
        ("half-width / RMSE of paper", tested.width("paper")),
    ):
        print(f"{name:38} {said(value)}")


def said(value: Interval) -> str:
    """Write a value with its bounds."""
    return f"{value.value:5.2f} ({value.low:.2f} to {value.high:.2f})"


def main() -> None:
    """Print the tables of docs/forecasts.md."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("stores", nargs="*", metavar="STORE")
    options.add_argument("--worlds", action="store_true", help="synthetic worlds too")
    options.add_argument("--least", type=int, default=48, help="networks of a pool")
    options.add_argument("--networks", type=int, default=192, help="of each world")
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    real = of_stores(given.stores, given.least, given.seed)
    if real is not None:
        show("Real pools", real)
    elif given.stores:
        print(f"no pool has {given.least} networks", file=sys.stderr)
    if given.worlds:
        show(
            "Worlds, to endlessly many networks", of_worlds(given.networks, given.seed)
        )


if __name__ == "__main__":
    main()
