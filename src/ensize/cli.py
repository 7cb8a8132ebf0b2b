"""The verbs on a terminal: parse, call, print.

Tables for people go to stdout, progress and warnings to stderr; `--json` prints one
JSON object to stdout and nothing else. A user's mistake ends with exit code 2 and one
sentence.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from ensize.checks import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ensize.predictions import Predictions, Progress
    from ensize.sketches import Sketch

app = typer.Typer(
    help="How many networks, and how large: scores of ensembles and their power laws.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
_out, _err = Console(soft_wrap=True), Console(stderr=True, soft_wrap=True)


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
StoreFolder = Annotated[Path, typer.Argument(metavar="STORE", help="A store.")]


@app.command()
def score(
    predictions: Annotated[
        list[Path],
        typer.Argument(
            help="A store, or .npy, .npz or .safetensors files of (objects, classes)"
            " or (networks, objects, classes)."
        ),
    ],
    targets: Annotated[
        Path | None,
        typer.Option(help="The true classes, a file of integers; a store has them."),
    ] = None,
    kind: Annotated[Kind, typer.Option(help="What the files hold.")] = Kind.LOGITS,
    pool: Annotated[
        str | None, typer.Option(help="Which pool, where a store has several.")
    ] = None,
    n: Annotated[
        str | None,
        typer.Option(
            "--n", metavar="1,2,4", help="Sizes of ensembles; all if not given."
        ),
    ] = None,
    ensembles: Annotated[
        Draw,
        typer.Option(
            help="'all' subsets where affordable, otherwise balanced random ones; or"
            " the paper's 'disjoint' groups."
        ),
    ] = Draw.ALL,
    apply: Annotated[
        Apply, typer.Option(help="Apply the temperature before or after averaging.")
    ] = Apply.BEFORE,
    temperature: Annotated[
        float | None, typer.Option(help="A fixed temperature at which nll is given.")
    ] = None,
    calibrate_on: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Predictions of the same networks on other objects, to choose the"
            " temperature there; may be given several times.",
        ),
    ] = None,
    calibrate_targets: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The true classes of these.")
    ] = None,
    keep_odd: Annotated[
        bool, typer.Option("--keep-odd", help="Keep networks that did not train.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of draws and halves.")] = 0,
    as_json: Json = False,
) -> None:
    """Score the ensembles of a pool along the number of networks."""
    from ensize.curves import COLUMNS, score

    loaded = _load(predictions, targets, kind, pool)
    separate = None
    if calibrate_on:
        separate = _load(calibrate_on, calibrate_targets, kind, None)
    elif calibrate_targets:
        raise InputError("--calibrate-targets goes with --calibrate-on FILE; give both")
    with _progress() as progress:
        curve = score(
            loaded,
            n=None if n is None else _whole_numbers("--n", n),
            ensembles=ensembles,
            apply=apply,
            temperature=temperature,
            calibrate_on=separate,
            keep_odd=keep_odd,
            seed=seed,
            progress=progress,
        )
    _warn(curve.warnings)
    if as_json:
        _print_json(
            {
                "networks": curve.networks,
                "objects": curve.objects,
                "classes": curve.classes,
                "points": curve.records(),
                "odd": curve.odd,
                "warnings": curve.warnings,
                "options": {**curve.options, "kind": kind, "pool": pool},
            }
        )
        return
    known = [name for name in COLUMNS if any(map(_known, getattr(curve, name)))]
    _print_table(
        f"{curve.networks} networks, {curve.objects} objects, {curve.classes} classes;"
        f" temperature {apply} averaging, {curve.options['calibrated']}",
        known,
        [[record[name] for name in known] for record in curve.records()],
    )


@app.command()
def fit(
    curve: Annotated[Path, typer.Argument(metavar="CURVE.csv", help="The points.")],
    x: Annotated[
        str | None, typer.Option(help="The column of m; the first if not given.")
    ] = None,
    y: Annotated[
        str | None, typer.Option(help="The column of scores; the second if not given.")
    ] = None,
    weights: Annotated[
        Weights,
        typer.Option(help="'inverse' for a linear grid of m, 'uniform' for a log one."),
    ] = Weights.INVERSE,
    method: Annotated[
        Method, typer.Option(help="Our fit, or the paper's objective.")
    ] = Method.ROBUST,
    as_json: Json = False,
) -> None:
    """Fit a law c + b·m^a to two columns of a CSV file."""
    from ensize.laws import Status, fit
    from ensize.reading.columns import read_columns

    m, values, names = read_columns(curve, x, y)
    try:
        found = fit(m, values, weights=weights, method=method)
    except InputError as error:
        raise InputError(f"{curve}: {error}") from error
    warnings = [] if found.status is Status.FITTED else [found.message]
    if as_json:
        _print_json(
            {
                "limit": found.limit,
                "gain": found.gain,
                "exponent": found.exponent,
                "rmse": found.rmse,
                "rmse_log2": found.rmse_log2,
                "status": found.status,
                "message": found.message,
                "points": found.points,
                "warnings": warnings,
                "options": {
                    "x": names[0],
                    "y": names[1],
                    "weights": weights,
                    "method": method,
                },
            }
        )
        return
    _print_table(
        f"{names[1]} = limit + gain · {names[0]}^exponent, from {found.points} points"
        f" ({method})",
        ["limit", "gain", "exponent", "rmse", "rmse_log2", "status"],
        [
            [
                found.limit,
                found.gain,
                found.exponent,
                found.rmse,
                found.rmse_log2,
                found.status,
            ]
        ],
    )
    _say(f"{found.message[0].upper()}{found.message[1:]}.")


@app.command()
def status(store: StoreFolder, as_json: Json = False) -> None:
    """List what a store holds, by its names alone; `verify` reads the files."""
    from ensize.stores import Store

    _print_status(Store.open(store), None, as_json=as_json)


@app.command()
def verify(store: StoreFolder, as_json: Json = False) -> None:
    """Read every byte of a store and say whether each file is as it was written."""
    from ensize.stores import Store

    opened = Store.open(store)
    with _progress() as progress:
        damaged = opened.verify(progress=progress)
    found = [{"path": each.path, "reason": each.reason} for each in damaged]
    _print_status(opened, found, as_json=as_json)
    if found:
        raise typer.Exit(1)


@app.command()
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
    _say(
        f"A synthetic world: {networks} networks that nobody trained, and whose law is"
        f" known.\nTheir predictions on {drawn.objects} objects are in {store.path}.\n"
    )
    with _progress() as progress:
        curve = score(store.read("world"), progress=progress)
    six = score(store.read("world", seeds=range(6)))
    shown = [n for n in (1, 2, 4, 6, 16, 64) if n <= networks]
    sizes = np.array([*shown, math.inf])
    law = fit(six.n, six.cnll)
    _, truth = world.best(sizes)
    _print_table(
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
    _say(
        f"\nFrom six networks: CNLL_n = {law.limit:.4f} + {law.gain:.4f}"
        f" · n^{law.exponent:.3f} ({law.status}).\nTry: ensize score {store.path}"
        " --n 1,2,4,8"
    )


def _load(
    files: Sequence[Path], targets: Path | None, kind: Kind, pool: str | None
) -> Predictions | Sketch:
    from ensize.reading import load

    source: Any = files[0] if len(files) == 1 else list(files)
    return load(source, targets=targets, kind=kind, pool=pool)


def _whole_numbers(name: str, text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"{name} is {text!r}; give whole numbers with commas between, as in 1,2,4"
        ) from None


def _print_status(store: Any, damaged: Any, *, as_json: bool) -> None:
    pools = store.pools()
    partial = len(store.partials())
    warnings = []
    if partial:
        warnings.append(
            f"{partial} files are unfinished: of writers that are still at work, or"
            " that were killed; no reader takes them"
        )
    _warn(warnings)
    columns = ["name", "width", "size", "networks", "form", "objects", "classes"]
    rows = [[getattr(pool, column) for column in columns] for pool in pools]
    if as_json:
        listed = [dict(zip(columns, row, strict=True)) for row in rows]
        _print_json({"pools": listed, "damaged": damaged, "warnings": warnings})
        return
    total = sum(pool.networks for pool in pools)
    _print_table(f"{store.path}: pools {len(pools)}, networks {total}", columns, rows)
    if damaged is not None and not damaged:
        _say("Every file is as it was written.")
    for each in damaged or []:
        _say(f"damaged: {each['path']}: {each['reason']}")


def _known(value: Any) -> bool:
    return not (isinstance(value, float) and not math.isfinite(value))


def _print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(_cell, row))
    _out.print(title, style="bold", highlight=False, markup=False)
    # As wide as it is: a line of a table is never broken.
    Console(width=1000).print(table)


def _cell(value: Any) -> str:
    if value is None or not _known(value):
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        size = abs(value)
        return f"{value:.5f}" if size < 5e-8 or 1e-3 <= size < 1e4 else f"{value:.3g}"
    return str(value)


def _say(text: str) -> None:
    _out.print(text, highlight=False, markup=False)


def _print_json(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(_plain(value), ensure_ascii=False) + "\n")


def _plain(value: Any) -> Any:
    """Turn what a result holds into what JSON holds: no NaN, no infinity."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value if _known(value) else None


def _warn(warnings: Iterable[str]) -> None:
    for sentence in warnings:
        _err.print(
            f"warning: {sentence}", style="yellow", highlight=False, markup=False
        )


@contextlib.contextmanager
def _progress() -> Iterator[Progress | None]:
    """Show what is being done, where somebody is looking."""
    if not _err.is_terminal:
        yield None
        return
    from rich.progress import Progress as Bars

    with Bars(console=_err, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def tell(what: str, share: float) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=1.0)
            bars.update(tasks[what], completed=share)

        yield tell


def main() -> None:
    """Run a verb; turn a user's mistake into one sentence and exit code 2."""
    debug = "--debug" in sys.argv[1:]
    arguments = [each for each in sys.argv[1:] if each != "--debug"]
    try:
        app(arguments, prog_name="ensize")
    except InputError as error:
        if debug:
            raise
        _err.print(f"ensize: {error}", style="red", highlight=False, markup=False)
        sys.exit(2)
    except BrokenPipeError:
        # Whoever read our output has had enough of it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
