"""Reports: one page that stands alone, to show to colleagues.

First the answer in words, then a planner that answers for other budgets, then figures,
claims, tables, and where all of it comes from. The page is one file: it needs no
network, and the same stores make the same bytes.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ensize.checks import InputError
from ensize.planes import budget_of
from ensize.reports.pages import page_of
from ensize.reports.studies import read_studies
from ensize.stores import reported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ensize.predictions import Progress
    from ensize.reports.studies import Study

    Folder = str | os.PathLike[str]

__all__ = ["Report", "report"]

_SUFFIXES = (".html", ".htm")


@dataclass(frozen=True)
class Report:
    """A page that was written.

    Parameters
    ----------
    file
        Where it is.
    size
        How many bytes it has.
    headlines
        The answers, by the names of the studies.
    warnings, options
        What a reader should know, and the choices that shaped the page.
    """

    file: Path
    size: int
    headlines: dict[str, str]
    warnings: tuple[str, ...]
    options: dict[str, Any]


def report(
    stores: Folder | Sequence[Folder],
    file: str | os.PathLike[str],
    *,
    budgets: Sequence[float | str] = (),
    title: str | None = None,
    progress: Progress | None = None,
) -> Report:
    """Write a page on one store or several: one file that stands alone.

    Parameters
    ----------
    stores
        A store, its path, or several of them.
    file
        Where to write the page; one that is there is replaced.
    budgets
        Budgets that the planner has beside its own, in parameters, such as
        ``"15.3M"``; the first of them is the one that is answered for. Without, it is
        that of one network of the largest pool.
    title
        Stands above the answer.
    progress
        Told what is being done and which share of it is done.
    """
    path = Path(file)
    if path.suffix.lower() not in _SUFFIXES or path.is_dir():
        raise InputError(
            f"the page cannot be written to {path}: it is a file of HTML; name it, as"
            " in report.html"
        )
    if not path.parent.is_dir():
        raise InputError(
            f"{path.parent}, where the page should go, is no folder; make it first"
        )
    asked = [budget_of(each) for each in budgets]
    given = [stores] if isinstance(stores, (str, os.PathLike)) else list(stores)
    if not given:
        raise InputError("there are no stores to report on; give at least one")
    studies = read_studies([Path(each) for each in given], progress=progress)
    _check_budgets(asked, studies)
    options = {"within": "0.5%", "budgets": asked, "title": title}
    drawn = importlib.util.find_spec("matplotlib") is not None
    page = page_of(studies, options, drawn=drawn, progress=progress)
    content = page.html.encode("utf-8")
    _replace(path, content)
    return Report(path, len(content), page.headlines, page.warnings, options)


def _check_budgets(budgets: Sequence[float], studies: Sequence[Study]) -> None:
    """Refuse budgets that none of the studies can plan."""
    least = [int(each.planes[0].sizes[0]) for each in studies if each.whole]
    if budgets and not least:
        raise InputError(
            f"budgets cannot be planned: {studies[0].evidence.lacking}; leave them out"
        )
    for each in budgets:
        if each < min(least):
            raise InputError(
                f"the budget is {each:,.10g} parameters, but the smallest network takes"
                f" {min(least):,}; give at least that"
            )


def _replace(path: Path, content: bytes) -> None:
    """Write a file whole; what has its name gives way at once or not at all."""
    hidden = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    with reported(path, "written"):
        try:
            hidden.write_bytes(content)
            hidden.replace(path)
        finally:
            hidden.unlink(missing_ok=True)
