"""The verb `demo`: the main job from beginning to end."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ensize.cli.options import Json
from ensize.cli.printing import print_json, print_table, say, shown_progress, warn
from ensize.cli.training import cause_of, duration, exit_code, shown_training

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ensize.forecasts import BackTests
    from ensize.splits import Splits
    from ensize.train.demo import Scored
    from ensize.train.studies import Result

_VERDICTS = {"split": "several", "no split": "one", "cannot be said": "open"}


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where to leave it.")
    ],
    networks: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="About how many networks; 1,008 if not given."
        ),
    ] = None,
    report: Annotated[
        bool, typer.Option(help="Write the page DIR/report.html too.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Train 1,008 small networks on real data, and say what their ensembles are worth.

    It takes about a minute, and needs no download. A second run trains nothing anew.
    """
    from ensize.stores import Store
    from ensize.stores.files import make_folder, reported
    from ensize.train.demo import (
        check_demo,
        demo_study,
        score_demo,
        split_demo,
        train_demo,
    )

    demo_study(networks)  # a number that cannot be is told before anything is made
    began = time.perf_counter()
    path = output / "store"
    with reported(output, "made"):
        make_folder(path)
    tell = _quiet if as_json else say
    tell(
        "How many networks, and how large? Networks of 7 sizes learn to read 128"
        " handwritten digits,\nand are tested on 1,669 others.\n"
    )
    with shown_training() as progress:
        trained = train_demo(path, networks, progress=progress)
    warn(trained.warnings)
    if code := exit_code(trained):
        tell(_stopped(trained))
        raise typer.Exit(code)
    store = Store(path)
    tell(_trained(trained, path))
    with shown_progress() as progress:
        scored = score_demo(store, progress=progress)
    if not as_json:
        _print_scored(scored)
    with shown_progress() as progress:
        tested = check_demo(store, progress=progress)
    tell(_tested(tested))
    with shown_progress() as progress:
        splits = split_demo(store, progress=progress)
    if not as_json:
        _print_splits(splits)
    page = _page(output) if report else None
    seconds = time.perf_counter() - began
    if as_json:
        print_json(
            {
                "store": str(path),
                "report": None if page is None else str(page),
                "networks": trained.done,
                "trained": trained.trained,
                "seconds": seconds,
                "pools": [_record(each) for each in scored],
                "back_test": [] if tested is None else tested.summary(),
                "splits": [
                    {
                        "budget": each.budget,
                        "best": vars(each.best),
                        "verdict": vars(each.verdict),
                    }
                    for each in splits
                ],
                "warnings": trained.warnings,
                "options": {"output": str(output), "networks": networks},
            }
        )
        return
    say(f"\nThis took {duration(seconds)}." + (f" The page: {page}" if page else ""))
    say(
        f"Try: ensize split {path} --budget 20k\n"
        f"     ensize forecast {path} --pool mlp-w32 --to 64,inf\n"
        f"     ensize status {path}"
    )


def _quiet(_: str) -> None:
    """Say nothing."""


def _stopped(trained: Result) -> str:
    why = cause_of(trained.stopped) if trained.stopped else "want of memory"
    return (
        f"Stopped by {why} with {trained.done} of {trained.runs} networks in the store;"
        " the same command goes on from here."
    )


def _trained(trained: Result, path: Path) -> str:
    if not trained.trained:
        return f"All {trained.done:,} networks are in {path} already.\n"
    each = 1000 * trained.seconds / trained.trained
    return (
        f"{trained.trained:,} networks trained in {duration(trained.seconds)}, many at"
        f" once: {each:.0f} ms each. Their predictions are in {path}.\n"
    )


def _print_scored(scored: Sequence[Scored]) -> None:
    longest = max((each.curve.n for each in scored), key=len)
    rows = []
    for each in scored:
        cnll = [f"{value:.3f}" for value in each.curve.cnll]
        cnll += ["–"] * (len(longest) - len(cnll))
        law = each.law
        said = f"{law.limit:.3f} + {law.gain:.3f} · n^{law.exponent:.2f}"
        count = f"{each.curve.networks}"
        rows.append([each.pool.size, count, *cnll, said])
    error = max(float(each.curve.cnll_se.max()) for each in scored)
    print_table(
        "CNLL of ensembles (negative log-likelihood at the best temperature; lower is"
        " better)",
        ["parameters", "networks", *(f"n = {n}" for n in longest), "law"],
        rows,
    )
    first = scored[0].curve
    say(
        f"(Standard errors up to {error:.3f}.) Along n, the number of networks whose"
        " probabilities are averaged,\nevery size follows a power law towards a limit."
        f" The best temperature falls, from {first.temperature[0]:.2f} to"
        f" {first.temperature[-1]:.2f}\nfor the smallest: to compare ensembles without"
        " calibrating them would mislead.\n"
    )


def _tested(tested: BackTests | None) -> str:
    if tested is None:
        return "There are too few networks for a back-test of forecasts.\n"
    ratio, coverage = tested.ratio("robust", "paper"), tested.coverage("robust")
    return (
        "Six networks tell what many will score: forecasts of 8, 16 and 32 from"
        f" {tested.sets} sets of six were compared\nwith networks that they had not"
        f" seen. Their 90 % intervals held the truth in {coverage.value:.0%}; errors"
        f" were {ratio.value:.2f} times\nthose of the paper's fit.\n"
    )


def _print_splits(splits: Sequence[Splits]) -> None:
    print_table(
        "The best split of a budget: one large network, or several smaller ones?",
        ["parameters", "networks", "of", "CNLL", "one network", "verdict"],
        [
            [
                int(each.budget),
                *(str(each.best.n), each.best.size, f"{each.best.value:.4f}"),
                "–" if each.single is None else f"{each.single.value:.4f}",
                _VERDICTS[each.verdict.code],
            ]
            for each in splits
        ],
    )
    last = splits[-1].verdict.sentence
    say(f"Of {splits[-1].budget:,.0f} parameters: {last}.")


def _record(scored: Scored) -> dict[str, Any]:
    curve, law = scored.curve, scored.law
    return {
        "name": scored.pool.name,
        "size": scored.pool.size,
        "networks": curve.networks,
        "n": curve.n.tolist(),
        "cnll": curve.cnll.tolist(),
        "cnll_se": curve.cnll_se.tolist(),
        "limit": law.limit,
        "gain": law.gain,
        "exponent": law.exponent,
    }


def _page(output: Path) -> Path | None:
    """Write the page on the store, where it can be drawn."""
    from ensize.reports import report

    if importlib.util.find_spec("matplotlib") is None:
        return None
    with shown_progress() as progress:
        return report(output / "store", output / "report.html", progress=progress).file
