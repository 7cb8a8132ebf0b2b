"""Files of figures: pictures, the numbers in them, and what they say."""

from __future__ import annotations

import csv
import io
import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import matplotlib as mpl

from ensize.checks import InputError, one_of
from ensize.figures.style import RC
from ensize.stores import reported

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ensize.figures.drawings import Drawing, Drawn

FORMATS = ("png", "svg", "pdf")
# Nothing that differs from day to day, or from one machine to another.
_METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


@dataclass(frozen=True)
class Written:
    """A figure in its files, or why it was skipped.

    Parameters
    ----------
    name, title, paper
        Which figure it is, what it shows, and where the paper has it.
    store
        The store that it is of; None where it is of all.
    files, data
        The pictures, and the numbers in them as CSV; empty of a skipped one.
    caption
        What is seen.
    skipped
        What the stores lack for it; None if it was drawn.
    """

    name: str
    title: str
    paper: str
    store: str | None
    files: tuple[Path, ...]
    data: Path | None
    caption: str
    skipped: str | None

    @property
    def stem(self) -> str:
        """What its files are called, but for their endings."""
        return self.data.stem if self.data is not None else self.name


@dataclass(frozen=True)
class Album:
    """All figures that were asked for, and what a reader of them should know."""

    figures: tuple[Written, ...]
    warnings: tuple[str, ...]


class Folder:
    """The folder that figures go into, made if it is not there."""

    def __init__(self, path: Path, formats: Sequence[str]) -> None:
        self.path = path
        self.formats = list(
            dict.fromkeys(one_of("format", k, FORMATS) for k in formats)
        )
        self.written: list[Written] = []
        self._taken: set[str] = set()
        if path.exists() and not path.is_dir():
            raise InputError(f"{path} is a file; name the folder that figures go into")
        with reported(path, "made"):
            path.mkdir(parents=True, exist_ok=True)

    def write(
        self, drawing: Drawing, store: str | None, found: Drawn | str, *, named: bool
    ) -> None:
        """Write a figure with its data, under its store's name too if it is `named`."""
        about = (drawing.name, drawing.title, drawing.paper, store)
        if isinstance(found, str):
            self.written.append(Written(*about, (), None, "", found))
            return
        stem = drawing.name
        if named and store is not None:
            stem = self._stem(drawing.name, store)
        data = self._put(f"{stem}.csv", as_csv(found.records).encode("utf-8"))
        files = tuple(
            self._put(f"{stem}.{kind}", as_picture(found, kind))
            for kind in self.formats
        )
        self.written.append(Written(*about, files, data, found.caption, None))

    def write_captions(self) -> None:
        """Write what all figures say into one file."""
        self._put("captions.md", _captions(self.written).encode("utf-8"))

    def _put(self, name: str, content: bytes) -> Path:
        path = self.path / name
        with reported(path, "written"):
            path.write_bytes(content)
        return path

    def _stem(self, name: str, store: str) -> str:
        """Name a figure of a store as no other is named."""
        plain = f"{name}-{_plain(store)}"
        others = (f"{plain}-{count}" for count in itertools.count(2))
        stem = next(
            each for each in itertools.chain([plain], others) if each not in self._taken
        )
        self._taken.add(stem)
        return stem


def as_picture(drawn: Drawn, kind: str) -> bytes:
    """Draw a figure as a file; the same figure gives the same bytes."""
    file = io.BytesIO()
    with mpl.rc_context(RC):
        drawn.figure.savefig(file, format=kind, metadata=_METADATA[kind])
    return file.getvalue()


def as_csv(records: Sequence[dict[str, Any]]) -> str:
    """Write records as CSV; what one of them lacks is empty.

    >>> print(as_csv([{"n": 1, "nll": 0.5}, {"n": 2, "best": True}]), end="")
    n,nll,best
    1,0.5,
    2,,True
    """
    names = list(dict.fromkeys(name for record in records for name in record))
    file = io.StringIO()
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return file.getvalue()


def _plain(name: str) -> str:
    """Make part of a file name of what a store calls itself: nothing else of it.

    >>> _plain("VGG on <../CIFAR 100>")
    'VGG-on-CIFAR-100'
    """
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:60] or "store"


def _captions(written: Sequence[Written]) -> str:
    parts = ["# Figures\n"]
    for each in written:
        of = "" if each.store is None else f" ({each.store})"
        said = each.caption or f"Not drawn: {each.skipped}."
        files = ", ".join(path.name for path in each.files)
        parts.append(
            f"## {each.title}{of}\n\n{files or each.name} · {each.paper} of the paper"
            f"\n\n{said}\n"
        )
    return "\n".join(parts)
