"""Claims: what the paper says, asked of stores.

Each claim is a function that makes one number of what a study shows, with an interval,
and is registered by its name with the bounds between which it holds. Adding one takes
such a function and nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ensize.checks import InputError, one_of
from ensize.claims import (
    along_n,
    along_size,
    budgets,
    calibration,
    comparisons,
    forecasts,
    temperatures,
)
from ensize.claims.verdicts import CLAIMS, VERDICTS, Answer, Claim
from ensize.evidence import gather_evidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ensize.evidence import Evidence
    from ensize.predictions import Progress

__all__ = ["CLAIMS", "Answer", "Claim", "Claims", "check_claims"]

# The rooms were imported in the order of their names; this is the order of the paper.
for _room in (
    *(along_n, temperatures, calibration),
    *(along_size, budgets, forecasts, comparisons),
):
    for _name, _claim in list(CLAIMS.items()):
        if _claim.ask.__module__ == _room.__name__:
            CLAIMS[_name] = CLAIMS.pop(_name)


@dataclass(frozen=True)
class Claims:
    """What stores say of the paper's claims.

    Parameters
    ----------
    answers
        Study by study, in the paper's order; then those that compare studies.
    warnings
        Sentences on what a reader should know.
    options
        The choices that shaped the answers.
    """

    answers: tuple[Answer, ...]
    warnings: tuple[str, ...]
    options: dict[str, Any]

    def counts(self) -> dict[str, int]:
        """Count the answers by verdict."""
        said = [each.verdict for each in self.answers]
        return {verdict: said.count(verdict) for verdict in VERDICTS}

    def records(self) -> list[dict[str, Any]]:
        """List the answers as plain records."""
        return [vars(each).copy() for each in self.answers]

    def table(self) -> str:
        """Write the answers as a table for reading: verdict, number, interval."""
        lines = []
        for each in self.answers:
            number = f"{each.value:10.4g}  {each.low:10.4g} to {each.high:<10.4g}"
            number = "" if math.isnan(each.value) else number
            lines.append(f"{each.name:24}{each.verdict:16}{number}".rstrip())
        return "\n".join(lines)


def check_claims(
    stores: Any,
    *,
    only: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Claims:
    """Ask stores for the paper's claims.

    Parameters
    ----------
    stores
        A store or its path, several of them, or evidence that is gathered already.
    only
        The names of some claims; all if not given.
    progress
        Told what is being done and which share of it is done.

    Examples
    --------
    >>> from ensize.evidence import evidence_of
    >>> from ensize.synthetic import World
    >>> pool = World().predictions(12)
    >>> found = check_claims(evidence_of([pool]), only=["cnll-n-law"])
    >>> print(found.table()[:29])
    cnll-n-law              holds
    """
    names = list(CLAIMS) if only is None else list(only)
    if not names:
        raise InputError("no claims were asked for; give names, or leave them out")
    for name in names:
        one_of("claim", name, list(CLAIMS))
    asked = [each for name, each in CLAIMS.items() if name in names]
    studies = gather_evidence(stores, progress=progress)
    rows: list[tuple[Claim, Sequence[Evidence]]] = [
        (each, (study,)) for study in studies for each in asked if not each.compares
    ]
    rows += [(each, studies) for each in asked if each.compares]
    answers = []
    for done, (each, about) in enumerate(rows):
        if progress is not None:
            progress("asking for claims", done / len(rows))
        answers.append(each.answer(about))
    if progress is not None:
        progress("asking for claims", 1.0)
    warnings = tuple(each for study in studies for each in study.warnings)
    return Claims(tuple(answers), warnings, {"only": only, "level": 0.9})
