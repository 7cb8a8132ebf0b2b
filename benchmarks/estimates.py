"""How good the estimates are: errors, expansion, interpolation, fits.

    python benchmarks/estimates.py    # the tables of docs/estimates.md, two minutes

Everything is measured on synthetic worlds whose truth is known exactly.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

import ensize
from ensize.curves.expansion import SecondOrder
from ensize.draws import subsets
from ensize.laws import fit_many
from ensize.scores import score_ensembles, shares_of
from ensize.sketches import Grid, Sketch
from ensize.synthetic import World, noisy_curve
from ensize.temperatures import nll_at

if TYPE_CHECKING:
    from numpy.typing import NDArray


def errors(networks: int = 24, pools: int = 200) -> None:
    """Compare standard errors of drawn subsets with the true spread of the points."""
    world = World(objects=500, luck=0.3)
    sizes = (1, 2, 4, 8, 12, 16, 22, 23)
    rows: dict[int, list[tuple[float, ...]]] = {n: [] for n in sizes}
    for i in range(pools):
        drawn = world.predictions(range(networks * i, networks * (i + 1)))
        sketch = Sketch.of(drawn)
        expansion = SecondOrder.of(sketch)
        for n in sizes:
            members = subsets(networks, n, seed=i)
            shares = shares_of(members, networks)
            cnll = score_ensembles(sketch, shares).cnll
            lacking = shares.T == 0
            without = lacking @ cnll / lacking.sum(axis=1)
            naive = (networks - 1) * without.var()
            ours = expansion.jackknife(cnll, shares) ** 2
            second = np.einsum("ei,ij,ej->e", shares, expansion.second, shares)
            explained = second / 2 - shares @ expansion.first
            alike = np.corrcoef(cnll, explained)[0, 1]
            rows[n].append((cnll.mean(), naive, ours, alike, len(members)))
    print(
        f"\nErrors: {pools} pools of {networks} networks; mean squared error estimate"
    )
    print("over the true variance of the points, which is uncertain by 10 %")
    print(" n  subsets  drawn only  with the second order  correlation with it")
    for n, row in rows.items():
        mean, naive, ours, alike, count = np.array(row).T
        truth = mean.var(ddof=1)
        print(
            f"{n:2}  {count[0]:7.0f}  {naive.mean() / truth:10.2f}"
            f"  {ours.mean() / truth:21.2f}  {alike.mean():19.3f}"
        )


def expansions(pools: int = 40) -> None:
    """Measure the bias of Proposition 1's terms, estimated from small pools."""
    counts = (4, 6, 12, 64)
    rows: dict[int, list[tuple[float, ...]]] = {count: [] for count in counts}
    for classes, noise in itertools.product((10, 100), (0.7, 1.2, 2.0)):
        world = World(classes=classes, noise=noise, spread=3.5, objects=500)
        temperature, limit = world.best(np.inf)
        truth = world.expansion(temperature=temperature)
        gain = world.nll(1, temperature=temperature) - limit
        for count in counts:
            found = []
            for i in range(max(4, pools * 6 // count)):
                pool = world.predictions(range(count * i, count * (i + 1)))
                logs = _true_class(pool, float(temperature))
                pooled = np.logaddexp.reduce(logs, axis=0) - np.log(count)
                e = ensize.expand_before(logs, logarithms=True)
                found.append((-pooled.mean(), e.limit, e.first, e.plug_in))
            plain, jack, first, plug_in = np.mean(found, axis=0)
            rows[count].append(
                (
                    (plain - limit) / gain,
                    (jack - limit) / gain,
                    first / truth.first - 1,
                    plug_in / truth.first - 1,
                )
            )
    print("\nProposition 1 from a pool: median and worst |bias| in six worlds, in %")
    print("networks  -log of the mean, of the gain  limit, of the gain  first  plug-in")
    for count, row in rows.items():
        off = 100 * np.abs(row)
        cells = [
            f"{m:.0f} ({w:.0f})"
            for m, w in zip(np.median(off, 0), off.max(0), strict=True)
        ]
        print(
            f"{count:8}  {cells[0]:>29}  {cells[1]:>18}  {cells[2]:>8}  {cells[3]:>8}"
        )


def _true_class(pool: ensize.Predictions, temperature: float) -> NDArray[Any]:
    """Log-probabilities of the true class at a temperature, (networks, objects)."""
    rows = []
    for i in range(pool.networks):
        logits = pool.logits(i, 0, pool.objects).astype(np.float64) / temperature
        norm = np.logaddexp.reduce(logits, axis=1)
        rows.append(logits[np.arange(pool.objects), pool.targets] - norm)
    return np.array(rows)


def interpolation() -> None:
    """Measure what reading NLL between the nodes costs, with Gaussian logits."""
    print("\nReading NLL between nodes: largest error for 1/τ from 1/2 to 2")
    print("classes  objects  4 an octave  6 an octave  8 an octave")
    random = np.random.default_rng(0)
    for classes, objects in ((10, 500), (100, 500), (100, 10_000), (1000, 5000)):
        targets = random.integers(0, classes, objects)
        logits = 3 * random.standard_normal((2, objects, classes))
        logits[:, np.arange(objects), targets] += 6
        pool = ensize.Predictions.of(logits, targets)
        missed = []
        for per in (4, 6, 8):
            fine = Grid(-6 * per, 6 * per, 2 * per)
            nll = Sketch.of(pool, grid=fine).member_nll()
            coarse = Grid(-3 * per, 3 * per, per)
            between = range(4 * per + 1, 8 * per, 2)
            nodes = fine.inverse_temperatures
            missed.append(
                max(
                    np.abs(nll_at(coarse, nll[:, ::2], nodes[j]) - nll[:, j]).max()
                    for j in between
                )
            )
        cells = "  ".join(f"{each:11.1e}" for each in missed)
        print(f"{classes:7}  {objects:7}  {cells}")


def fits(curves: int = 1000) -> None:
    """Forecast n = 64 from six noisy points, by both methods."""
    m = np.arange(1, 7)
    law = (0.3, 0.2, -0.85)
    truth = law[0] + law[1] * 64 ** law[2]
    random = np.random.default_rng(0)
    exact = law[0] + law[1] * m ** law[2]
    worlds = {
        "0.3 % of each point": exact
        * (1 + 0.003 * random.standard_normal((curves, 6))),
        "0.3 % of each step": np.array(
            [noisy_curve(m, law, noise=0.003, seed=i) for i in range(curves)]
        ),
    }
    print(f"\nForecasts at n = 64 from six points, RMSE over {curves} curves")
    print("noise                robust    paper     paper, limit at its bound")
    for name, y in worlds.items():
        cells, bound = [], 0.0
        for method in ("robust", "paper"):
            found = fit_many(m, y, method=method)
            cells.append(np.sqrt(np.mean((found(64)[:, 0] - truth) ** 2)))
            bound = float(np.mean(found.status == ensize.Status.BOUND))
        print(f"{name:20} {cells[0]:.5f}   {cells[1]:.5f}   {bound:.0%}")


def main() -> None:
    """Print every table."""
    errors()
    expansions()
    interpolation()
    fits()


if __name__ == "__main__":
    main()
