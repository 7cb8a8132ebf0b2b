"""Measure the training of committees against plain PyTorch loops, in one run.

Run `python benchmarks/training.py`, with `--device cuda` on a GPU. Three ways of
training the same networks on the same arrays in memory take turns:

T   a tuned plain loop, one network after another: the quickest of both layouts, with
    one core and with all inside each operation; foreach SGD, crops and mirrors for a
    whole batch;
N   a naive one: PyTorch's default layout and optimizer; both in a process of their own,
    so that nothing of ensize is in them;
E   ensize: as many networks together, and whichever way, as its own plan says.

Each takes the same number of steps. What is printed is Markdown for
docs/benchmarks.md: networks per second over those of T and of N, the median of the
rounds and their range; and, with `--equal`, whether the networks are equally good.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import itertools
import multiprocessing
import platform
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import stats
from torch.nn import functional

from ensize.curves import score
from ensize.predictions import Predictions
from ensize.train.images import Data, load_data, normalization
from ensize.train.loop import Recipe, plan, schedule, train
from ensize.train.networks import layers_of, module
from ensize.train.seeds import OFFSETS, PAD, Seed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

STEPS = 20
MLP_WIDTHS, VGG_WIDTHS = (8, 16, 32), (2, 4, 8, 16)


class PlainLoop:
    """One network after another, as one would write it by hand."""

    def __init__(
        self,
        data: Data,
        family: str,
        width: int,
        recipe: Recipe,
        device: torch.device,
        *,
        tuned: bool,
        last: bool,
    ) -> None:
        self.data, self.recipe, self.device = data, recipe, device
        self.tuned = tuned
        order = torch.channels_last if last else torch.contiguous_format
        self.order = order if data.pictures else torch.contiguous_format
        self.make = lambda: module(
            *(family, width),
            shape=data.shape,
            classes=data.classes,
            dropout=recipe.dropout,
        )
        self.layers = layers_of(family, width, shape=data.shape, classes=data.classes)
        mean, deviation = normalization(data, family)
        place = (-1, 1, 1) if data.pictures else data.shape
        self.mean = torch.from_numpy(mean).view(place).to(device)
        self.scale = torch.from_numpy(1 / deviation).view(place).to(device)
        self.x = torch.from_numpy(np.ascontiguousarray(data.x_train)).to(device)
        self.y = torch.from_numpy(data.y_train).to(device)
        if data.pictures:
            padded = functional.pad(self.x, (PAD,) * 4)
            objects, *rest = self.x.shape
            one, *inner = padded.stride()
            self.windows = padded.as_strided(
                (objects, OFFSETS, OFFSETS, *rest), (one, *inner[1:], *inner)
            )

    def batch(self, which: torch.Tensor) -> torch.Tensor:
        """Take a batch, cropped and mirrored all at once."""
        if not self.data.pictures:
            x = self.x[which]
        elif self.recipe.augment:
            place = torch.randint(OFFSETS, (2, len(which)), device=self.device)
            mirrored = torch.rand(len(which), device=self.device) < 0.5
            x = self.windows[which, place[0], place[1]]
            x = torch.where(mirrored[:, None, None, None], x.flip(-1), x)
        else:
            x = self.x[which]
        x = (x.float() - self.mean) * self.scale
        return x.contiguous(memory_format=self.order) if x.ndim == 4 else x

    def train(self, seed: int) -> torch.nn.Module:
        """Train one network."""
        torch.manual_seed(seed)
        recipe, net = self.recipe, self.make()
        drawn = Seed("plain loop", 1, seed).weights(self.layers)
        own = {name: torch.from_numpy(each) for name, each in drawn.items()}
        net.load_state_dict(own, strict=False)
        net = net.to(self.device, memory_format=self.order).train()
        descent = torch.optim.SGD(
            net.parameters(),
            recipe.learning_rate,
            recipe.momentum,
            weight_decay=recipe.weight_decay,
            foreach=True if self.tuned else None,
        )
        for epoch in range(recipe.epochs):
            factor = schedule(epoch / recipe.epochs)
            descent.param_groups[0]["lr"] = recipe.learning_rate * factor
            order = torch.randperm(len(self.y), device=self.device)
            for which in order.split(recipe.batch):
                loss = functional.cross_entropy(net(self.batch(which)), self.y[which])
                descent.zero_grad()
                loss.backward()
                descent.step()
        return net

    def predict(self, net: torch.nn.Module) -> NDArray[np.float32]:
        """Let a network predict the test set."""
        x = torch.from_numpy(np.ascontiguousarray(self.data.x_test)).to(self.device)
        with torch.inference_mode():
            net.eval()
            parts = [
                net((each.float() - self.mean) * self.scale) for each in x.split(512)
            ]
        logits: NDArray[np.float32] = torch.cat(parts).cpu().numpy()
        return logits


def pictures(objects: int = 128 * STEPS) -> Data:
    """Make pictures of CIFAR's shape, whose content does not matter for time."""
    random = np.random.default_rng(0)
    x = random.integers(0, 256, (objects, 3, 32, 32), np.uint8)
    y = random.integers(0, 10, objects)
    return Data("noise", x, y, x[:256], y[:256], 10, (3, 32, 32))


