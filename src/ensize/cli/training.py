"""The verb `study`: from a study file to a store of its networks."""

from __future__ import annotations

import contextlib
import itertools
import math
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ensize.checks import InputError
from ensize.cli.clustering import (
    Committees,
    Cpus,
    Executor,
    Gpus,
    RayAddress,
    Retries,
    Stream,
    executing,
    ray_options,
)
from ensize.cli.options import Json
from ensize.cli.printing import (
    err,
    print_json,
    print_table,
    say,
    shown_progress,
    warn,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ensize.predictions import Progress
    from ensize.train.searching import Searched
    from ensize.train.studies import Cost, Result, Study

# What `search` takes as well.
Folder = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="The dataset, if it is not to be downloaded."),
]
Device = Annotated[
    str | None,
    typer.Option(metavar="cpu|cuda|cuda:K", help="On what; a GPU, if there is one."),
]
Precision = Annotated[
    str, typer.Option(metavar="float32|tf32", help="Of products on a GPU.")
]
Minutes = Annotated[
    float | None, typer.Option(help="Stop after so many; the same command goes on.")
]
Every = Annotated[float, typer.Option(help="Seconds between checkpoints.")]
KeepWeights = Annotated[bool, typer.Option("--keep-weights", help="Keep weights too.")]

# Without a terminal, progress is a line now and then.
_LINE = 30.0


def study(
    study: Annotated[
        str,
        typer.Argument(
            metavar="STUDY",
            help="A study file, or the name of one of the paper's studies.",
        ),
    ],
    store: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the networks go, or are already."),
    ] = None,
    data: Folder = None,
    executor: Executor = "here",
    device: Device = None,
    precision: Precision = "float32",
    part: Annotated[
        str | None,
        typer.Option(
            metavar="K/N", help="Every N-th network only, from the K-th on: for arrays."
        ),
    ] = None,
    minutes: Minutes = None,
    every: Every = 120.0,
    keep_weights: KeepWeights = False,
    no_retry: Annotated[
        bool,
        typer.Option("--no-retry", help="Do not replace networks that diverge."),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what would be trained, and what it takes."),
    ] = False,
    timing: Annotated[
        bool,
        typer.Option(
            "--timing", help="Measure the paper's timing table on this device."
        ),
    ] = False,
    ray_address: RayAddress = None,
    gpus_per_committee: Gpus = None,
    cpus_per_committee: Cpus = None,
    committees: Committees = None,
    retries: Retries = None,
    stream: Stream = False,
    as_json: Json = False,
) -> None:
    """Train the networks of a study that its store lacks; take up what was begun."""
    from ensize.train.studies import costs, study_of, train_study

    declared = study_of(study)
    options: dict[str, Any] = {
        "study": study,
        "store": None if store is None else str(store),
        "data": None if data is None else str(data),
        "device": device,
        "precision": precision,
        "part": part,
    }
    where: dict[str, Any] = {"data": data, "device": device, "precision": precision}
    if timing:
        _time(declared, where, options, as_json=as_json)
        return
    if dry_run:
        with shown_training() as progress:
            found = costs(declared, store, part=part, progress=progress, **where)
        _print_costs(found, options, as_json=as_json)
        return
    if store is None:
        raise InputError("a study needs a store; give --store DIR, the folder for it")
    shares = gpus_per_committee, cpus_per_committee
    ray = ray_options(ray_address, *shares, committees, retries, stream)
    with (
        executing(executor, device, **ray) as trained_by,
        shown_training() as progress,
    ):
        result = train_study(
            *(declared, store),
            executor=trained_by,
            part=part,
            minutes=minutes,
            every=every,
            keep_weights=keep_weights,
            retry=not no_retry,
            progress=progress,
            **where,
        )
    options |= {"executor": executor, "minutes": minutes, "every": every}
    options |= {"keep_weights": keep_weights, "retry": not no_retry}
    options |= {"ray": ray} if executor == "ray" else {}
    _print_result(result, store, options, as_json=as_json)
    if code := exit_code(result):
        raise typer.Exit(code)


def exit_code(result: Result | Searched) -> int:
    """Say how a verb that trains has ended, as a shell does."""
    if isinstance(result.stopped, int):
        return 128 + result.stopped
    return 1 if result.given_up else 0


