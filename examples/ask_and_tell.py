"""Find the best split of a budget with a trainer of your own.

    python examples/ask_and_tell.py           # on a synthetic world, a few seconds
    python examples/ask_and_tell.py FOLDER    # kept there: stop it, and start it again

`train` stands for whatever trains a network of so many parameters and returns its
logits on the test set. The world's best split is known, so that the answer is checked.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import ensize
from ensize.synthetic import Family

if TYPE_CHECKING:
    from numpy.typing import NDArray

FAMILY = Family.splits_pay(objects=5000, luck=0.02)
BUDGET = 3_000_000


def train(size: int, seed: int) -> tuple[NDArray, NDArray]:
    """Train one network; return its logits on the test set, and the true classes."""
    network = FAMILY.of(size).predictions([seed])
    return network.rows[0], network.targets


def main(store: str | None) -> None:
    """Ask, train and tell until nothing is asked for."""
    search = ensize.MemorySplitSearch(BUDGET, smallest=FAMILY.smallest, store=store)
    while wanted := search.ask():
        print(f"n = {wanted.n}: {len(wanted.seeds)} networks of size {wanted.size:,}")
        for one in wanted.each():
            logits, y_test = train(one.size, one.seeds[0])
            search.tell(one, [logits], y_test)
    print(search.table())
    if search.verdict is not None:
        print(search.verdict.sentence)
    print(f"The world's best split: n = {FAMILY.splits(BUDGET).best}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
