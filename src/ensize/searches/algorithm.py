"""MemorySplitSearch: the best split of a budget, from as few networks as will do."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
from typing import TYPE_CHECKING, Any

from ensize.checks import InputError, one_of, whole
from ensize.curves import score
from ensize.forecasts import forecast
from ensize.planes import Verdict, budget_of
from ensize.planes.readings import Luck
from ensize.predictions import Pool, Predictions
from ensize.scores import APPLY
from ensize.searches.shelves import Memory, Record
from ensize.searches.steps import TRAINED, Cost, Step, Wanted, table_of
from ensize.stores import Store

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable

    from ensize.searches.shelves import Shelf
    from ensize.sketches import Sketch

    Networks = Predictions | Sketch

METHODS = ("robust", "paper")

# Algorithm 1 measures ensembles of up to so many networks.
_MEASURED = 4


def plain_pool(size: int) -> Pool:
    """Name the pool of a size, where networks of every size can be had."""
    return Pool(f"size-{size}", size=size)


class MemorySplitSearch:
    """Seek the best split of a budget: ask for networks, and be told what they say.

    Parameters
    ----------
    budget
        In parameters, a number or text such as ``"15.3M"``.
    smallest
        Parameters of the family's smallest network; no split has smaller ones.
    method
        ``"paper"`` does exactly what Algorithm 1 says: of min(n, 6) networks of size
        B/n, CNLL of n ≤ 4 is measured, and CNLL of more read off the law of CNLL₁ to
        CNLL₄. ``"robust"`` takes all networks that are there, measures what they can
        tell and forecasts the rest by our method; and where the chosen split turns out
        worse than its forecast, it looks again whether another one is better.
    patience
        How many steps that do not improve are not yet the end; 0 in Algorithm 1.
    pool_at
        What the family has at a size: a pool whose networks are at most so large.
    store
        A store, or its path, that keeps the networks and the search itself. The same
        search made again goes on from there, and takes what the store has already.
        Without one all stays in memory.
    apply, keep_odd, seed
        As for `ensize.score`. Networks that did not train are replaced by others.

    Examples
    --------
    >>> from ensize.synthetic import Family
    >>> family = Family.splits_pay(objects=2000, luck=0.01)
    >>> search = MemorySplitSearch("400k", smallest=family.smallest)
    >>> while wanted := search.ask():
    ...     search.tell(wanted, family.of(wanted.size).predictions(wanted.seeds))
    >>> search.best.n, family.splits(400_000).best
    (4, 4)
    >>> search.cost.networks_trained, search.cost.networks_full
    (13, 15)
    """

    def __init__(
        self,
        budget: float | str,
        *,
        smallest: int = 1,
        method: str = "robust",
        patience: int = 0,
        pool_at: Callable[[int], Pool] = plain_pool,
        store: Store | str | os.PathLike[str] | None = None,
        apply: str = "before",
        keep_odd: bool = False,
        seed: int = 0,
    ) -> None:
        self.budget = budget_of(budget)
        self.smallest = whole("smallest", smallest, 1)
        if self.budget < self.smallest:
            raise InputError(
                f"budget is {budget!r}, but the smallest network has"
                f" {self.smallest:,} parameters; give at least that"
            )
        self.method = one_of("method", method, METHODS)
        self.patience = whole("patience", patience)
        self._scoring: dict[str, Any] = {
            "apply": one_of("apply", apply, APPLY),
            "seed": whole("seed", seed),
        }
        self._keep_odd = keep_odd
        self._pool_at = pool_at
        self._shelf: Shelf = Memory()
        self._record, self._path = Record(), None
        if store is not None:
            opened = self._shelf = Store(store)
            said = json.dumps(self.options, sort_keys=True).encode()
            digest = hashlib.sha256(said).hexdigest()[:8]
            name = f"{self.budget:.0f}-{method}-{digest}.json"
            self._path = opened.path / "searches" / name
            self._record = Record.read(self._path)

    @property
    def options(self) -> dict[str, Any]:
        """The choices that shape the search."""
        return {
            "budget": self.budget,
            "smallest": self.smallest,
            "method": self.method,
            "patience": self.patience,
            **self._scoring,
            "keep_odd": self._keep_odd,
        }

    def ask(self) -> Wanted | None:
        """Name the networks wanted next, none of which is there; None when all is."""
        wanted = self._go_on()
        if wanted is not None:
            asked = self._record.asked.setdefault(wanted.pool.name, [])
            if new := set(wanted.seeds).difference(asked):
                asked[:] = sorted({*asked, *new})
                self._save()
        return wanted

    def tell(
        self,
        wanted: Wanted,
        predictions: Any,
        targets: Any = None,
        *,
        kind: str = "logits",
    ) -> None:
        """Take the predictions of networks that were asked for.

        Of networks that a trainer itself has put into the store of the search, nothing
        need be told.

        Parameters
        ----------
        wanted
            Which networks these are: what `ask` returned, or a part of it as from
            `Wanted.each`.
        predictions
            One array of (objects, classes) for each seed, in their order; or what
            `ensize.load` returned.
        targets
            The true classes, with arrays.
        kind
            What the arrays hold: logits, log-probabilities or probabilities.
        """
        if not isinstance(predictions, Predictions):
            if targets is None:
                raise InputError(
                    "arrays of predictions were told without targets; hand in the true"
                    " classes too: tell(wanted, arrays, targets)"
                )
            predictions = Predictions.of(predictions, targets, kind=kind)
        if predictions.networks != len(wanted.seeds):
            raise InputError(
                f"{len(wanted.seeds)} networks were wanted, and {predictions.networks}"
                " are told of; tell of all, or of each alone with wanted.each()"
            )
        known = {k: each for k, each in vars(wanted.pool).items() if k != "name"}
        for i, seed in enumerate(wanted.seeds):
            logits = predictions.logits(i, 0, predictions.objects)
            self._shelf.add(
                wanted.pool.name, seed, logits, predictions.targets, **known
            )
        self._go_on()

    def lose(self, wanted: Wanted) -> None:
        """Say that these networks cannot be trained: others are asked for instead.

        A size of which more networks are lost than its split needs is given up.
        """
        self._lose(wanted.pool.name, wanted.seeds)
        self._go_on()

    @property
    def steps(self) -> tuple[Step, ...]:
        """The splits looked at so far."""
        return tuple(self._record.steps)

    @property
    def best(self) -> Step | None:
        """The best split so far; None where no network would train."""
        trained = [each for each in self.steps if not math.isnan(each.cnll)]
        if self.method == "paper":
            return min(trained, key=lambda each: each.cnll, default=None)
        return min(trained, key=lambda each: each.value, default=None)

    @property
    def done(self) -> bool:
        """Whether the best split is known and all its networks are there."""
        return self._passed() and (self.best is None or self.best.settled)

    @property
    def verdict(self) -> Verdict | None:
        """What the search has found; None as long as it goes on."""
        best = self.best
        if not self.done:
            return None
        if best is None:
            return Verdict("cannot be said", "no network of any size would train")
        single = self.steps[0]
        several = [each for each in self.steps if each.n > 1]
        rival = min(several, key=lambda each: each.value, default=None)
        rival = rival if best.n == 1 else best
        if rival is None:
            sentence = "the family has no networks of half the budget"
        else:
            sentence = f"{rival.saying}, against {single.saying}"
        if rival is not None and rival.value < single.value:
            return Verdict("split", f"a split is worth it: {sentence}")
        return Verdict("no split", f"no split is worth it here: {sentence}")

    @property
    def warnings(self) -> tuple[str, ...]:
        """What should be known before the verdict is believed."""
        found = [
            f"no {each.n} networks of pool {each.pool!r} could be trained, and their"
            " split is left out"
            for each in self.steps
            if math.isnan(each.cnll)
        ]
        if self.done and len(self.steps) > 1 and self.best is self.steps[-1]:
            found.append(
                "the best split is the last that the family's smallest network allows;"
                " with smaller networks more of them might be better still"
            )
        return tuple(found)

    @property
    def cost(self) -> Cost:
        """What it took so far, against training all these splits in full."""
        names = {each.pool for each in self.steps}
        there = {name: set(self._there(name)) for name in names}
        return Cost.of(self.steps, there, self._record.asked)

    def records(self) -> list[dict[str, Any]]:
        """List the steps as plain records."""
        return [dataclasses.asdict(each) for each in self.steps]

    def table(self) -> str:
        """Write the steps as a table for reading."""
        return table_of(self.steps, self.best)

    def _go_on(self) -> Wanted | None:
        """Take all steps that the networks at hand allow; say what the next one lacks.

        The loop of Algorithm 1, and after it the networks of the best split.
        """
        while not self._passed():
            n = 2 ** len(self.steps)
            found = self._gather(n, min(n, TRAINED))
            if isinstance(found, Wanted):
                return found
            step = self._worth(n, found)
            better = step.value < min((s.value for s in self.steps), default=math.inf)
            self._record.steps.append(dataclasses.replace(step, better=better))
            self._save()
        while not self.done and (best := self.best) is not None:
            found = self._gather(best.n, best.n)
            if isinstance(found, Wanted):
                return found
            if found is None:
                told = dataclasses.replace(best, cnll=math.nan, source="not trained")
            else:
                measured = self._measured(best.n, found).cnll
                told = dataclasses.replace(best, measured=measured)
            self._record.steps[self.steps.index(best)] = told
            self._save()
        return None

    def _gather(self, n: int, need: int) -> Networks | Wanted | None:
        """Read the sound networks of a split, or say which are still to be trained.

        None stands for a size that does not train.
        """
        pool = self._pool(n)
        while True:
            there = self._there(pool.name)
            lost = self._record.lost.get(pool.name, [])
            if len(there) < need:
                if len(lost) > need:
                    return None
                free = (each for each in itertools.count() if each not in lost + there)
                seeds = tuple(itertools.islice(free, need - len(there)))
                return Wanted(n, self._size(n), pool, seeds)
            used = there[:need] if self.method == "paper" else there
            networks = self._shelf.read(pool.name, seeds=used)
            if self._keep_odd:
                return networks
            odd = score(networks, n=[1], **self._scoring).odd
            if not odd:
                return networks
            seeds_of = dict(zip(networks.labels, used, strict=True))
            self._lose(pool.name, [seeds_of[label] for label in odd])

    def _worth(self, n: int, networks: Networks | None) -> Step:
        """Measure a split, or forecast it."""
        pool = self._pool(n)
        if networks is None:
            size = int(pool.size or 0)
            return Step(n, size, pool.name, 0, math.nan, source="not trained")
        count = networks.networks
        if n <= (_MEASURED if self.method == "paper" else count):
            return self._measured(n, networks)
        ahead = forecast(
            networks, to=n, method=self.method, keep_odd=True, **self._scoring
        )
        cnll, low, high = (float(x[0]) for x in (ahead.cnll, ahead.low, ahead.high))
        size = int(pool.size or 0)
        return Step(n, size, pool.name, count, cnll, low, high, source="forecast")

    def _measured(self, n: int, networks: Networks) -> Step:
        pool, count = self._pool(n), networks.networks
        # Two points, so that luck can be read at one that leaves a network out.
        points = [n, n + 1] if n < count else sorted({max(1, n - 1), n})
        curve = score(networks, n=points, keep_odd=True, **self._scoring)
        low, high = math.nan, math.nan
        if count > 2:
            luck = Luck.of(curve, "cnll", self._scoring["seed"])
            low, high = luck.reading(n).interval
            low = max(low, 0.0)
        size, cnll = int(pool.size or 0), float(curve.cnll[points.index(n)])
        return Step(n, size, pool.name, count, cnll, low, high)

    def _passed(self) -> bool:
        """Whether the optimum is passed, or there are no smaller networks."""
        if self.budget / 2 ** len(self.steps) < self.smallest:
            return True
        better = [k for k, each in enumerate(self.steps) if each.better]
        return bool(better) and len(self.steps) - 1 - better[-1] > self.patience

    def _size(self, n: int) -> int:
        return int(self.budget / n)

    def _pool(self, n: int) -> Pool:
        size = self._size(n)
        pool = self._pool_at(size)
        if pool.size is None or pool.size > size:
            raise InputError(
                f"pool_at({size}) is the pool {pool.name!r} of the size {pool.size};"
                " return one that has a size, and not a larger one"
            )
        return pool

    def _there(self, name: str) -> list[int]:
        lost = self._record.lost.get(name, ())
        return [seed for seed in self._shelf.seeds(name) if seed not in lost]

    def _lose(self, name: str, seeds: Iterable[int]) -> None:
        lost = self._record.lost.setdefault(name, [])
        lost[:] = sorted({*lost, *seeds})
        self._save()

    def _save(self) -> None:
        if self._path is not None:
            self._record.write(self._path, self.options)
