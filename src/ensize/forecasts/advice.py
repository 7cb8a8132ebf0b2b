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
    law = refits.law
    if law.status is Status.CONSTANT:
        sentence = (
            "All ensembles score the same, as if all networks were one: another one"
            " gains nothing. Check that they were trained from different seeds."
        )
        return (sentence,)
    if law.gain <= 0:
        sentence = (
            "CNLL does not fall as networks are added: there is nothing to forecast."
        )
        return (sentence,)
    ends = np.array([refits.networks, refits.networks + 1, math.inf])
    step, rest = _falls(refits, ends, level)
    gains = (
        f"One more network lowers CNLL by {step[0]:.5f} ({step[1]:.5f} to"
        f" {step[2]:.5f}), endlessly many by {rest[0]:.5f} ({rest[1]:.5f} to"
        f" {rest[2]:.5f})."
    )
    said = [gains, _near(refits, within)]
    if rest[1] <= 0:
        thin = (
            "The evidence is too thin to say how much is left to gain: its interval of"
            f" {level:.0%} contains 0. Train more networks."
        )
        said.append(thin)
    return tuple(said)


def _falls(refits: Refits, n: Floats, level: float) -> list[tuple[float, ...]]:
    """Say how far CNLL falls from the first n to each other, with intervals."""
    value, (own, others) = refits.at(n), refits.luck(n)
    fall = value[0] - value[1:]
    luck = (own[:, :1] - own[:, 1:], others[:, :1] - others[:, 1:])
    half = refits.half_width(luck, level)
    return list(
        zip(*map(np.ndarray.tolist, (fall, fall - half, fall + half)), strict=True)
    )


def _near(refits: Refits, within: float | str) -> str:
    """Say how many networks are enough."""
    law = refits.law
    of = f"{within} of" if str(within).endswith("%") else f"{within} nats of"
    near = law.law.reaches(law.limit + tolerance_of(within, law.limit))
    if near > _MOST:
        return f"More than {_MOST:,} networks come within {of} the limit."
    least = max(1, math.ceil(near - 1e-9))
    few = "1 network comes" if least == 1 else f"{least:,} networks come"
    return f"{few} within {of} the limit, {law.limit:.5f}."
