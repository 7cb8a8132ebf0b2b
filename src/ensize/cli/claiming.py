"""The verb `claims`: what stores say of the paper's claims."""

from __future__ import annotations

import itertools
import math
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ensize.cli.options import Json
from ensize.cli.printing import out, print_json, say, shown_progress, warn

if TYPE_CHECKING:
    from ensize.claims import Answer

# How wide a page is, and how far sentences stand in.
_PAGE, _INDENT = 100, "    "
_STYLES = {"holds": "green", "does not hold": "red", "cannot be said": "yellow"}


def claims(
    stores: Annotated[
        list[Path],
        typer.Argument(metavar="STORE...", help="One store, or several to compare."),
    ],
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[,NAME]", help="Some claims; all that there are if not given."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Ask stores for the paper's claims: each holds, does not, or cannot be said."""
    from ensize.claims import check_claims

    names = [name for each in only or () for name in each.split(",")] or None
    with shown_progress() as progress:
        found = check_claims(stores, only=names, progress=progress)
    warn(found.warnings)
    if as_json:
        print_json(
            {
                "claims": found.records(),
                "warnings": found.warnings,
                "options": {**found.options, "stores": [str(each) for each in stores]},
            }
        )
        return
    by_store = itertools.groupby(found.answers, key=lambda each: each.store)
    for store, answers in by_store:
        out.print(store, style="bold", highlight=False, markup=False)
        for each in answers:
            _print_answer(each)
    holds, fails, unsaid = found.counts().values()
    say(
        f"\nOf {len(found.answers)} answers {holds} say that a claim holds, {fails}"
        f" that it does not, and {unsaid} that it cannot be\nsaid. Behind each verdict"
        " stand the number, its interval of 90 %, and between which bounds the\nclaim"
        " holds."
    )


def _print_answer(each: Answer) -> None:
    number = ""
    if not math.isnan(each.value):
        known = not math.isnan(each.low)
        interval = f"({each.low:.3g} to {each.high:.3g})" if known else "(unknown)"
        number = f"{each.value:9.3g}  {interval:24}{each.bounds}"
    out.print(f"\n{each.verdict:16}", style=_STYLES[each.verdict], end="")
    say(f"{each.name:24}{number}".rstrip())
    for text in (f"Claim: {each.claim}.", f"Found: {each.sentence}."):
        say(
            textwrap.fill(
                text,
                _PAGE,
                initial_indent=_INDENT,
                subsequent_indent=_INDENT + " " * 7,
                break_on_hyphens=False,
            )
        )
