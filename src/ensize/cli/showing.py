"""The verb `demo`: the main job from beginning to end."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from ensize.cli.printing import print_table, say, shown_progress


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where to leave it.")
    ],
    networks: Annotated[int, typer.Option(min=6, help="How many networks.")] = 64,
) -> None:
    """Go from predictions to a law, on a synthetic world whose answer is known."""
    import numpy as np

    from ensize.curves import score
    from ensize.laws import fit
    from ensize.stores import Store
    from ensize.synthetic import World

    world = World(objects=5000)
    store = Store(output / "store")
    drawn = world.predictions(networks)
    for i in range(networks):
        logits = drawn.logits(i, 0, drawn.objects)
        store.add("world", i, logits, drawn.targets, dtype="float16")
    say(
        f"A synthetic world: {networks} networks that nobody trained, and whose law is"
        f" known.\nTheir predictions on {drawn.objects} objects are in {store.path}.\n"
    )
    with shown_progress() as progress:
        curve = score(store.read("world", seeds=range(networks)), progress=progress)
    six = score(store.read("world", seeds=range(6)))
    shown = [n for n in (1, 2, 4, 6, 16, 64) if n <= networks]
    sizes = np.array([*shown, math.inf])
    law = fit(six.n, six.cnll)
    _, truth = world.best(sizes)
    print_table(
        "CNLL of n networks: measured; read off the law of the first six; exact LE-NLL",
        ["n", "measured", "± se", "law of six", "exact"],
        [
            [
                "∞" if math.isinf(n) else str(int(n)),
                math.nan if math.isinf(n) else curve.cnll[int(n) - 1],
                math.nan if math.isinf(n) else curve.cnll_se[int(n) - 1],
                law.law(n),
                exact,
            ]
            for n, exact in zip(sizes, truth, strict=True)
        ],
    )
    say(
        f"\nFrom six networks: CNLL_n = {law.limit:.4f} + {law.gain:.4f}"
        f" · n^{law.exponent:.3f} ({law.status}).\nTry: ensize score {store.path}"
        " --n 1,2,4,8"
    )
