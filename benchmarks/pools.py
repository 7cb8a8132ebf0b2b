"""Pools of networks that err often, large enough to try forecasts on.

    python benchmarks/pools.py DIR    # leaves DIR/noisy, a store; some minutes

Small networks on scikit-learn's digits with noise upon each pixel, so that two in five
are mistaken; 512 to train on and 1,285 to test.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from ensize.train.studies import Study, train_study

WIDTHS = [8, 16, 32, 64]
NETWORKS = 192
TRAINED = 512
# Standard deviation of the noise upon pixels from 0 to 1.
NOISE = 0.5
RECIPE = {
    "epochs": 60,
    "batch": 64,
    "momentum": 0.9,
    "learning_rate": 0.05,
    "weight_decay": 1e-3,
    "augment": False,
}


def write_data(path: Path) -> None:
    """Write the digits, shuffled, as arrays to train on and to test on."""
    digits = load_digits()
    random = np.random.default_rng(0)
    order = random.permutation(len(digits.target))
    x = (digits.data[order] / 16).astype(np.float32)
    x += NOISE * random.standard_normal(x.shape, np.float32)
    y = digits.target[order]
    parts = {"train": slice(TRAINED), "test": slice(TRAINED, None)}
    arrays = {f"x_{name}": x[part] for name, part in parts.items()}
    arrays |= {f"y_{name}": y[part] for name, part in parts.items()}
    np.savez(path, **arrays)


def main() -> None:
    """Train the networks that are missing."""
    if len(sys.argv) != 2:
        sys.exit("say where the store goes: python benchmarks/pools.py DIR")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "noisy.npz"
    if not data.exists():
        write_data(data)
    declared = {
        "name": "noisy",
        "dataset": data.name,
        "family": "mlp",
        "widths": WIDTHS,
        "networks": [NETWORKS] * len(WIDTHS),
        "keep": "float16",
        "recipe": RECIPE,
    }
    study = Study.of(declared, folder=folder)
    done = train_study(study, folder / "noisy")
    print(f"{done.done} of {done.runs} networks in {done.seconds:.0f} s")


if __name__ == "__main__":
    main()