def _print_result(
    result: Result, store: Path, options: dict[str, Any], *, as_json: bool
) -> None:
    warn(result.warnings)
    if as_json:
        failures = [vars(each) for each in result.failures]
        stopped = result.stopped
        print_json(
            {
                "runs": result.runs,
                "done": result.done,
                "failed": result.failed,
                "trained": result.trained,
                "seconds": result.seconds,
                "stopped": cause_of(stopped) if stopped else None,
                "failures": failures,
                "warnings": result.warnings,
                "options": options,
            }
        )
        return
    left = result.runs - result.done - result.failed
    say(
        f"{result.done} of {result.runs} networks are in {store}, {result.trained} of"
        f" them trained now, in {duration(result.seconds)}."
    )
    if result.stopped:
        say(
            f"Stopped by {cause_of(result.stopped)} with {left} networks left; the same"
            " command goes on from here."
        )
    elif not left:
        say(f"Try: ensize status {store}")


def cause_of(stopped: int | str) -> str:
    """Name what stopped training."""
    if isinstance(stopped, str):
        return "--minutes"
    return "Ctrl-C" if stopped == signal.SIGINT else signal.Signals(stopped).name


def _print_costs(
    found: Sequence[Cost], options: dict[str, Any], *, as_json: bool
) -> None:
    runs, lacks = (sum(getattr(c, key) for c in found) for key in ("runs", "missing"))
    seconds = sum(each.seconds for each in found)
    if as_json:
        print_json(
            {
                "runs": runs,
                "done": runs - lacks,
                "failed": 0,
                "seconds": seconds,
                "pools": [vars(each) for each in found],
                "warnings": [],
                "options": {**options, "dry_run": True},
            }
        )
        return
    columns = ["pool", "parameters", "runs", "missing", "to tune", "at once", "how"]
    print_table(
        f"{lacks} of {runs} networks are missing",
        [*columns, "memory", "time"],
        [
            [
                *(each.pool, each.size, each.runs, each.missing, each.trials),
                *(each.together, each.way, _memory(each.bytes)),
                duration(each.seconds),
            ]
            for each in found
        ],
    )
    say(
        f"In all about {duration(seconds)} on one device, by one measured step of each"
        " width. Nothing was trained."
    )


def _time(
    declared: Study, where: dict[str, Any], options: dict[str, Any], *, as_json: bool
) -> None:
    """Measure and print the timing table."""
    from ensize.train.timing import PREDICTED, TRAINED, timings

    with shown_training() as progress:
        found = timings(declared, progress=progress, **where)
    lacking = [each.pool for each in found if math.isnan(each.epoch)]
    warnings = [
        f"{pool} does not fit into the memory of one device" for pool in lacking
    ]
    warn(warnings)
    if as_json:
        pools = [vars(each) for each in found]
        options |= {"timing": True, "batch": TRAINED, "prediction_batch": PREDICTED}
        print_json({"pools": pools, "warnings": warnings, "options": options})
        return
    columns = ["pool", "parameters", "epoch (s)", "predict (s)"]
    columns += ["at once", "epoch (s) each", "predict (s) each", "how"]
    print_table(
        f"Seconds that a network takes for an epoch in batches of {TRAINED}, and to"
        f" predict the test set in batches of {PREDICTED:,}",
        columns,
        [
            [
                *(each.pool, each.size, each.epoch, each.prediction, each.together),
                *(each.epoch_together, each.prediction_together, each.way),
            ]
            for each in found
        ],
    )
    say("Alone on the device, and each one's share of many that are trained at once.")


def _memory(size: float) -> str:
    return f"{size / 2**20:,.0f} MiB" if size < 2**30 else f"{size / 2**30:,.1f} GiB"


def duration(seconds: float) -> str:
    """Say a time as people do.

    >>> duration(0.4), duration(75), duration(5000), duration(1e6)
    ('0.4 s', '1 min 15 s', '1 h 23 min', '11 d 14 h')
    """
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    for (large, many), (small, few) in itertools.pairwise(units):
        count, rest = divmod(round(seconds / few) * few, many)
        if count:
            return f"{count} {large} {rest // few} {small}"
    return f"{seconds:.0f} s"


@contextlib.contextmanager
def shown_training() -> Iterator[Progress | None]:
    """Show progress with the time left: as a bar, or as lines in a log."""
    if err.is_terminal:
        with shown_progress() as progress:
            yield progress
        return
    begun: dict[str, tuple[float, float]] = {}
    said = time.monotonic()

    def tell(what: str, share: float) -> None:
        nonlocal said
        now = time.monotonic()
        since, first = begun.setdefault(what, (now, share))
        if now - said < _LINE or share <= first:
            return
        said = now
        left = (now - since) * (1 - share) / (share - first)
        sys.stderr.write(f"{what}: {share:.0%}, about {duration(left)} left\n")
        sys.stderr.flush()

    yield tell
