"""The verbs `split` and `search`: how to spend a budget."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
from ensize.cli.options import Apply, ApplyAt, Json, KeepOdd, Method, Seed
from ensize.cli.printing import (
    err,
    print_json,
    print_table,
    say,
    shown_progress,
    warn,
)
from ensize.cli.training import (
    Device,
    Every,
    Folder,
    KeepWeights,
    Minutes,
    Precision,
    cause_of,
    exit_code,
    shown_training,
)

if TYPE_CHECKING:
    from ensize.searches import Step
    from ensize.splits import Splits
    from ensize.train.searching import Searched


class Score(StrEnum):
    """By what splits are compared."""

    CNLL = "cnll"
    ACCURACY = "accuracy"


class Cost(StrEnum):
    """What a budget counts."""

    PARAMETERS = "parameters"
    MULTIPLY_ADDS = "multiply-adds"
    SECONDS = "seconds"


Budget = Annotated[
    str, typer.Option(metavar="15.3M", help="A number, with k, M, G or T if you like.")
]


def split(
    store: Annotated[
        Path, typer.Argument(metavar="STORE", help="A store with several sizes.")
    ],
    budget: Budget,
    score: Annotated[
        Score,
        typer.Option(help="CNLL is forecast where need be; accuracy only measured."),
    ] = Score.CNLL,
    cost: Annotated[
        Cost,
        typer.Option(
            "--in", help="What the budget counts; of a prediction, all but parameters."
        ),
    ] = Cost.PARAMETERS,
    within: Annotated[
        str,
        typer.Option(
            metavar="0.5%",
            help="Splits so near to the best are as good: a part of it, or a number.",
        ),
    ] = "0.5%",
    probability: Annotated[
        float, typer.Option(metavar="0.9", help="How sure a verdict must be.")
    ] = 0.9,
    method: Annotated[
        Method, typer.Option(help="How CNLL is forecast: our way, or the paper's.")
    ] = Method.ROBUST,
    family: Annotated[
        str | None, typer.Option(help="Which family, where a store has several.")
    ] = None,
    apply: ApplyAt = Apply.BEFORE,
    calibrate_on: Annotated[
        Path | None,
        typer.Option(
            metavar="STORE",
            help="The same networks' predictions on other objects, to choose the"
            " temperature there.",
        ),
    ] = None,
    keep_odd: KeepOdd = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Find the best split of a budget among the pools of a store."""
    from ensize.planes import budget_of
    from ensize.splits import split as split_of

    budget_of(budget)  # a budget that is none is told before the store is read
    with shown_progress() as progress:
        found = split_of(
            *(store, budget),
            score=score,
            within=within,
            cost=cost,
            probability=probability,
            method=method,
            family=family,
            apply=apply,
            calibrate_on=calibrate_on,
            keep_odd=keep_odd,
            seed=seed,
            progress=progress,
        )
    separate = None if calibrate_on is None else str(calibrate_on)
    given = {"store": str(store), "budget": budget, "calibrate_on": separate}
    _print_split(found, given, as_json=as_json)


def _print_split(found: Splits, given: dict[str, Any], *, as_json: bool) -> None:
    warn(found.warnings)
    if as_json:
        single = found.single
        print_json(
            {
                "budget": found.budget,
                "splits": found.records(),
                "best": vars(found.best),
                "single": None if single is None else vars(single),
                "as_good": [vars(each) for each in found.as_good],
                "verdict": vars(found.verdict),
                "advantage": found.advantage,
                "low": found.low,
                "high": found.high,
                "certainty": found.certainty,
                "optimism": found.optimism,
                "warnings": found.warnings,
                "options": {**found.options, **given},
            }
        )
        return
    columns = ["n", "pool", "size", "total", found.score, "low", "high"]
    print_table(
        f"Splits of {given['budget']} {found.cost}, with 90 % intervals for the luck of"
        " the networks",
        [*columns, "best with", "source"],
        [
            [
                *(str(each.n), each.pool, each.size, _whole(each.total)),
                *(each.value, each.low, each.high),
                *(f"{each.probability:.0%}", each.source),
            ]
            for each in found.splits
        ],
    )
    say(f"{found.verdict.sentence[0].upper()}{found.verdict.sentence[1:]}.")
    others = [str(each.n) for each in found.as_good if each is not found.best]
    if others:
        say(f"As good within {found.options['within']}: n = {', '.join(others)}.")


