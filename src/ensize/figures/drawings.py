"""Drawings: the figures by name, and what drawing one gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.figure import Figure

    from ensize.evidence import Evidence


class Lacking(Exception):  # noqa: N818 - it is an answer, not a mistake
    """What stores lack for a figure, in a sentence."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """A figure with what it says.

    Parameters
    ----------
    figure
        The figure, as wide as a column.
    caption
        What is seen, in which units, and how many networks and objects it rests on.
    records
        The numbers that are drawn, as plain records.
    """

    figure: Figure
    caption: str
    records: list[dict[str, Any]]


@dataclass(frozen=True)
class Drawing:
    """A figure that can be drawn.

    Parameters
    ----------
    name
        What it is asked for by.
    title, paper
        What it shows, and where the paper has it.
    draw
        Draws it; raises `Lacking` where there is not what it needs.
    together
        Whether it is drawn of all stores together, or of each.
    """

    name: str
    title: str
    paper: str
    draw: Callable[[Sequence[Evidence]], Drawn]
    together: bool


DRAWINGS: dict[str, Drawing] = {}


def of_each(
    name: str, title: str, paper: str
) -> Callable[[Callable[[Evidence], Drawn]], Callable[[Evidence], Drawn]]:
    """Register a figure of one store."""

    def register(draw: Callable[[Evidence], Drawn]) -> Callable[[Evidence], Drawn]:
        DRAWINGS[name] = Drawing(
            name, title, paper, lambda one: draw(one[0]), together=False
        )
        return draw

    return register


def of_all(
    name: str, title: str, paper: str
) -> Callable[
    [Callable[[Sequence[Evidence]], Drawn]], Callable[[Sequence[Evidence]], Drawn]
]:
    """Register a figure of several stores together."""

    def register(
        draw: Callable[[Sequence[Evidence]], Drawn],
    ) -> Callable[[Sequence[Evidence]], Drawn]:
        DRAWINGS[name] = Drawing(name, title, paper, draw, together=True)
        return draw

    return register


def plane_in(found: Evidence) -> Any:
    """Return the plane, or say that there is none."""
    if found.plane is None:
        raise Lacking(found.lacking)
    return found.plane


def counts_of(found: Evidence) -> str:
    """Say what a figure rests on: networks, sizes, objects."""
    networks = [found.curve(k).networks for k in range(len(found.pools))]
    low, high = min(networks), max(networks)
    each = f"{low}" if low == high else f"{low} to {high}"
    sizes = len(found.pools)
    of = f"{sizes} sizes, {each} networks of each" if sizes > 1 else f"{each} networks"
    return f"{found.name}: {of}, {found.objects:,} test objects"
