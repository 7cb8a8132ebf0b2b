"""Words: numbers as people read them, and the sentences made of them."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# Narrow, and no line is broken there.
THIN = "\u202f"
NAMES = {"cnll": "CNLL", "accuracy": "accuracy"}
UNITS = {
    "parameters": "parameters",
    "multiply-adds": "multiply-adds a prediction",
    "seconds": "seconds to predict the test set",
}
_SYMBOL = re.compile(r"\w (is|=) ")
_STEPS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def short(x: float) -> str:
    """Write a count in few characters.

    >>> short(15_300_000), short(999_999), short(640)
    ('15.3\u202fM', '1\u202fM', '640')
    """
    for size, unit in _STEPS:
        if x >= 0.99995 * size:
            return f"{x / size:.4g}{THIN}{unit}"
    return f"{x:.4g}"


def cost_of(x: float, unit: str) -> str:
    """Write what something costs, with its unit."""
    return f"{x:.4g} s" if unit == "seconds" else f"{short(x)} {unit}"


def shown(x: float | None, score: str = "cnll") -> str:
    """Write a score; what is not known is a dash."""
    if x is None or not math.isfinite(x):
        return "–"
    return f"{100 * x:.2f}{THIN}%" if score == "accuracy" else f"{x:.4f}"


def between(low: float | None, high: float | None, score: str = "cnll") -> str:
    """Write an interval."""
    return f"{shown(low, score)} to {shown(high, score)}"


def changes(*numbers: float) -> list[str]:
    """Write a change to two digits, and its interval to as many places.

    >>> changes(0.0091, 0.00721, 0.0111)
    ['0.0091', '0.0072', '0.0111']
    """
    size = max(abs(numbers[0]), 1e-6)
    places = max(0, 1 - math.floor(math.log10(size)))
    return [f"{each:.{places}f}" for each in numbers]


def networks(n: int) -> str:
    """Count networks.

    >>> networks(1), networks(2000)
    ('1 network', '2,000 networks')
    """
    return f"{n:,} network{'s' * (n != 1)}"


def ordinal(n: int) -> str:
    """Write which one it is.

    >>> [ordinal(n) for n in (1, 2, 11, 23)]
    ['1st', '2nd', '11th', '23rd']
    """
    teens = 10 < n % 100 < 14
    end = "th" if teens else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n:,}{end}"


def listed(names: Sequence[str]) -> str:
    """List names in a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def sentence(text: str) -> str:
    """Begin with a capital letter, unless it is a symbol, and end with a full stop.

    >>> sentence("a split is worth it"), sentence("a is -0.9")
    ('A split is worth it.', 'a is -0.9.')
    """
    if not text:
        return ""
    first = text[0] if _SYMBOL.match(text) else text[0].upper()
    return f"{first}{text[1:].rstrip('.')}."
