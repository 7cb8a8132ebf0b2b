"""Forecast larger ensembles of scikit-learn's MLPClassifier, and split a budget.

    python examples/scikit_learn.py STORE

A classifier gives probabilities; their logarithms are logits like any others.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import ensize

WIDTHS = (8, 16, 32)
X, Y = load_digits(return_X_y=True)
X_TRAIN, X_TEST, Y_TRAIN, Y_TEST = train_test_split(
    X / 16, Y, train_size=256, random_state=0, stratify=Y
)


def main() -> None:
    """Train pools of several sizes, and ask what they are worth."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("store")
    options.add_argument("--networks", type=int, default=6)
    given = options.parse_args()

    store = ensize.Store(given.store)
    for width in WIDTHS:
        name = f"sklearn-mlp-w{width}"
        for seed in sorted({*range(given.networks)} - {*store.seeds(name)}):
            model = MLPClassifier((width,), max_iter=150, random_state=seed)
            with warnings.catch_warnings():
                # As many iterations as we said are meant to be enough.
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(X_TRAIN, Y_TRAIN)
            size = sum(each.size for each in (*model.coefs_, *model.intercepts_))
            known = {"family": "sklearn-mlp", "width": width, "size": size}
            known["recipe"] = "Adam, 150 iterations, 256 digits"
            logits = np.log(np.maximum(model.predict_proba(X_TEST), 1e-30))
            store.add(name, seed, logits, Y_TEST, **known)

    for width in WIDTHS:
        ahead = ensize.forecast(store.read(f"sklearn-mlp-w{width}"), to=[8, 32])
        said = ", ".join(
            f"{cnll:.3f} with {n:.0f}"
            for n, cnll in zip(ahead.n, ahead.cnll, strict=True)
        )
        print(f"width {width}: CNLL {ahead.curve.cnll[0]:.3f} with one network, {said}")
    print(ensize.split(store, "2.5k").verdict.sentence)


if __name__ == "__main__":
    main()
