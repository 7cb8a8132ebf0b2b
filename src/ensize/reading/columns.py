"""Columns of a CSV file: the points of a curve."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ensize.checks import InputError
from ensize.reading.formats import file_size
from ensize.stores import reported

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def read_columns(
    path: str | os.PathLike[str], x: str | None = None, y: str | None = None
) -> tuple[Floats, Floats, tuple[str, str]]:
    """Read two columns of numbers, and the names that they go by.

    Parameters
    ----------
    path
        A CSV file, or one with semicolons or tabs for commas; its first line may name
        the columns.
    x, y
        The names of the columns, or their numbers from 1 on; the first two if not
        given.
    """
    path = Path(path)
    file_size(path, "a CSV file")  # says so if there is none
    with reported(path), path.open(newline="", encoding="utf-8-sig") as file:
        try:
            rows = [(line, row) for line, row in _numbered(file) if row]
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(
                f"{path} is no CSV file ({error}); write the curve as text, one point"
                " a line"
            ) from error
    if not rows:
        raise InputError(f"{path} is empty; write the curve into it, one point a line")
    first = [cell.strip() for cell in rows[0][1]]
    names = [str(i) for i in range(1, len(first) + 1)]
    if not all(map(_is_number, first)):
        names, rows = first, rows[1:]
    columns = [_find(path, names, wanted, i) for i, wanted in enumerate((x, y))]
    values = np.array(
        [[_number(path, line, row, at, names) for at in columns] for line, row in rows]
    )
    if not len(values):
        raise InputError(f"{path} has column names but no points; add one point a line")
    return values[:, 0], values[:, 1], (names[columns[0]], names[columns[1]])


def _numbered(file: Iterable[str]) -> list[tuple[int, list[str]]]:
    lines = list(file)
    first = next((line for line in lines if line.strip()), "")
    reader = csv.reader(lines, delimiter=max(",;\t", key=first.count))
    return [(reader.line_num, row) for row in reader]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _find(path: Path, names: list[str], wanted: str | None, place: int) -> int:
    numbers = [str(i) for i in range(1, len(names) + 1)]
    option = ("--x", "--y")[place]
    for known in (names, numbers):
        if wanted in known:
            return known.index(wanted)
    if wanted is None and place < len(names):
        return place
    if wanted is None:
        raise InputError(f"{path} has one column only; a curve has two, m and y")
    listed = ", ".join(names)
    raise InputError(
        f"{path} has no column {wanted!r}, but {listed}; choose one with {option}"
    )


def _number(path: Path, line: int, row: list[str], at: int, names: list[str]) -> float:
    cell = row[at].strip() if at < len(row) else ""
    if not _is_number(cell):
        raise InputError(
            f"{path} has {cell!r} in column {names[at]!r} on line {line}, which is no"
            " number; correct it or take the line out"
        )
    return float(cell)
