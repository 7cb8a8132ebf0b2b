"""Advice: what a forecast means for somebody who trains networks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.checks import InputError
from ensize.laws import Status

if TYPE_CHECKING:
    from ensize.forecasts.refits import Refits

Floats = np.ndarray[Any, np.dtype[np.float64]]

# Up to so many networks, advice says how many are enough.
_MOST = 10**6


def tolerance_of(within: float | str, value: float) -> float:
    """Read a tolerance: a part of a value, or a number in nats.

    >>> tolerance_of("1%", 0.4), tolerance_of(0.01, 0.4)
    (0.004, 0.01)
    """
    text = str(within).strip()
    part = text.removesuffix("%")
    try:
        number = float(part)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise InputError(
            f"within is {within!r}; give a part of the limit, as in 1%, or a number"
            " of nats above 0"
        )
    return value * number / 100 if part != text else number


def advise(refits: Refits, level: float, within: float | str) -> tuple[str, ...]:
    """Say what the next network gains, how many are enough, and what is unsure."""
    law, networks = refits.law, refits.networks
    if law.status is Status.CONSTANT:
        sentence = (
            "All ensembles score the same, as if all networks were one: another one"
            " gains nothing. Check that they were trained from different seeds."
        )
        return (sentence,)
    if law.gain <= 0:
        sentence = (
            "CNLL does not fall as networks are added: there is nothing to gain here."
        )
        return (sentence,)
    ends = np.array([networks + 1, math.inf])
    here = np.full(2, float(networks))
    fall, half = refits.fall(here, ends, level)
    next_one, all_others = map(_said, fall.tolist(), half.tolist())
    share = 1 - fall[1] / law.gain
    gain = (
        f"Network number {networks + 1} lowers CNLL by {next_one}, endlessly many more"
        f" by {all_others}."
    )
    done = (
        f"{networks} networks bring {share:.0%} of what ensembles of these networks can"
        " gain over a single one."
    )
    said = [gain, done, _enough(refits, level, within)]
    if law.status is Status.PRIOR:
        usual = (
            f"The exponent, {law.exponent:.2f}, is that of most recipes: these networks"
            " leave theirs open."
        )
        said.append(usual)
    if half[1] >= fall[1]:
        thin = (
            "The evidence is too thin to say how much is left to gain: it may be"
            " nothing. Train more networks."
        )
        said.append(thin)
    return tuple(said)


def _said(value: float, half: float) -> str:
    """Write a value with its interval, to two figures of what is unsure.

    >>> _said(0.00325, 0.0006), _said(8.9e-6, 5e-6)
    ('0.00325 (0.00265 to 0.00385)', '0.0000089 (0.0000039 to 0.0000139)')
    """
    digits = 5 if half == 0 else max(5, 1 - math.floor(math.log10(half)))
    low, high = value - half, value + half
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def _enough(refits: Refits, level: float, within: float | str) -> str:
    """Say how many networks come near to the limit, and between which numbers."""
    limit = refits.law.limit
    tolerance = tolerance_of(within, limit)
    unit = "" if str(within).strip().endswith("%") else " nats"
    near = f"within {within}{unit} of the limit, {limit:.5f}"
    few, value, many = (
        _least(refits, level, tolerance, sign) for sign in (-1.0, 0.0, 1.0)
    )
    if value > _MOST:
        return f"More than {_MOST:,} networks are needed to come {near}."
    come = "network comes" if value == 1 else "networks come"
    between = f"{few:,} to {many:,}" if many <= _MOST else f"{few:,} or more"
    return f"{value:,} {come} {near} (it may take {between})."


def _least(refits: Refits, level: float, tolerance: float, sign: float) -> int:
    """Find the least n from which on what is left is within a tolerance.

    With the sign of -1 or 1, what may be left at least or at most.
    """

    def left(n: int) -> float:
        fall, half = refits.fall(np.array([float(n)]), np.array([math.inf]), level)
        return float(fall[0] + sign * half[0])

    # It falls with n: the law does, and so do its errors.
    low, high = 0, _MOST + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if left(middle) <= tolerance else (middle, high)
    return high
