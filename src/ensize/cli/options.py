"""Options that several verbs share, and what is loaded by them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ensize.checks import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ensize.predictions import Predictions
    from ensize.sketches import Sketch


class Kind(StrEnum):
    """What files of predictions hold."""

    LOGITS = "logits"
    LOG_PROBABILITIES = "log-probabilities"
    PROBABILITIES = "probabilities"


class Draw(StrEnum):
    """Which ensembles are scored."""

    ALL = "all"
    DISJOINT = "disjoint"


class Apply(StrEnum):
    """When the temperature is applied."""

    BEFORE = "before"
    AFTER = "after"


class Weights(StrEnum):
    """How the points of a curve are weighted."""

    INVERSE = "inverse"
    UNIFORM = "uniform"


class Method(StrEnum):
    """How a law is fitted."""

    ROBUST = "robust"
    PAPER = "paper"


Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="PREDICTIONS",
        help="A store, or .npy, .npz or .safetensors files of (objects, classes) or"
        " (networks, objects, classes).",
    ),
]
Targets = Annotated[
    Path | None,
    typer.Option(help="The true classes, a file of integers; a store has them."),
]
OfKind = Annotated[Kind, typer.Option("--kind", help="What the files hold.")]
PoolName = Annotated[
    str | None, typer.Option("--pool", help="Which pool, where a store has several.")
]
ApplyAt = Annotated[
    Apply,
    typer.Option("--apply", help="Apply the temperature before or after averaging."),
]
CalibrateOn = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Predictions of the same networks on other objects, to choose the"
        " temperature there; may be given several times.",
    ),
]
CalibrateTargets = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The true classes of these.")
]
KeepOdd = Annotated[
    bool, typer.Option("--keep-odd", help="Keep networks that did not train.")
]
Seed = Annotated[int, typer.Option(min=0, help="Of draws and halves.")]


def load_given(
    files: Sequence[Path], targets: Path | None, kind: Kind, pool: str | None
) -> Predictions | Sketch:
    """Load one file, several, or a store."""
    from ensize.reading import load

    source: Any = files[0] if len(files) == 1 else list(files)
    return load(source, targets=targets, kind=kind, pool=pool)


def load_separate(
    files: Sequence[Path] | None, targets: Path | None, kind: Kind, pool: str | None
) -> Predictions | Sketch | None:
    """Load what --calibrate-on and --calibrate-targets name, if anything."""
    if files:
        of_store = any(path.is_dir() for path in files)
        return load_given(files, targets, kind, pool if of_store else None)
    if targets:
        raise InputError("--calibrate-targets goes with --calibrate-on FILE; give both")
    return None


def whole_numbers(name: str, text: str) -> list[int]:
    """Read a list such as 1,2,4."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"{name} is {text!r}; give whole numbers with commas between, as in 1,2,4"
        ) from None
