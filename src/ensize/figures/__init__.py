"""Figures: every figure and table of the paper, by name, from any stores.

Each is as wide as a column, can be read in gray, and comes with its caption and with
the numbers that are drawn.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl

from ensize.checks import InputError, one_of
from ensize.evidence import gather_evidence, opened
from ensize.figures import (
    along_n,
    along_size,
    along_temperature,
    over_plane,
    predicting,
    splitting,
    timing,
)
from ensize.figures.drawings import REGISTERED, Drawing, Drawn, Lacking
from ensize.figures.files import FORMATS, Album, Folder, Written
from ensize.figures.style import RC

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from ensize.evidence import Evidence
    from ensize.predictions import Progress

__all__ = [
    "DRAWINGS",
    "FORMATS",
    "Album",
    "Drawing",
    "Drawn",
    "Lacking",
    "Written",
    "draw",
    "draw_each",
    "write_all",
]

# Their drawings are registered by being imported.
_ROOMS = (
    over_plane,
    along_n,
    along_temperature,
    along_size,
    splitting,
    predicting,
    timing,
)

# In the order of the paper.
DRAWINGS = {each.name: each for each in sorted(REGISTERED, key=lambda one: one.place)}


def draw(name: str, stores: Any) -> Drawn:
    """Draw one figure of one store, or of several where it compares them.

    Parameters
    ----------
    name
        As in `DRAWINGS`.
    stores
        A store or its path, several of them, or what `gather_evidence` returned.

    >>> from ensize.evidence import evidence_of
    >>> from ensize.synthetic import Family
    >>> worlds = [Family.splits_pay(objects=200).of(s) for s in (20_000, 80_000)]
    >>> drawn = draw("curves", evidence_of([each.predictions(8) for each in worlds]))
    >>> drawn.records[0]["score"], drawn.records[0]["n"]
    ('nll', 1)
    """
    drawing = DRAWINGS[one_of("figure", name, list(DRAWINGS))]
    evidence = gather_evidence(stores)
    if not drawing.together and len(evidence) > 1:
        names = ", ".join(repr(each.name) for each in evidence)
        raise InputError(
            f"figure {name!r} is of one store, but there are {names}; give one of them"
        )
    try:
        return _drawn(drawing, evidence)
    except Lacking as lacking:
        raise InputError(f"figure {name!r} cannot be drawn: {lacking}") from lacking


def write_all(
    stores: Any,
    folder: str | os.PathLike[str],
    *,
    only: Sequence[str] | None = None,
    formats: Sequence[str] = ("png",),
    progress: Progress | None = None,
) -> Album:
    """Draw all figures, or some, into a folder, with their data and captions.

    Parameters
    ----------
    stores
        As for `draw`.
    folder
        Where; NAME.csv stands beside each picture, and captions.md has what all say.
    only
        The names of some.
    formats
        Of the pictures: some of ``"png"``, ``"svg"`` and ``"pdf"``.
    progress
        Told what is being done and which share of it is done.
    """
    for each in only or ():
        one_of("figure", each, list(DRAWINGS))
    given = opened(stores)
    # What takes long comes after all that may be wrong with what was asked.
    place = Folder(Path(folder), formats)
    evidence = gather_evidence(given, progress=progress)
    for drawing, of, drawn in draw_each(evidence, only=only, progress=progress):
        place.write(drawing, of, drawn, named=len(evidence) > 1)
    place.write_captions()
    warnings = tuple(each for found in evidence for each in found.warnings)
    return Album(tuple(place.written), warnings)


def draw_each(
    stores: Any,
    *,
    only: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Iterator[tuple[Drawing, str | None, Drawn | str]]:
    """Draw all figures, or some, one after another.

    Yields each drawing, the store that it is of (None where it is of all), and what
    was drawn, or the sentence that says what the stores lack for it.
    """
    names = list(DRAWINGS)
    chosen = [one_of("figure", each, names) for each in only] if only else names
    evidence = gather_evidence(stores, progress=progress)
    jobs = []
    for name in chosen:
        drawing = DRAWINGS[name]
        groups = [evidence] if drawing.together else [(each,) for each in evidence]
        jobs += [(drawing, group) for group in groups]
    for i, (drawing, group) in enumerate(jobs):
        if progress is not None:
            progress("drawing", i / len(jobs))
        of = None if drawing.together else group[0].name
        try:
            yield drawing, of, _drawn(drawing, group)
        except Lacking as lacking:
            yield drawing, of, str(lacking)


def _drawn(drawing: Drawing, evidence: Sequence[Evidence]) -> Drawn:
    """Draw in our style, and lay out for good: a file looks as the others do."""
    with mpl.rc_context(RC):
        drawn = drawing.draw(evidence)
        # The room for ticks depends on their letters, and these on the room.
        for _ in range(2):
            drawn.figure.draw_without_rendering()
        drawn.figure.set_layout_engine("none")
    return drawn
