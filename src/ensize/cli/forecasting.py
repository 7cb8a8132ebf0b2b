"""The verb `forecast`: what larger ensembles will score, and how good that is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ensize.checks import InputError
from ensize.cli.options import (
    Apply,
    ApplyAt,
    CalibrateOn,
    CalibrateTargets,
    Files,
    Json,
    KeepOdd,
    Kind,
    Method,
    OfKind,
    PoolName,
    Seed,
    Targets,
    load_given,
    load_separate,
)
from ensize.cli.printing import print_json, print_table, say, shown_progress, warn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ensize.forecasts import BackTests, Forecast
    from ensize.predictions import Predictions
    from ensize.sketches import Sketch


def forecast(
    predictions: Files,
    targets: Targets = None,
    to: Annotated[
        str,
        typer.Option(
            metavar="8,16,inf", help="Numbers of networks, infinitely many included."
        ),
    ] = "8,16,32,64",
    level: Annotated[
        float, typer.Option(metavar="0.9", help="Level of the intervals.")
    ] = 0.9,
    method: Annotated[
        Method, typer.Option(help="Our way, or the paper's.")
    ] = Method.ROBUST,
    within: Annotated[
        str,
        typer.Option(
            metavar="1%",
            help="How near to the limit is near enough: a part of it, or in nats.",
        ),
    ] = "1%",
    equivalent: Annotated[
        float | None,
        typer.Option(metavar="CNLL", help="Say how many networks this CNLL is worth."),
    ] = None,
    objects: Annotated[
        bool,
        typer.Option(
            "--objects", help="Let intervals cover the luck of the test set too."
        ),
    ] = False,
    back_test: Annotated[
        bool,
        typer.Option(
            "--back-test",
            help="Forecast from disjoint sets of six networks of a large pool, or of"
            " each large pool of a store, and compare with the rest.",
        ),
    ] = False,
    kind: OfKind = Kind.LOGITS,
    pool: PoolName = None,
    apply: ApplyAt = Apply.BEFORE,
    calibrate_on: CalibrateOn = None,
    calibrate_targets: CalibrateTargets = None,
    keep_odd: KeepOdd = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Forecast the CNLL of ensembles larger than a pool of three networks or more."""
    from ensize.forecasts import back_test as tested
    from ensize.forecasts import forecast as forecasted

    sizes = _numbers(to)
    separate = load_separate(calibrate_on, calibrate_targets, kind, pool)
    shared: dict[str, Any] = {
        "to": sizes,
        "level": level,
        "apply": apply,
        "calibrate_on": separate,
        "keep_odd": keep_odd,
        "seed": seed,
    }
    given = {"kind": kind, "pool": pool, "to": to}
    if back_test:
        if objects or equivalent is not None:
            raise InputError(
                "--back-test tells how good forecasts are, and makes none; leave"
                " --objects and --equivalent away"
            )
        pools = _large(predictions, targets, kind, pool)
        with shown_progress() as progress:
            found = tested(pools, **shared, progress=progress)
        _print_back_tests(found, given, as_json=as_json)
        return
    loaded = load_given(predictions, targets, kind, pool)
    with shown_progress() as progress:
        ahead = forecasted(
            loaded,
            **shared,
            method=method,
            within=within,
            objects=objects,
            progress=progress,
        )
    worth = None if equivalent is None else ahead.equivalent(equivalent)
    _print_forecast(ahead, equivalent, worth, given, as_json=as_json)


def _numbers(text: str) -> list[float]:
    """Read numbers of networks, such as 8,16,inf."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"--to is {text!r}; give whole numbers with commas between, as in 8,16,64,"
            " or inf"
        ) from None


def _large(
    files: Sequence[Path], targets: Path | None, kind: Kind, pool: str | None
) -> list[Predictions | Sketch]:
    """Load what to back-test: one pool, or those of a store that are large enough."""
    from ensize.stores import Store

    if pool is None and len(files) == 1 and files[0].is_dir():
        store = Store.open(files[0])
        # Six to forecast from, and at least as many to know better.
        names = [each.name for each in store.pools() if each.networks >= 12]
        if names:
            return [load_given(files, targets, kind, name) for name in names]
    return [load_given(files, targets, kind, pool)]


def _print_forecast(
    ahead: Forecast,
    score: float | None,
    worth: float | None,
    given: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    warn(ahead.warnings)
    law = ahead.law
    if as_json:
        print_json(
            {
                "law": {
                    "limit": law.limit,
                    "gain": law.gain,
                    "exponent": law.exponent,
                    "rmse": law.rmse,
                    "rmse_log2": law.rmse_log2,
                    "status": law.status,
                    "message": law.message,
                },
                "limit": ahead.limit._asdict(),
                "forecasts": ahead.records(),
                "equivalent": worth,
                "odd": ahead.odd,
                "advice": ahead.advice,
                "networks": ahead.curve.networks,
                "warnings": ahead.warnings,
                "options": {**ahead.options, **given, "equivalent": score},
            }
        )
        return
    covers = "networks and test set" if ahead.options["objects"] else "networks"
    finite = [each for each in ahead.records() if math.isfinite(each["n"])]
    rows = [[str(n), *rest] for n, *rest in (each.values() for each in finite)]
    print_table(
        f"From {ahead.curve.networks} networks ({ahead.options['method']}), with"
        f" {ahead.options['level']:.0%} intervals for the luck of the {covers}",
        ["n", "cnll", "low", "high"],
        [*rows, ["∞", *ahead.limit]],
    )
    if law.gain > 0:
        say(f"CNLL = {law.limit:.5f} + {law.gain:.5f} · n^{law.exponent:.3f}")
    for sentence in ahead.advice:
        say(sentence)
    if score is not None and worth is not None:
        say(f"A CNLL of {score:g} is worth {_worth(worth)}.")


def _worth(n: float) -> str:
    if math.isinf(n):
        return "more than endlessly many of these networks"
    if n < 1:
        return "less than one of these networks"
    return f"{n:.3g} of these networks"


def _print_back_tests(
    found: BackTests, given: dict[str, Any], *, as_json: bool
) -> None:
    warn(found.warnings)
    if as_json:
        print_json(
            {
                "pools": [
                    {
                        "name": each.pool,
                        "networks": each.networks,
                        "sets": each.sets,
                        "odd": each.odd,
                    }
                    for each in found.pools
                ],
                "points": found.records(),
                "together": found.summary(),
                "warnings": found.warnings,
                "options": {**found.options, **given},
            }
        )
        return
    say(found.table())
