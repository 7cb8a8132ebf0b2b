"""Verdicts: what a claim is, what evidence says of it, and who asks.

A claim is one number, an interval of 90 % around it, and the bounds between which the
claim holds. It holds where the whole interval lies between the bounds, does not hold
where all of it lies outside, and cannot be said where the interval contains a bound, or
where the evidence is too thin for a number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ensize.checks import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ensize.claims.estimates import Estimate
    from ensize.evidence import Evidence

HOLDS, FAILS, UNSAID = "holds", "does not hold", "cannot be said"
VERDICTS = (HOLDS, FAILS, UNSAID)


class Contradiction(Exception):  # noqa: N818 # no error: it is an answer
    """What was found contradicts a claim without a number for it."""


@dataclass(frozen=True)
class Bounds:
    """Between which values a claim holds.

    >>> bounds = Bounds(most=0.01)
    >>> print(bounds, "|", bounds.verdict(0.002, 0.004), "|", bounds.verdict(0.0, 0.1))
    at most 0.01 | holds | cannot be said
    """

    least: float = -math.inf
    most: float = math.inf

    def verdict(self, low: float, high: float) -> str:
        """Compare an interval with the bounds."""
        if math.isnan(low) or math.isnan(high):
            return UNSAID
        if self.least < low and high < self.most:
            return HOLDS
        return FAILS if high < self.least or low > self.most else UNSAID

    def __str__(self) -> str:
        if math.isinf(self.least):
            return f"at most {self.most:g}"
        if math.isinf(self.most):
            return f"at least {self.least:g}"
        return f"from {self.least:g} to {self.most:g}"


@dataclass(frozen=True)
class Answer:
    """What evidence says of a claim.

    Parameters
    ----------
    name, store
        Which claim, and of what it was asked.
    verdict
        `holds`, `does not hold` or `cannot be said`.
    value, low, high
        The number, with an interval of 90 %; NaN where there is none.
    bounds
        Where the claim holds.
    sentence
        What was found.
    claim, section
        What the paper says, and where.
    """

    name: str
    store: str
    verdict: str
    value: float
    low: float
    high: float
    bounds: str
    sentence: str
    claim: str
    section: str


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, and how it is asked.

    Parameters
    ----------
    name
        What it is called.
    says, section
        What the paper says, and in which of its sections.
    bounds
        Where the claim holds.
    ask
        Finds the number and a sentence, in one study or, of a claim that compares,
        in several; raises `InputError` where the evidence is too thin.
    compares
        Whether it compares studies.
    """

    name: str
    says: str
    section: str
    bounds: Bounds
    ask: Callable[[Any], tuple[Estimate, str]]
    compares: bool = False

    def answer(self, asked: Sequence[Evidence]) -> Answer:
        """Ask one study, or several where the claim compares."""
        value = low = high = math.nan
        try:
            found, sentence = self.ask(asked if self.compares else asked[0])
        except InputError as error:
            verdict, sentence = UNSAID, str(error)
        except Contradiction as found_otherwise:
            verdict, sentence = FAILS, str(found_otherwise)
        else:
            value, low, high = found.value, found.low, found.high
            verdict = self.bounds.verdict(low, high)
            if verdict == UNSAID and math.isnan(low):
                sentence += "; how sure that is cannot be told"
            elif verdict == UNSAID:
                sentence += f"; the interval does not tell whether it is {self.bounds}"
        store = ", ".join(each.name for each in asked)
        return Answer(
            self.name,
            store,
            verdict,
            *(value, low, high),
            str(self.bounds),
            sentence,
            self.says,
            self.section,
        )


def counted(number: int, noun: str) -> str:
    """Say how many.

    >>> counted(1, "pool"), counted(3, "pool")
    ('1 pool', '3 pools')
    """
    return f"{number} {noun}{'s' * (number != 1)}"


# Every claim that is registered.
CLAIMS: dict[str, Claim] = {}


def claim(
    name: str, says: str, *, section: str, bounds: Bounds, compares: bool = False
) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Register the function below as what asks for a claim."""

    def register(ask: Callable[[Any], Any]) -> Callable[[Any], Any]:
        CLAIMS[name] = Claim(name, says, section, bounds, ask, compares)
        return ask

    return register
