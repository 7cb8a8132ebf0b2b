"""Predictions: what a pool of networks said about the same objects."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import numpy as np

from ensize.checks import InputError, class_labels, one_of, viewed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

Kind = Literal["logits", "log-probabilities", "probabilities"]
KINDS: tuple[Kind, ...] = get_args(Kind)

# Told what is being done and which share of it is done.
Progress = Callable[[str, float], None]


def sample_size(classes: int) -> int:
    """Tell how many objects show what logits are like: fewer of very many classes."""
    return min(256, max(8, 4_000_000 // classes))


@dataclass(frozen=True)
class Pool:
    """What the networks of one pool have in common."""

    name: str = "pool"
    family: str | None = None
    width: float | None = None
    size: int | None = None
    multiply_adds: int | None = None
    recipe: str | None = None


class Rows(Protocol):
    """A 2-D array, in memory or mapped, that is read by slices of its rows."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(objects, classes)."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """What it holds."""

    def __getitem__(self, rows: slice, /) -> NDArray[Any]:
        """Read some rows."""


@dataclass(frozen=True, eq=False)
class Predictions:
    """The logits of a pool on the same objects, with the true classes.

    Nothing is copied: each network is read in blocks of rows, when needed, and
    each block is checked as it is read.

    Parameters
    ----------
    rows
        One array of shape (objects, classes) for each network.
    targets
        The true class of each object.
    labels
        A name for each network, for messages: its file, its seed.
    kind
        What the rows hold.
    pool
        What the networks have in common.
    """

    rows: tuple[Rows, ...]
    targets: NDArray[np.int64]
    labels: tuple[str, ...]
    kind: Kind = "logits"
    pool: Pool = dataclasses.field(default_factory=Pool)

    @classmethod
    def of(
        cls,
        networks: Any,
        targets: Any,
        *,
        kind: str = "logits",
        labels: Sequence[str] | None = None,
        pool: Pool | None = None,
    ) -> Predictions:
        """Take arrays in memory: one of three dimensions, or a list of 2-D ones.

        Anything that NumPy can view will do, PyTorch and JAX tensors included.

        >>> pool = Predictions.of([[[2.0, 0.0]], [[0.5, 1.0]]], [0])
        >>> pool.networks, pool.objects, pool.classes
        (2, 1, 2)
        """
        if isinstance(networks, (list, tuple)):
            arrays = [viewed(f"network {i}", each) for i, each in enumerate(networks)]
            if arrays and all(each.ndim == 1 for each in arrays):
                arrays = [viewed("predictions", list(networks))]
        else:
            stacked = viewed("predictions", networks)
            if stacked.ndim not in (2, 3):
                raise InputError(
                    f"predictions have {stacked.ndim} dimensions; hand in"
                    " (networks, objects, classes) or (objects, classes)"
                )
            arrays = list(stacked) if stacked.ndim == 3 else [stacked]
        if labels is None:
            labels = [f"network {i}" for i in range(len(arrays))]
        return cls.gather(arrays, targets, kind=kind, labels=labels, pool=pool)

    @classmethod
    def gather(
        cls,
        rows: Sequence[Rows],
        targets: Any,
        *,
        labels: Sequence[str],
        kind: str = "logits",
        pool: Pool | None = None,
        truth: str = "targets",
    ) -> Predictions:
        """Check that these networks speak of the same objects, and put them together.

        This is the gate that every way of loading passes; `truth` is what messages
        call the targets, such as their file.
        """
        one_of("kind", kind, KINDS)
        classes_of = class_labels(truth, targets)
        if not rows:
            raise InputError("there are no predictions; hand in at least one network")
        for label, each in zip(labels, rows, strict=True):
            _check_shape(label, each, rows[0], labels[0], truth, len(classes_of))
        beyond = classes_of >= rows[0].shape[1]
        if beyond.any():
            first = int(np.argmax(beyond))
            raise InputError(
                f"{truth} has class {classes_of[first]} at object {first}, but"
                f" {labels[0]} has {rows[0].shape[1]} classes (0 to"
                f" {rows[0].shape[1] - 1}); check that targets and predictions belong"
                " together"
            )
        gathered = cls(
            tuple(rows),
            classes_of,
            tuple(labels),
            one_of("kind", kind, KINDS),  # type: ignore[arg-type]
            pool or Pool(),
        )
        for label, each in zip(labels, rows, strict=True):
            # To catch one kind passed as another.
            _check_kind(label, np.asarray(each[: sample_size(each.shape[1])]), kind)
        return gathered

    @property
    def networks(self) -> int:
        """How many networks there are."""
        return len(self.rows)

    @property
    def objects(self) -> int:
        """How many objects they were asked about."""
        return len(self.targets)

    @property
    def classes(self) -> int:
        """How many classes they choose from."""
        return int(self.rows[0].shape[1])

    @functools.cached_property  # each block asks, and there may be hundreds of networks
    def dtype(self) -> type[np.float32 | np.float64]:
        """The precision to compute in, float64 where it was handed in."""
        wide = any(each.dtype.itemsize > 4 for each in self.rows)
        return np.float64 if wide else np.float32

    def logits(self, network: int, start: int, stop: int) -> NDArray[Any]:
        """Read some objects' logits of one network, checked, in `dtype`.

        Log-probabilities are logits; of probabilities the logarithm is taken, a
        probability of 0 standing for the smallest number of its type.
        """
        held = np.asarray(self.rows[network][start:stop])
        if held.dtype == np.float16 and self.dtype is np.float32:
            block = _halves().take(held.view(np.uint16))
        else:
            block = held.astype(self.dtype, copy=False)
        # One sum finds out whether all is finite; only an overflow needs the rest.
        if not np.isfinite(np.einsum("ij->", block)) and not np.isfinite(block).all():
            row, column = np.argwhere(~np.isfinite(block))[0]
            raise InputError(
                f"{self.labels[network]} has {block[row, column]} at object"
                f" {start + row}, class {column}; predictions must be finite: leave"
                " this network out, or predict again"
            )
        if self.kind != "logits":
            _check_kind(self.labels[network], block, self.kind, start, held.dtype)
        if self.kind == "probabilities":
            kept = held.dtype if held.dtype.kind == "f" else np.dtype(np.float32)
            tiny = np.finfo(kept).smallest_subnormal
            # Subnormal float32 numbers have a logarithm only in float64.
            block = np.log(np.maximum(block.astype(np.float64), float(tiny)))
            block = block.astype(self.dtype)
        return block

    def choose(self, networks: Iterable[int]) -> Predictions:
        """Keep only these networks."""
        networks = list(networks)
        return dataclasses.replace(
            self,
            rows=tuple(self.rows[i] for i in networks),
            labels=tuple(self.labels[i] for i in networks),
        )


