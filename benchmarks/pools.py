"""Real pools, large enough to try forecasts on, trained in minutes.

    python benchmarks/pools.py DIR    # leaves DIR/digits and DIR/noisy, two stores

Small networks on scikit-learn's digits, 512 of them to train on and 1,285 to test; once
as they are, and once with noise upon each pixel, so that two in five are mistaken.
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
# Standard deviations of the noise upon pixels from 0 to 1.
NOISE = {"digits": 0.0, "noisy": 0.5}
RECIPE = {
    "epochs": 60,
    "batch": 64,
    "momentum": 0.9,
    "learning_rate": 0.05,
    "weight_decay": 1e-3,
    "augment": False,
}


def write_data(path: Path, noise: float) -> None:
    """Write the digits, shuffled, as arrays to train on and to test on."""
    digits = load_digits()
    random = np.random.default_rng(0)
    order = random.permutation(len(digits.target))
    x = (digits.data[order] / 16).astype(np.float32)
    x += noise * random.standard_normal(x.shape, np.float32)
    y = digits.target[order]
    parts = {"train": slice(TRAINED), "test": slice(TRAINED, None)}
    arrays = {f"x_{name}": x[part] for name, part in parts.items()}
    arrays |= {f"y_{name}": y[part] for name, part in parts.items()}
    np.savez(path, **arrays)


def main() -> None:
    """Train what is missing of all pools."""
    if len(sys.argv) != 2:
        sys.exit("say where the stores go: python benchmarks/pools.py DIR")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, noise in NOISE.items():
        data = folder / f"{name}.npz"
        if not data.exists():
            write_data(data, noise)
        declared = {
            "name": name,
            "dataset": data.name,
            "family": "mlp",
            "widths": WIDTHS,
            "networks": [NETWORKS] * len(WIDTHS),
            "keep": "float16",
            "recipe": RECIPE,
        }
        study = Study.of(declared, folder=folder)
        done = train_study(study, folder / name)
        print(f"{name}: {done.done} of {done.runs} networks in {done.seconds:.0f} s")


if __name__ == "__main__":
    main()
