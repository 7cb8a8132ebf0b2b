"""Install a wheel alone in a new environment, and do the main job there.

Usage: python .ci/try_wheel.py dist/ensize-*.whl
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

# A user's first hour: files of predictions, and a store of several sizes.
JOB = """
import sys
import numpy as np
import ensize
from ensize.synthetic import Family, World

pool = World(objects=400).predictions(6)
for seed, logits in enumerate(pool.rows):
    np.save(f"net-{seed}.npy", logits)
np.save("classes.npy", pool.targets)
curve = ensize.score(ensize.load("net-*.npy", targets="classes.npy"))
law = ensize.fit(curve.n, curve.cnll)
assert ensize.forecast(pool, to=[64]).cnll[0] < curve.cnll[-1]
with open("curve.csv", "w") as file:
    points = [f"{n},{cnll}" for n, cnll in zip(curve.n, curve.cnll)]
    print("n,cnll", *points, sep="\\n", file=file)

store, family = ensize.Store("store"), Family.splits_pay(objects=400)
for size in (25_000, 50_000, 100_000, 200_000):
    pool = family.of(size).predictions(6)
    for seed, logits in enumerate(pool.rows):
        store.add(f"net-{size}", seed, logits, pool.targets, size=size)
assert ensize.split(store, "200k").best.n > 1

heavy = {"torch", "sklearn", "matplotlib", "pandas"} & set(sys.modules)
assert not heavy, heavy
"""


def main() -> None:
    """Try the wheel that is named on the command line."""
    wheel = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv" / "bin" / "python"

        def run(*arguments: str) -> str:
            done = subprocess.run(
                [python, *arguments], cwd=folder, check=True, capture_output=True
            )
            return done.stdout.decode()

        run("-m", "pip", "install", "--quiet", str(wheel))
        run("-W", "error", "-c", JOB)
        given = [*(f"net-{i}.npy" for i in range(6)), "--targets", "classes.npy"]
        for verb in (
            ["score", *given],
            ["fit", "curve.csv"],
            ["forecast", *given, "--to", "8,64"],
            ["split", "store", "--budget", "200k"],
            ["status", "store"],
            ["verify", "store"],
        ):
            print(verb[0], *sorted(json.loads(run("-m", "ensize", *verb, "--json"))))
        run("-m", "ensize", "--help")
    print(f"{wheel.name}: works with the core's dependencies alone")


if __name__ == "__main__":
    main()
