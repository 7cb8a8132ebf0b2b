"""What goes to stdout and stderr, and how it looks."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ensize.predictions import Progress

out, err = Console(soft_wrap=True), Console(stderr=True, soft_wrap=True)


def known(value: Any) -> bool:
    """Tell whether a number is there to be shown: NaN stands for what is not known."""
    return not (isinstance(value, float) and not math.isfinite(value))


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """Print a table for people, its lines never broken."""
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(Text(column), justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(printable(_cell(each))) for each in row))
    out.print(printable(title), style="bold", highlight=False, markup=False)
    Console(width=1000).print(table)


def _cell(value: Any) -> str:
    if value is None or not known(value):
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        size = abs(value)
        if size < 5e-8:
            return "0"
        return f"{value:.5f}" if 1e-3 <= size < 1e4 else f"{value:.3g}"
    return str(value)


def printable(text: str) -> str:
    r"""Escape what a terminal would obey: names of files and columns are not ours.

    >>> printable("\x1b[31mred")
    '\\x1b[31mred'
    """
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def say(text: str) -> None:
    """Print a sentence, or some lines, as it is."""
    lines = "\n".join(map(printable, text.split("\n")))
    out.print(lines, highlight=False, markup=False)


def print_json(value: dict[str, Any]) -> None:
    """Print the one JSON object of a verb."""
    sys.stdout.write(json.dumps(_plain(value), ensure_ascii=False) + "\n")


def _plain(value: Any) -> Any:
    """Turn what a result holds into what JSON holds: no NaN, no infinity."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value if known(value) else None


def warn(warnings: Iterable[str]) -> None:
    """Print warnings to stderr."""
    for sentence in warnings:
        told = printable(f"warning: {sentence}")
        err.print(told, style="yellow", highlight=False, markup=False)


@contextlib.contextmanager
def shown_progress() -> Iterator[Progress | None]:
    """Show what is being done, where somebody is looking."""
    if not err.is_terminal:
        yield None
        return
    from rich.progress import Progress as Bars

    with Bars(console=err, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def tell(what: str, share: float) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=1.0)
            bars.update(tasks[what], completed=share)

        yield tell
