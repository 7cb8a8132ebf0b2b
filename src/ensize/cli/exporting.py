"""The verb `export`: the chosen ensemble as one module."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ensize.cli.options import Apply, Json
from ensize.cli.printing import print_json, say, shown_progress, warn


class Format(StrEnum):
    """What kind of file is written."""

    TORCH = "torch"
    ONNX = "onnx"


def export(
    store: Annotated[
        Path, typer.Argument(metavar="STORE", help="A store whose weights are kept.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where: a .pt2 or .onnx file."
        ),
    ],
    n: Annotated[int, typer.Option("-n", metavar="N", help="How many networks.")],
    pool: Annotated[
        str | None, typer.Option(help="Which pool, where a store has several.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the data set is, if at hand."),
    ] = None,
    format: Annotated[  # noqa: A002 - the name of the option
        Format,
        typer.Option(help="A program of torch.export, or ONNX."),
    ] = Format.TORCH,
    apply: Annotated[
        Apply, typer.Option(help="Apply the temperature before or after averaging.")
    ] = Apply.BEFORE,
    temperature: Annotated[
        float | None,
        typer.Option(help="A fixed one, instead of the best on the test set."),
    ] = None,
    keep_odd: Annotated[
        bool, typer.Option("--keep-odd", help="Keep networks that did not train.")
    ] = False,
    objects: Annotated[
        int,
        typer.Option(
            metavar="N", help="On how many test objects it is compared with the store."
        ),
    ] = 1000,
    as_json: Json = False,
) -> None:
    """Write an ensemble as one module, its temperature built in, and check it."""
    from ensize.train.export import export_ensemble

    with shown_progress() as progress:
        made = export_ensemble(
            *(store, pool, n, output),
            data=data,
            kind=format,
            apply=apply,
            temperature=temperature,
            keep_odd=keep_odd,
            objects=objects,
            progress=progress,
        )
    warn(made.warnings)
    if as_json:
        print_json(
            {
                "file": str(made.file),
                "pool": made.pool,
                "networks": made.networks,
                "seeds": made.seeds,
                "temperature": made.temperature,
                "cnll": made.cnll,
                "shape": made.shape,
                "dtype": made.dtype,
                "classes": made.classes,
                "objects": made.objects,
                "difference": made.difference,
                "tolerance": made.tolerance,
                "warnings": made.warnings,
                "options": {
                    "pool": pool,
                    "format": format,
                    "apply": apply,
                    "temperature": temperature,
                    "keep_odd": keep_odd,
                },
            }
        )
        return
    shape = " × ".join(map(str, made.shape))
    say(
        f"{made.file}: {made.networks} networks of {made.pool}, temperature"
        f" {made.temperature:.4f} {made.apply} averaging, CNLL {made.cnll:.5f}.\n"
        f"It takes any number of objects of {shape} ({made.dtype}), and gives the"
        f" probabilities of {made.classes} classes.\n"
        f"On {made.objects} test objects these are within {made.difference:.1e} of the"
        f" store's; rounding explains {made.tolerance:.1e}."
    )
