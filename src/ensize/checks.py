"""The one gate for what users hand in, and the error that says what to do next.

Public functions call these checks as their first lines; inside the rooms the
values are trusted.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


_SHOWN = 60


class InputError(ValueError):
    """What a user handed in cannot be used.

    The message is one sentence that names the file or value, says what is wrong
    with it and what to do instead.
    """


def shown(value: Any) -> str:
    """Quote a value, in short: a list may be endless, and so may an integer.

    >>> shown("a" * 1000)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…"
    """
    try:
        text = repr(value)
    except ValueError:  # Python writes no integers of thousands of digits
        return "an integer of thousands of digits"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def one_of(name: str, value: str, choices: Sequence[str]) -> str:
    """Return `value` if it is among `choices`; otherwise name the nearest.

    >>> one_of("apply", "befor", ["before", "after"])
    Traceback (most recent call last):
    ...
    ensize.checks.InputError: apply is 'befor', which is not one of 'before', \
'after'; did you mean 'before'?
    """
    if value in choices:
        return value
    listed = ", ".join(repr(choice) for choice in choices)
    near = difflib.get_close_matches(shown(value).strip("'"), choices, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "choose one of them"
    raise InputError(f"{name} is {shown(value)}, which is not one of {listed}; {hint}")


def whole(name: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """Return `value` as an int between `least` and `most`, or say why not."""
    limits = f"from {least} on" if most is None else f"from {least} to {most}"
    number = None
    if not isinstance(value, (bool, np.bool_)):
        try:
            number = int(value)
        except (TypeError, ValueError, OverflowError):
            number = None
    in_range = number is not None and number == value and number >= least
    if number is None or not in_range or (most is not None and number > most):
        raise InputError(f"{name} is {shown(value)}; give a whole number {limits}")
    return number


def positive(name: str, value: Any) -> float:
    """Return `value` as a finite float above zero, or say why not."""
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        number = np.nan
    if not (np.isfinite(number) and number > 0):
        raise InputError(f"{name} is {shown(value)}; give a number above 0")
    return number


def viewed(name: str, value: Any) -> NDArray[Any]:
    """View `value` as a NumPy array: lists, PyTorch and JAX tensors included.

    A tensor is brought from its device and away from its gradient; bfloat16, which
    NumPy lacks, becomes float32, and nothing else is copied that NumPy can view.
    """
    try:
        array = np.asarray(_plain(value))
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"{name} cannot be viewed as a NumPy array ({error}); hand in an array of"
            " floats, in the memory of this machine"
        ) from error
    if array.dtype.kind not in "fiub":
        raise InputError(
            f"{name} holds values of type {array.dtype}, not numbers; hand in an"
            " array of floats"
        )
    return array


def _plain(value: Any) -> Any:
    """Bring a tensor to where NumPy can view it."""
    for step in ("detach", "cpu"):
        value = getattr(value, step)() if hasattr(value, step) else value
    if "bfloat16" in str(getattr(value, "dtype", "")):
        value = value.float() if hasattr(value, "float") else value.astype("float32")
    return value


def class_labels(name: str, value: Any) -> NDArray[np.int64]:
    """Return true classes as a 1-D int64 array, or say which entry is none."""
    array = viewed(name, value)
    if array.ndim != 1:
        raise InputError(
            f"{name} has {array.ndim} dimensions; targets are one true class per"
            " object, in one dimension"
        )
    if array.size == 0:
        raise InputError(f"{name} is empty; targets are one true class per object")
    if array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # NaN of some kinds
            odd = np.flatnonzero(~(np.isfinite(array) & (array == np.floor(array))))
        hint = "" if not odd.size else f" (entry {odd[0]} is {array[odd[0]]})"
        raise InputError(
            f"{name} holds numbers of type {array.dtype}{hint}; targets are"
            " integers, the index of each object's true class"
        )
    labels: NDArray[np.int64] = array.astype(np.int64)
    if labels.min() < 0:
        first = int(np.argmax(labels < 0))
        raise InputError(
            f"{name} has the negative class {labels[first]} at object {first};"
            " classes count from 0"
        )
    return labels
