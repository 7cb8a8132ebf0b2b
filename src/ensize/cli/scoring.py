"""The verbs `score` and `fit`: from predictions to curves, and on to laws."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ensize.checks import InputError
from ensize.cli.options import (
    Apply,
    ApplyAt,
    CalibrateOn,
    CalibrateTargets,
    Draw,
    Files,
    Json,
    KeepOdd,
    Kind,
    Method,
    OfKind,
    PoolName,
    Seed,
    Targets,
    Weights,
    load_given,
    load_separate,
    whole_numbers,
)
from ensize.cli.printing import (
    known,
    print_json,
    print_table,
    say,
    shown_progress,
    warn,
)


def score(
    predictions: Files,
    targets: Targets = None,
    kind: OfKind = Kind.LOGITS,
    pool: PoolName = None,
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
    apply: ApplyAt = Apply.BEFORE,
    temperature: Annotated[
        float | None, typer.Option(help="A fixed temperature at which nll is given.")
    ] = None,
    calibrate_on: CalibrateOn = None,
    calibrate_targets: CalibrateTargets = None,
    keep_odd: KeepOdd = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Score the ensembles of a pool along the number of networks."""
    from ensize.curves import COLUMNS, score

    loaded = load_given(predictions, targets, kind, pool)
    separate = load_separate(calibrate_on, calibrate_targets, kind, pool)
    sizes = None if n is None else whole_numbers("--n", n)
    with shown_progress() as progress:
        curve = score(
            loaded,
            n=sizes,
            ensembles=ensembles,
            apply=apply,
            temperature=temperature,
            calibrate_on=separate,
            keep_odd=keep_odd,
            seed=seed,
            progress=progress,
        )
    warn(curve.warnings)
    if as_json:
        print_json(
            {
                "networks": curve.networks,
                "objects": curve.objects,
                "classes": curve.classes,
                "points": curve.records(),
                "odd": curve.odd,
                "warnings": curve.warnings,
                "options": {
                    **curve.options,
                    "n": sizes,
                    "kind": kind,
                    "pool": pool,
                    "calibrate_on": [str(each) for each in calibrate_on or []],
                },
            }
        )
        return
    columns = [name for name in COLUMNS if any(map(known, getattr(curve, name)))]
    print_table(
        f"{curve.networks} network{'s' * (curve.networks > 1)}, {curve.objects}"
        f" objects, {curve.classes} classes; temperature {apply} averaging,"
        f" {curve.options['calibrated']}",
        columns,
        [[record[name] for name in columns] for record in curve.records()],
    )


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
        print_json(
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
    print_table(
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
    say(f"{found.message[0].upper()}{found.message[1:]}.")