def large_digits() -> Data:
    """Make pictures of CIFAR's shape of the digits, to compare what is learned."""
    digits = load_data("digits")

    def enlarged(x: NDArray[np.float32]) -> NDArray[np.uint8]:
        square = np.repeat(np.repeat(x.reshape(-1, 1, 8, 8), 4, 2), 4, 3)
        return np.repeat((square * 15).astype(np.uint8), 3, 1)

    x, y = enlarged(digits.x_train), digits.y_train
    test = enlarged(digits.x_test)
    return Data("large digits", x, y, test, digits.y_test, 10, (3, 32, 32))


def timed(work: Callable[[], Any], device: torch.device) -> float:
    """Time some work, all that it has begun on the device included."""
    begun = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - begun


class Loops:
    """T and N, in a process of their own."""

    def __init__(
        self, data: Data, family: str, width: int, recipe: Recipe, device: torch.device
    ) -> None:
        self.device = device
        where = (data, family, width, recipe, device)
        self.naive = PlainLoop(*where, tuned=False, last=False)
        layouts = (False, True) if data.pictures else (False,)
        self.tuned = [PlainLoop(*where, tuned=True, last=last) for last in layouts]

    def times(self) -> tuple[float, float]:
        """Time T and N, for one network."""
        cores, times = torch.get_num_threads(), []
        for each, threads in itertools.product(self.tuned, {1, cores}):
            torch.set_num_threads(threads)
            times.append(timed(functools.partial(each.train, 1), self.device))
        torch.set_num_threads(cores)
        naive = timed(functools.partial(self.naive.train, 1), self.device)
        return min(times), naive


def begin(*where: Any) -> None:
    """Make the loops of this process."""
    torch.backends.cudnn.allow_tf32 = False
    globals()["LOOPS"] = Loops(*where)


def loops_take() -> tuple[float, float]:
    """Time the loops of this process."""
    times: tuple[float, float] = globals()["LOOPS"].times()
    return times


def compare(
    data: Data, family: str, width: int, device: torch.device, rounds: int
) -> str:
    """Let T, N and E take turns, and write a row of the table."""
    recipe = Recipe(epochs=1, learning_rate=0.01, weight_decay=3e-4)
    steps = STEPS
    if not data.pictures:  # ten steps an epoch, and so short that it takes more of them
        recipe = dataclasses.replace(recipe, epochs=STEPS)
        steps = 10 * STEPS
    where = (data, family, width, recipe, device)
    planned = plan(data, family, width, recipe, device=device.type)
    networks = planned.together
    seeds = range(networks)

    def ensize() -> float:
        trained = train(
            *(data, family, width, seeds, recipe),
            study="benchmark",
            device=device.type,
            way=planned.way,
        )
        # Without what makes the committee and predicts, which loops have not either.
        return sum(each.seconds for each in trained)

    over_t, over_n, of_t = [], [], []
    process = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, process, begin, where) as pool:
        pool.submit(loops_take).result(), ensize()  # warm
        for _ in range(rounds):
            # The better of two turns of each, so that a pause of the machine in one
            # of them counts for neither.
            turns = [
                (*pool.submit(loops_take).result(), ensize() / networks)
                for _ in range(2)
            ]
            t, n, e = map(min, zip(*turns, strict=True))
            over_t.append(t / e)
            over_n.append(n / e)
            of_t.append(t / steps)
    t, n = statistics.median(over_t), statistics.median(over_n)
    return (
        f"| {family}, w = {width} | {networks} | {planned.way} |"
        f" {1e3 * statistics.median(of_t):.2f} ms | {t:.2f} ({min(over_t):.2f} to"
        f" {max(over_t):.2f}) | {n:.2f} ({min(over_n):.2f} to {max(over_n):.2f}) |"
    )


