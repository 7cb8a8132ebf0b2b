"""Compare the law of theory with the law of measurement, where the truth is known.

    python examples/laws_and_theory.py        # a second or two

Proposition 1 of the paper says NLL_n = c + b/n + ..., and gives c and b as moments of
what single networks say. Here six networks of a synthetic world are asked three ways:
by those moments, by a law fitted to their scores, and by the world itself.
"""

from __future__ import annotations

import numpy as np

import ensize
from ensize.synthetic import World


def main() -> None:
    """Print what each says of ever larger ensembles."""
    world = World(objects=20_000, luck=0.0)
    pool = world.predictions(6)

    # The probability of the true class: all that NLL needs of a network.
    logits = np.stack([pool.logits(i, 0, pool.objects) for i in range(6)])
    logs = logits - np.logaddexp.reduce(logits, axis=2, keepdims=True)
    true = logs[:, np.arange(pool.objects), pool.targets]
    theory = ensize.expand_before(true, logarithms=True)

    curve = ensize.score(pool)
    fitted = ensize.fit(curve.n, curve.nll)

    print("networks  theory, c + b/n  fitted law   truth")
    for n in (1, 6, 16, 64, np.inf):
        said = (theory(n), fitted.law(n), world.nll(n))
        print(f"{n:8.0f}  {said[0]:15.4f}  {said[1]:10.4f}  {said[2]:6.4f}")
    print(f"The fitted exponent is {fitted.exponent:.2f}; theory's limit is -1.")


if __name__ == "__main__":
    main()
