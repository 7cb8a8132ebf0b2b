"""The verbs `figures` and `report`: every figure of the paper, and a page of them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ensize.checks import InputError
from ensize.cli.options import Json
from ensize.cli.printing import print_json, print_table, say, shown_progress, warn


class Format(StrEnum):
    """What kind of picture is written."""

    PNG = "png"
    SVG = "svg"
    PDF = "pdf"


def figures(
    stores: Annotated[
        list[Path],
        typer.Argument(metavar="STORE...", help="One store, or several to compare."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where they go.")
    ],
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[,NAME]", help="Some figures; all that there are if not given."
        ),
    ] = None,
    format: Annotated[  # noqa: A002 - the name of the option
        list[Format] | None,
        typer.Option(
            help="Of the pictures; may be given several times. [default: png]"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Draw the figures of the paper from stores, each with its data and caption."""
    try:
        from ensize.figures import write_all
    except ModuleNotFoundError as error:
        raise InputError(
            f"figures need {error.name}, which is not installed; pip install"
            ' "ensize[figures]"'
        ) from error
    names = [name.strip() for each in only or () for name in each.split(",")]
    formats = [each.value for each in format or (Format.PNG,)]
    with shown_progress() as progress:
        album = write_all(
            stores, output, only=names or None, formats=formats, progress=progress
        )
    drawn = [each for each in album.figures if each.skipped is None]
    skipped = [each for each in album.figures if each.skipped is not None]
    warn(album.warnings)
    if as_json:
        print_json(
            {
                "figures": [
                    {
                        "name": each.name,
                        "file": str(file),
                        "data": str(each.data),
                        "store": each.store,
                        "title": each.title,
                        "paper": each.paper,
                        "caption": each.caption,
                    }
                    for each in drawn
                    for file in each.files
                ],
                "skipped": [
                    {"name": each.name, "store": each.store, "reason": each.skipped}
                    for each in skipped
                ],
                "warnings": album.warnings,
                "options": {
                    "stores": [str(each) for each in stores],
                    "output": str(output),
                    "only": names or None,
                    "format": formats,
                },
            }
        )
        return
    if drawn:
        kinds = formats[0] if len(formats) == 1 else f"{{{','.join(formats)}}}"
        print_table(
            f"Figures in {output}, with their data and captions.md",
            ["figure", "store", "files", "in the paper"],
            [
                [each.name, each.store or "all", f"{each.stem}.{kinds}", each.paper]
                for each in drawn
            ],
        )
    for each in skipped:
        of = "" if each.store is None else f" of {each.store}"
        say(f"{each.name}{of} is skipped: {each.skipped}")


def report(
    stores: Annotated[
        list[Path],
        typer.Argument(metavar="STORE...", help="One store, or several to compare."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The page's file.")
    ],
    budget: Annotated[
        list[str] | None,
        typer.Option(
            "--budget",
            metavar="B",
            help="Plan this budget of parameters too, such as 15.3M, and begin with"
            " it; may be given several times.",
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option("--title", help="What stands above the answer.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write one page that stands alone: the answer, a planner, figures and tables."""
    from ensize.reports import report as write

    with shown_progress() as progress:
        made = write(
            stores, output, budgets=budget or (), title=title, progress=progress
        )
    warn(made.warnings)
    if as_json:
        print_json(
            {
                "file": str(made.file),
                "size": made.size,
                "headlines": made.headlines,
                "warnings": list(made.warnings),
                "options": made.options,
            }
        )
        return
    for name, headline in made.headlines.items():
        say(f"{name}: {headline}")
    say(f"The page, {made.size / 1e6:.1f} MB: {made.file}")
