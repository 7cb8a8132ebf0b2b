"""Find the best split of a budget with a plain PyTorch loop of your own.

    python examples/plain_pytorch.py STORE                 # seconds
    python examples/plain_pytorch.py STORE --budget 40k

Each network is recorded as soon as it is trained: stop the program when you like, and
start it again.
"""

from __future__ import annotations

import argparse

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional

import ensize

X, Y = load_digits(return_X_y=True)
SPLIT = train_test_split(X / 16, Y, train_size=256, random_state=0, stratify=Y)
X_TRAIN, X_TEST = (torch.tensor(x, dtype=torch.float32) for x in SPLIT[:2])
Y_TRAIN, Y_TEST = (torch.tensor(y) for y in SPLIT[2:])
RECIPE = "SGD, rate 0.2, decay 0.001, 60 epochs of 256 digits"


def parameters(width: int) -> int:
    """Count what a network with one hidden layer learns: 64 inputs, 10 classes."""
    return (64 + 1) * width + (width + 1) * 10


def pool_at(size: int) -> ensize.Pool:
    """Say which of our networks is the largest of at most so many parameters."""
    width = (size - 10) // 75
    return ensize.Pool(f"mlp-w{width}", "mlp", width, parameters(width), recipe=RECIPE)


def train(width: int, seed: int) -> nn.Module:
    """Train one network, as you train yours."""
    torch.manual_seed(seed)  # the members of an ensemble differ in nothing else
    network = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))
    descent = torch.optim.SGD(
        network.parameters(), lr=0.2, momentum=0.9, weight_decay=1e-3
    )
    for _ in range(60):
        for batch in torch.randperm(len(Y_TRAIN)).split(64):
            descent.zero_grad()
            functional.cross_entropy(network(X_TRAIN[batch]), Y_TRAIN[batch]).backward()
            descent.step()
    return network.eval()


def main() -> None:
    """Train and record what the search asks for."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("store")
    options.add_argument("--budget", default="10k")
    given = options.parse_args()

    store = ensize.Store(given.store)
    search = ensize.MemorySplitSearch(
        given.budget, smallest=parameters(4), pool_at=pool_at, store=store
    )
    while wanted := search.ask():
        pool = wanted.pool
        print(f"{len(wanted.seeds)} networks of {pool.name}, for n = {wanted.n}")
        for seed in wanted.seeds:
            network = train(int(pool.width), seed)
            known = {"family": pool.family, "width": pool.width, "size": pool.size}
            known["recipe"] = pool.recipe
            with store.record(pool.name, seed=seed, **known) as recording:
                for x, y in zip(X_TEST.split(500), Y_TEST.split(500), strict=True):
                    with torch.inference_mode():
                        recording.update(network(x), y)
    print(search.table())
    print(search.verdict.sentence)


if __name__ == "__main__":
    main()
