"""Loop: seeds in, logits out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from ensize.predictions import Progress
    from ensize.train.images import Data


class Interrupted(Exception):  # noqa: N818 - it was asked for, and is no error
    """Training was asked to stop; what was done stands in the checkpoint."""


@dataclass(frozen=True)
class Recipe:
    """How a network is trained.

    Parameters
    ----------
    epochs, batch, momentum
        Of stochastic gradient descent.
    learning_rate
        At the beginning; the paper's schedule lowers it.
    weight_decay, dropout
        Regularization.
    augment
        Whether pictures are cropped and mirrored at random.
    """

    epochs: int
    learning_rate: float
    weight_decay: float
    dropout: float = 0.0
    batch: int = 128
    momentum: float = 0.9
    augment: bool = True


@dataclass(frozen=True)
class Plan:
    """How the networks of one width are trained best on a device, as measured.

    Parameters
    ----------
    together
        How many at once.
    way
        How their layers are computed.
    seconds
        What one step of all of them takes.
    bytes
        The memory that they take.
    """

    together: int
    way: str
    seconds: float
    bytes: int


@dataclass(frozen=True, eq=False)
class Trained:
    """A network that went through all its epochs, or failed.

    Parameters
    ----------
    seed
        Which one.
    logits
        For the objects of the test set.
    weights
        By the names of the plain PyTorch module.
    seconds, prediction_seconds
        Its share of the time that its committee took to train and to predict.
    failure
        Why it is of no use, or None.
    """

    seed: int
    logits: NDArray[np.float32]
    weights: dict[str, NDArray[np.float32]]
    seconds: float
    prediction_seconds: float
    failure: str | None = None


def plan(
    data: Data,
    family: str,
    width: int,
    recipe: Recipe,
    *,
    device: str | None = None,
    precision: str = "float32",
) -> Plan:
    """Choose how to train, by a short measurement."""
    raise NotImplementedError


def train(
    data: Data,
    family: str,
    width: int,
    seeds: Sequence[int],
    recipe: Recipe | Sequence[Recipe],
    *,
    study: str,
    checkpoint: Path | None = None,
    every: float = 120.0,
    stop: Callable[[], bool] | None = None,
    progress: Progress | None = None,
    **where: Any,
) -> list[Trained]:
    """Train networks of one width together."""
    raise NotImplementedError
