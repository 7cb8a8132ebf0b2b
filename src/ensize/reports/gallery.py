"""Gallery: the figures of a study as pictures that stand in the page.

Each is an SVG in an `img` element, so that nothing in it can run, none of its names
meet those of another, and its letters are drawn: it looks the same everywhere.
"""

from __future__ import annotations

import base64
import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ensize.evidence import Evidence
    from ensize.predictions import Progress

# A page is one that people send by mail: figures take at most this much of it.
_ROOM = 3_500_000
# Of the lines drawn, beyond hundredths of a point nothing is seen.
_LINE = re.compile(r' d="[^"]*"')
_DIGITS = re.compile(r"(\.\d\d)\d+")
# A larger drawing is a picture of points, too many to be drawn one by one.
_LARGE = 250_000
_DPI = 200


@dataclass(frozen=True)
class Picture:
    """A figure, or the sentence that says why there is none."""

    name: str
    title: str
    paper: str
    of: str | None
    caption: str
    source: str | None


def pictures_of(
    evidence: Sequence[Evidence], *, progress: Progress | None = None
) -> tuple[Picture, ...]:
    """Draw all figures, in their order, as long as there is room in the page."""
    # Matplotlib is needed for nothing else, and may not be installed.
    from ensize.figures import draw_each  # noqa: PLC0415

    found, left = [], _ROOM
    for drawing, of, drawn in draw_each(evidence, progress=progress):
        known = (drawing.name, drawing.title, drawing.paper, of)
        if isinstance(drawn, str):
            found.append(Picture(*known, drawn, None))
            continue
        source = _picture(drawn.figure)
        if len(source) > left:
            lacking = f"the page is full; ensize figures --only {drawing.name} draws it"
            found.append(Picture(*known, lacking, None))
            continue
        left -= len(source)
        found.append(Picture(*known, drawn.caption, source))
    return tuple(found)


def _picture(figure: Any) -> str:
    """Write a figure as what an `img` element takes; the same figure, the same text."""
    import matplotlib as mpl  # noqa: PLC0415

    file = io.BytesIO()
    # Letters as shapes; names of its parts that are no random numbers.
    with mpl.rc_context({"svg.fonttype": "path", "svg.hashsalt": "ensize"}):
        figure.savefig(
            file,
            format="svg",
            transparent=True,
            metadata={"Date": None, "Creator": None},
        )
    svg = _LINE.sub(
        lambda line: _DIGITS.sub(r"\1", line[0]), file.getvalue().decode("utf-8")
    )
    if len(svg) <= _LARGE:
        return _source("svg+xml", svg[svg.index("<svg") :].encode("utf-8"))
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=_DPI, metadata={"Software": None})
    return _source("png", file.getvalue())


def _source(kind: str, content: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"
