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

JOB = """
import numpy as np
import ensize
from ensize.synthetic import World

world = World(objects=400)
for seed in range(6):
    np.save(f"net-{seed}.npy", world.predictions(6).logits(seed, 0, 400))
np.save("classes.npy", world.predictions(6).targets)
assert ensize.score(ensize.load([f"net-{i}.npy" for i in range(6)],
                                targets="classes.npy")).networks == 6
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
        files = [f"net-{seed}.npy" for seed in range(6)]
        given = [*files, "--targets", "classes.npy", "--json"]
        for verb in (["score"], ["forecast", "--to", "8,64"]):
            print(verb[0], sorted(json.loads(run("-m", "ensize", *verb, *given))))
        run("-m", "ensize", "--help")
    print(f"{wheel.name}: works with the core's dependencies alone")


if __name__ == "__main__":
    main()
