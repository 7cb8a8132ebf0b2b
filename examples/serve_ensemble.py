"""Serve an exported ensemble, and measure what it costs beside a single network.

    python examples/serve_ensemble.py FOLDER                # seconds, on digits
    python examples/serve_ensemble.py FOLDER --networks 8

An exported file is one module with its temperature built in: objects in, calibrated
probabilities out. Whoever serves it needs PyTorch and not ensize. Here a network and
an ensemble of the same pool are asked the same, one object at a time and many at once.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from ensize.train.export import export_ensemble
from ensize.train.images import load_data
from ensize.train.studies import Study, train_study

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Server = Callable[[NDArray], NDArray]


def serve(file: Path) -> Server:
    """Load an exported ensemble: all that a server has to do."""
    program = torch.export.load(file).module()

    def answer(objects: NDArray) -> NDArray:
        with torch.inference_mode():
            return program(torch.from_numpy(objects)).numpy()

    return answer


def latency(answer: Server, objects: NDArray, repeats: int) -> tuple[float, float]:
    """Measure the median and the 95 % quantile of answering, in milliseconds."""
    took = []
    for _ in range(repeats + 5):
        begun = time.perf_counter()
        answer(objects)
        took.append(1000 * (time.perf_counter() - begun))
    return tuple(np.quantile(took[5:], [0.5, 0.95]))  # the first ones warm up


def main() -> None:
    """Train a few networks, export one and all, and serve both."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--networks", type=int, default=4)
    options.add_argument("--repeats", type=int, default=200)
    given = options.parse_args()

    study = Study.of(
        {
            "name": "served",
            "dataset": "few-digits",
            "family": "mlp",
            "widths": [32],
            "networks": given.networks,
            "recipe": {
                "epochs": 40,
                "batch": 32,
                "learning_rate": 0.05,
                "weight_decay": 1e-3,
            },
        }
    )
    train_study(study, given.folder / "store", keep_weights=True)

    data = load_data("few-digits")
    print("networks  objects  median ms  95 % ms    NLL")
    for n in (1, given.networks):
        file = given.folder / f"{n}.pt2"
        export_ensemble(given.folder / "store", None, n, file)
        answer = serve(file)
        right = answer(data.x_test)[np.arange(len(data.y_test)), data.y_test]
        for count in (1, 256):
            median, late = latency(answer, data.x_test[:count], given.repeats)
            nll = -np.log(right).mean()
            print(f"{n:8}  {count:7}  {median:9.3f}  {late:7.3f}  {nll:.3f}")


if __name__ == "__main__":
    main()
