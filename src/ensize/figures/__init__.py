"""Figures: every figure and table of the paper, by name, from any stores.

Each is as wide as a column, can be read in gray, and comes with its caption and with
the numbers that are drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl

from ensize.checks import InputError, one_of
from ensize.evidence import gather_evidence
from ensize.figures import along_n
from ensize.figures.drawings import DRAWINGS, Drawing, Drawn, Lacking
from ensize.figures.style import RC

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ensize.predictions import Progress

__all__ = ["DRAWINGS", "Drawing", "Drawn", "Lacking", "draw", "draw_each"]

_ROOMS = (along_n,)  # whose drawings are registered by being imported


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
    >>> drawn.records[0]["curve"], drawn.records[0]["n"]
    ('NLL, τ = 1', 1)
    """
    drawing = DRAWINGS[one_of("figure", name, list(DRAWINGS))]
    evidence = gather_evidence(stores)
    if not drawing.together and len(evidence) > 1:
        names = ", ".join(repr(each.name) for each in evidence)
        raise InputError(
            f"figure {name!r} is of one store, but there are {names}; give one of them"
        )
    try:
        with mpl.rc_context(RC):
            return drawing.draw(evidence)
    except Lacking as lacking:
        raise InputError(f"figure {name!r} cannot be drawn: {lacking}") from lacking


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
            with mpl.rc_context(RC):
                yield drawing, of, drawing.draw(group)
        except Lacking as lacking:
            yield drawing, of, str(lacking)
