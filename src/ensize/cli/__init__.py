"""The verbs on a terminal: parse, call, print.

Tables for people go to stdout, progress and warnings to stderr; `--json` prints one
JSON object to stdout and nothing else. A user's mistake ends with exit code 2 and one
sentence.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

import ensize
from ensize.checks import InputError
from ensize.cli import (
    claiming,
    drawing,
    exporting,
    forecasting,
    keeping,
    scoring,
    showing,
    splitting,
    training,
)
from ensize.cli.printing import err, printable, say

app = typer.Typer(
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for verb in (
    *(scoring.score, scoring.fit),
    forecasting.forecast,
    *(splitting.split, splitting.search),
    training.study,
    exporting.export,
    *(keeping.status, keeping.verify),
    claiming.claims,
    *(drawing.figures, drawing.report),
    showing.demo,
):
    app.command()(verb)


def _print_version(asked: bool) -> None:
    if asked:
        say(f"ensize {ensize.__version__}")
        raise typer.Exit


@app.callback()
def about(
    context: typer.Context,
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
    _debug: Annotated[
        bool, typer.Option("--debug", help="Show where a mistake was found.")
    ] = False,
) -> None:
    """How many networks, and how large: scores of ensembles and their power laws."""
    if context.invoked_subcommand is None:
        say(context.get_help())
        raise typer.Exit(2)


# What Typer raises at a command line that makes no sense has no public name of its own;
# its error of a bad value has, and is one of them.
_Misused: type[Exception] = typer.BadParameter.__mro__[1]


def main() -> None:
    """Run a verb; turn a user's mistake into one sentence and exit code 2."""
    debug = "--debug" in sys.argv[1:]
    arguments = [each for each in sys.argv[1:] if each != "--debug"]
    try:
        sys.exit(app(arguments, prog_name="ensize", standalone_mode=False) or 0)
    except InputError as error:
        if debug:
            raise
        _complain(str(error))
    except _Misused as error:
        if debug:
            raise
        _complain(_misuse(error))
    except typer.Abort:
        _complain("stopped", code=130)
    except BrokenPipeError:
        # Whoever read our output has had enough of it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:  # such as of a name that is too long
        if debug:
            raise
        _complain(f"{error}; give another file, or another folder")


def _complain(sentence: str, code: int = 2) -> None:
    told = printable(f"ensize: {sentence}")
    err.print(told, style="red", highlight=False, markup=False)
    sys.exit(code)


def _misuse(error: Any) -> str:
    """Say in one sentence what is wrong with a command line."""
    verb = "ensize" if error.ctx is None else error.ctx.command_path
    said = " ".join(error.format_message().split()).rstrip(".")
    return f"{said[:1].lower()}{said[1:]} ({verb} --help tells what there is)"