def _whole(number: float) -> float:
    return int(number) if number == round(number) else number


def search(
    study: Annotated[
        str,
        typer.Argument(
            metavar="STUDY",
            help="A study file, or the name of one of the paper's studies.",
        ),
    ],
    budget: Budget,
    store: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the networks go, or are already.")
    ],
    method: Annotated[
        Method, typer.Option(help="Our way, or Algorithm 1 to the letter.")
    ] = Method.ROBUST,
    patience: Annotated[
        int, typer.Option(min=0, help="Steps without improvement before it ends.")
    ] = 0,
    apply: ApplyAt = Apply.BEFORE,
    keep_odd: KeepOdd = False,
    seed: Seed = 0,
    data: Folder = None,
    executor: Executor = "here",
    device: Device = None,
    precision: Precision = "float32",
    minutes: Minutes = None,
    every: Every = 120.0,
    keep_weights: KeepWeights = False,
    ray_address: RayAddress = None,
    gpus_per_committee: Gpus = None,
    cpus_per_committee: Cpus = None,
    committees: Committees = None,
    retries: Retries = None,
    stream: Stream = False,
    as_json: Json = False,
) -> None:
    """Seek the best split of a budget, and train what that takes (Algorithm 1)."""
    from ensize.planes import budget_of
    from ensize.train.searching import search_study
    from ensize.train.studies import study_of

    budget_of(budget)
    choices: dict[str, Any] = {"method": method, "patience": patience}
    choices |= {"apply": apply, "keep_odd": keep_odd, "seed": seed}
    where: dict[str, Any] = {"executor": executor, "device": device}
    where |= {"precision": precision, "minutes": minutes, "every": every}
    where |= {"keep_weights": keep_weights}
    shares = gpus_per_committee, cpus_per_committee
    ray = ray_options(ray_address, *shares, committees, retries, stream)
    with (
        executing(executor, device, **ray) as trained_by,
        shown_training() as progress,
    ):
        found = search_study(
            study_of(study),
            store,
            budget,
            **choices,
            **{**where, "executor": trained_by},
            data=data,
            told=_tell,
            progress=progress,
        )
    given = {"study": study, "store": str(store), **choices, **where}
    given |= {"budget": budget, "data": None if data is None else str(data)}
    given |= {"ray": ray} if executor == "ray" else {}
    _print_search(found, given, as_json=as_json)
    if code := exit_code(found):
        raise typer.Exit(code)


def _tell(step: Step) -> None:
    """Say what a step has shown, as soon as it is known."""
    err.print(f"n = {step.n}: {step.saying}", highlight=False, markup=False)


def _print_search(found: Searched, given: dict[str, Any], *, as_json: bool) -> None:
    search, best, verdict = found.search, found.search.best, found.search.verdict
    cost, stopped = search.cost, found.stopped
    warn(found.warnings)
    if as_json:
        print_json(
            {
                "steps": search.records(),
                "best": None if best is None else dataclasses.asdict(best),
                "verdict": None if verdict is None else vars(verdict),
                **vars(cost),
                "done": search.done,
                "stopped": cause_of(stopped) if stopped else None,
                "seconds": found.seconds,
                "warnings": found.warnings,
                "options": {**given, **search.options},
            }
        )
        return
    columns = ["n", "pool", "size", "networks", "cnll", "low", "high", "measured"]
    print_table(
        f"Splits of {given['budget']} parameters that were looked at ({search.method})",
        [*columns, "source"],
        [
            [str(each.n), *(getattr(each, key) for key in (*columns[1:], "source"))]
            for each in search.steps
        ],
    )
    if verdict is not None:
        say(f"{verdict.sentence[0].upper()}{verdict.sentence[1:]}.")
    there = f", besides {cost.networks_found:,} that were there"
    say(
        f"Networks trained: {cost.networks_trained:,} with {cost.parameters_trained:,}"
        f" parameters{there * bool(cost.networks_found)}; to train these splits in full"
        f" takes {cost.networks_full:,} with {cost.parameters_full:,}."
    )
    if stopped:
        say(f"Stopped by {cause_of(stopped)}; the same command goes on from here.")
