"""Steps: what a search asks for, and what it finds out."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ensize.predictions import Pool


# Algorithm 1 trains so many networks of a size before the best split is known.
TRAINED = 6


@dataclass(frozen=True)
class Wanted:
    """Networks that a search wants trained.

    Parameters
    ----------
    n, size
        The split: so many networks of the size B/n; those of the pool may be smaller.
    pool
        What the networks have in common: a name, and the size that the family has.
    seeds
        One network each.
    """

    n: int
    size: int
    pool: Pool
    seeds: tuple[int, ...]

    def each(self) -> tuple[Wanted, ...]:
        """Take the networks apart, to tell of each when it is trained."""
        return tuple(dataclasses.replace(self, seeds=(seed,)) for seed in self.seeds)


@dataclass(frozen=True)
class Step:
    """A split that was looked at, and what it is worth.

    Parameters
    ----------
    n, size, pool
        So many networks of a pool, whose networks have so many parameters.
    networks
        How many networks were there to tell.
    cnll, low, high
        The expected CNLL, with an interval of 90 %. NaN stands for what is not known:
        the interval where no network can be left out, CNLL where none would train.
    source
        `measured`, `forecast`, or `not trained`.
    better
        Whether it was better than all before.
    measured
        CNLL of the n networks of a split that was forecast, once all are there.
    """

    n: int
    size: int
    pool: str
    networks: int
    cnll: float
    low: float = math.nan
    high: float = math.nan
    source: str = "measured"
    better: bool = False
    measured: float = math.nan

    @property
    def value(self) -> float:
        """What is best known of its CNLL; infinite where no network would train."""
        known = self.cnll if math.isnan(self.measured) else self.measured
        return math.inf if math.isnan(known) else known

    @property
    def settled(self) -> bool:
        """Whether its CNLL was measured."""
        return self.source == "measured" or not math.isnan(self.measured)

    @property
    def saying(self) -> str:
        """Say what it is worth, for sentences."""
        several = f"{self.n} networks" if self.n > 1 else "1 network"
        if math.isinf(self.value):
            return f"{several} of {self.size:,} parameters, none of which would train"
        how = "" if self.settled else " (forecast)"
        return f"{several} of {self.size:,} parameters with CNLL {self.value:.4f}{how}"


@dataclass(frozen=True)
class Cost:
    """What a search took, against training all of its splits in full.

    Parameters
    ----------
    networks_trained, parameters_trained
        What was trained because the search asked for it.
    networks_found, parameters_found
        What it took without having asked.
    networks_full, parameters_full
        What it takes to train n networks for each of its steps.
    """

    networks_trained: int
    parameters_trained: int
    networks_found: int
    parameters_found: int
    networks_full: int
    parameters_full: int

    @classmethod
    def of(
        cls,
        steps: Sequence[Step],
        there: Mapping[str, set[int]],
        asked: Mapping[str, Sequence[int]],
    ) -> Cost:
        """Count, from the networks that are there and those that were asked for."""
        size, needed = {each.pool: each.size for each in steps}, dict.fromkeys(there, 0)
        for each in steps:
            need = each.n if each.settled else min(each.n, TRAINED)
            needed[each.pool] = max(need, needed[each.pool])
        trained = {k: len(there[k].intersection(asked.get(k, ()))) for k in there}
        found = {k: max(0, min(needed[k], len(there[k])) - trained[k]) for k in there}
        return cls(
            networks_trained=sum(trained.values()),
            parameters_trained=sum(size[k] * trained[k] for k in there),
            networks_found=sum(found.values()),
            parameters_found=sum(size[k] * found[k] for k in there),
            networks_full=sum(each.n for each in steps),
            parameters_full=sum(each.n * each.size for each in steps),
        )


def table_of(steps: Sequence[Step], best: Step | None) -> str:
    """Write steps as a table for reading."""
    rows = [["n", "pool", "size", "networks", "cnll", "low", "high", "measured", ""]]
    for each in steps:
        values = (each.cnll, each.low, each.high, each.measured)
        figures = ("–" if math.isnan(value) else f"{value:.5f}" for value in values)
        notes = each.source + (", the best" if each is best else "")
        counts = (f"{each.size:,}", str(each.networks))
        rows.append([str(each.n), each.pool, *counts, *figures, notes])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
