"""Shelves: where a search keeps the networks it is told of, and its record.

A store keeps them on the disk, so that a search outlasts the process. Without one they
stay in memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from ensize.checks import InputError
from ensize.predictions import Pool, Predictions
from ensize.searches.steps import Step
from ensize.stores.files import brief, rewrite
from ensize.stores.seals import read_sealed_json, sealed_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ensize.sketches import Sketch


_REMEDY = "delete it, and the search goes through the networks of its store again"


class Shelf(Protocol):
    """What a store does for a search."""

    def seeds(self, name: str) -> Sequence[int]:
        """List the networks of a pool, ascending; none where there is no such pool."""

    def read(self, name: str, seeds: Sequence[int]) -> Predictions | Sketch:
        """Read some of them."""

    def add(
        self, name: str, seed: int, logits: Any, targets: Any, **known: Any
    ) -> bool:
        """Keep a network."""


class Memory:
    """Networks in memory."""

    def __init__(self) -> None:
        self._pools: dict[str, dict[int, Any]] = {}
        self._known: dict[str, dict[str, Any]] = {}
        self._targets: Any = None

    def seeds(self, name: str) -> list[int]:
        """List the networks of a pool."""
        return sorted(self._pools.get(name, ()))

    def read(self, name: str, seeds: Sequence[int]) -> Predictions:
        """Gather some of them."""
        return Predictions.gather(
            [self._pools[name][seed] for seed in seeds],
            self._targets,
            labels=[f"{name}/{seed}" for seed in seeds],
            pool=Pool(name, **self._known[name]),
        )

    def add(
        self, name: str, seed: int, logits: Any, targets: Any, **known: Any
    ) -> bool:
        """Keep a network."""
        if self._targets is None:
            self._targets = targets
        if not np.array_equal(self._targets, targets):
            raise InputError(
                f"{name}/{seed} comes with other targets than the networks before; a"
                " search is about one set of objects in one order"
            )
        self._pools.setdefault(name, {})[seed] = logits
        self._known[name] = known
        return True


@dataclass
class Record:
    """What a search has decided and asked for: all that its networks do not tell.

    Parameters
    ----------
    steps
        The splits that were looked at; what they were worth stays as it was, whatever
        networks are added.
    asked, lost
        Of each pool, the networks that were asked for, and those that are of no use.
    """

    steps: list[Step] = field(default_factory=list)
    asked: dict[str, list[int]] = field(default_factory=dict)
    lost: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a record; a new one where there is none."""
        if not path.exists():
            return cls()
        said = read_sealed_json(path, _REMEDY)
        try:
            return cls(
                [_step(each) for each in said["steps"]],
                *(
                    {str(name): [int(s) for s in seeds] for name, seeds in each.items()}
                    for each in (said["asked"], said["lost"])
                ),
            )
        except (
            *(ArithmeticError, AttributeError, KeyError, TypeError, ValueError),
        ) as error:
            raise InputError(
                f"{path} is not as it was written ({brief(error)}); {_REMEDY}"
            ) from error

    def write(self, path: Path, options: dict[str, Any]) -> None:
        """Write it whole, in place of the last one."""
        said = {
            "options": options,
            "steps": [_plain(each) for each in self.steps],
            "asked": self.asked,
            "lost": self.lost,
        }
        rewrite(path, [sealed_json(said)])


_NUMBERS = ("cnll", "low", "high", "measured")


def _plain(step: Step) -> dict[str, Any]:
    """Turn a step into what JSON holds: it has no NaN."""
    return {
        key: None if key in _NUMBERS and math.isnan(value) else value
        for key, value in vars(step).items()
    }


def _step(said: dict[str, Any]) -> Step:
    known: dict[str, Any] = {
        key: math.nan if key in _NUMBERS and value is None else value
        for key, value in said.items()
    }
    step = Step(**known)
    for key in ("n", "size", "networks", *_NUMBERS):
        value = getattr(step, key)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"{key} is {value!r}")
    return step