@functools.cache
def _halves() -> NDArray[np.float32]:
    """Tabulate all float16 numbers: looking them up is quicker than casting."""
    return np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)


def _check_shape(
    label: str, each: Rows, first: Rows, name: str, truth: str, objects: int
) -> None:
    if len(each.shape) != 2:
        raise InputError(
            f"{label} has shape {tuple(each.shape)}; a network's predictions have two"
            " dimensions, (objects, classes)"
        )
    if each.dtype.kind not in "fiub":
        raise InputError(
            f"{label} holds values of type {each.dtype}; predictions are floats"
        )
    if each.shape[0] != objects:
        raise InputError(
            f"{label} speaks of {each.shape[0]} objects, but {truth} of {objects};"
            " both must be of the same objects in the same order"
        )
    if each.shape[1] < 2:
        raise InputError(
            f"{label} has {each.shape[1]} classes; a classifier has at least two (for"
            " a single logit z hand in the columns 0 and z)"
        )
    if each.shape[1] != first.shape[1]:
        raise InputError(
            f"{label} has {each.shape[1]} classes, but {name} has {first.shape[1]};"
            " the networks of a pool choose from the same classes"
        )


def _check_kind(
    label: str,
    block: NDArray[Any],
    kind: str,
    start: int = 0,
    held: np.dtype[Any] | None = None,
) -> None:
    """Refuse rows that contradict the declared kind."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = block.astype(np.float64)
        # What rounding to the type at hand can do to a sum of probabilities.
        eps = np.finfo(np.float32).eps
        kept = held or block.dtype
        if kept.kind == "f":
            eps = max(eps, np.finfo(kept).eps)
        slack = 4e-4 + 4 * float(eps)
        if kind == "logits":
            inside = ((values >= 0) & (values <= 1)).all()
            if inside and (np.abs(values.sum(axis=1) - 1) < slack).all():
                raise InputError(
                    f"{label} holds probabilities (rows between 0 and 1 that sum to"
                    " 1) where logits were declared; say kind='probabilities'"
                    " (--kind probabilities)"
                )
            return
        if kind == "probabilities":
            wrong = ((values < -slack) | (values > 1 + slack)).any(axis=1)
            total = values.sum(axis=1)
        else:
            wrong = (values > slack * np.maximum(1, np.abs(values))).any(axis=1)
            total = np.exp(np.minimum(values, 1)).sum(axis=1)
            slack = max(slack, 8 * float(eps) * 16)
        wrong |= ~(np.abs(total - 1) <= slack)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"{label} does not hold {kind} at object {start + row} (the"
                f" probabilities there sum to {total[row]:.6g}); if these are logits,"
                " say kind='logits' (--kind logits)"
            )
