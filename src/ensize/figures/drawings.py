"""Drawings: the figures by name, and what drawing one gives."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.figure import Figure

    from ensize.evidence import Evidence
    from ensize.planes import Plane

# Fewer points than this make no curve worth looking at, nor a law.
POINTS = 4
BEFORE = "the temperature is applied before averaging"


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

    @property
    def place(self) -> tuple[bool, int, str]:
        """Where the paper has it, for sorting: its tables after its figures."""
        first = re.search(r"\d+", self.paper)
        number = 0 if first is None else int(first[0])
        return self.paper.startswith("table"), number, self.paper


REGISTERED: list[Drawing] = []


def of_each(
    name: str, title: str, paper: str
) -> Callable[[Callable[[Evidence], Drawn]], Callable[[Evidence], Drawn]]:
    """Register a figure of one store."""

    def register(draw: Callable[[Evidence], Drawn]) -> Callable[[Evidence], Drawn]:
        REGISTERED.append(
            Drawing(name, title, paper, lambda one: draw(one[0]), together=False)
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
        REGISTERED.append(Drawing(name, title, paper, draw, together=True))
        return draw

    return register


def plane_in(found: Evidence) -> Plane:
    """Return the plane, or say that there is none."""
    if found.plane is None:
        raise Lacking(found.lacking)
    return found.plane


def with_planes(found: Sequence[Evidence]) -> list[Evidence]:
    """Choose the stores that have planes, or say that none has."""
    some = [each for each in found if each.plane is not None]
    if not some:
        plane_in(found[0])
    return some


def unregularized_in(found: Sequence[Evidence]) -> list[Evidence]:
    """Choose the stores that were trained without regularization, or say so."""
    some = [each for each in found if each.unregularized]
    if not some:
        raise Lacking(
            "no store was trained without weight decay and dropout; add one of a study"
            " that turns them off (weight_decay = 0, dropout = 0)"
        )
    return with_planes(some)


def too_few(found: Evidence, needed: int, k: int = 0) -> Lacking:
    """Say that a pool has too few networks."""
    return Lacking(
        f"pool {found.pools[k].pool.name!r} of {found.name} has"
        f" {found.curve(k).networks} networks, too few for a law along n; train at"
        f" least {needed}"
    )


def counts_of(found: Evidence) -> str:
    """Say what a figure rests on: networks, sizes, objects."""
    networks = [found.curve(k).networks for k in range(len(found.pools))]
    low, high = min(networks), max(networks)
    each = f"{low}" if low == high else f"{low} to {high}"
    sizes = len(found.pools)
    of = f"{sizes} sizes, {each} networks of each" if sizes > 1 else f"{each} networks"
    return f"{found.name}: {of}, {found.objects:,} test objects"


def counts_of_all(found: Sequence[Evidence]) -> str:
    """Say what a figure of several stores rests on."""
    return "; ".join(counts_of(each) for each in found)