def scores_of(logits: Sequence[NDArray[np.float32]], data: Data) -> Any:
    """Score each network alone: CNLL and accuracy."""
    curves = [
        score(Predictions.of([each], data.y_test), n=[1], keep_odd=True)
        for each in logits
    ]
    return [
        np.array([getattr(curve, key)[0] for curve in curves])
        for key in ("cnll", "accuracy")
    ]


def equal(
    data: Data, family: str, width: int, recipe: Recipe, networks: int, device: Any
) -> list[str]:
    """Compare what committees and the plain loop have learned: Welch's test."""
    loop = PlainLoop(data, family, width, recipe, device, tuned=True, last=True)
    alone = [loop.predict(loop.train(seed)) for seed in range(networks)]
    seeds = range(networks)
    together = train(
        *(data, family, width, seeds, recipe), study="equal", device=device.type
    )
    rows = []
    pairs = zip(
        ("CNLL", "accuracy"),
        scores_of([each.logits for each in together], data),
        scores_of(alone, data),
        strict=True,
    )
    for name, ours, theirs in pairs:
        p = stats.ttest_ind(ours, theirs, equal_var=False).pvalue
        rows.append(
            f"| {family}, w = {width}, {data.name} | {name} | {ours.mean():.4f} ±"
            f" {ours.std(ddof=1):.4f} | {theirs.mean():.4f} ± {theirs.std(ddof=1):.4f}"
            f" | {networks} + {networks} | {p:.2f} |"
        )
    return rows


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--family", choices=("mlp", "vgg16"), help="one of them alone")
    parser.add_argument("--equal", action="store_true", help="compare what is learned")
    given = parser.parse_args()
    if given.device == "cuda" and not torch.cuda.is_available():
        parser.error("there is no GPU here; this command is for machines that have one")
    device = torch.device(given.device)
    torch.backends.cudnn.allow_tf32 = False  # float32 for all three
    digits, noise = load_data("digits"), pictures()
    name = torch.cuda.get_device_name() if device.type == "cuda" else platform.machine()
    print(
        f"n = {given.rounds} rounds of {STEPS} steps with batches of 128, {10 * STEPS}"
        " for perceptrons; PyTorch"
        f" {torch.__version__}, {torch.get_num_threads()} threads, {name}, float32\n"
    )
    print("| networks | together | way | step of T | over T | over N |")
    print("|---|---:|---|---:|---:|---:|")
    for family, data, widths in (
        ("mlp", digits, MLP_WIDTHS),
        ("vgg16", noise, VGG_WIDTHS),
    ):
        for width in widths if given.family in {None, family} else ():
            print(compare(data, family, width, device, given.rounds), flush=True)
    if given.equal:
        print("\n| networks | score | ensize | plain loop | n | p |")
        print("|---|---|---:|---:|---:|---:|")
        mlp = Recipe(epochs=20, learning_rate=0.1, weight_decay=3e-4, dropout=0.1)
        vgg = Recipe(epochs=40, learning_rate=0.02, weight_decay=3e-4)
        large = large_digits()
        for where in (
            (digits, "mlp", 16, mlp, 400),
            (large, "vgg16", 4, vgg, 32),
        ):
            if given.family in {None, where[1]}:
                print("\n".join(equal(*where, device)), flush=True)


if __name__ == "__main__":
    main()
