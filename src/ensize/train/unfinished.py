"""Unfinished committees: the name of a checkpoint says which networks are in it.

`0-17+20.checkpoint` is of the networks 0 to 17 and 20. So a committee is continued
with exactly its networks by whoever finds it, and no list of them can go stale.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from ensize.stores.files import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAME = re.compile(r"([0-9]+(-[0-9]+)?(\+[0-9]+(-[0-9]+)?)*)\.checkpoint")
# Filesystems take 255 bytes, and a temporary name is longer.
_LONGEST = 180
# No committee has as many networks; a name may say any number.
_MOST = 100_000


def checkpoint_of(folder: Path, numbers: Sequence[int]) -> Path:
    """Name the checkpoint of these networks, in ascending order."""
    breaks = [i for i, (a, b) in enumerate(pairwise(numbers), 1) if b != a + 1]
    parts = [numbers[i:j] for i, j in pairwise([0, *breaks, len(numbers)])]
    spans = [f"{p[0]}-{p[-1]}" if len(p) > 1 else f"{p[0]}" for p in parts]
    return folder / f"{'+'.join(spans)}.checkpoint"


def nameable(numbers: Sequence[int]) -> list[int]:
    """Leave the last networks out, as long as the checkpoint's name is too long."""
    chosen = list(numbers)
    while chosen and len(checkpoint_of(Path(), chosen).name) > _LONGEST:
        chosen.pop()
    return chosen


def checkpoints_in(folder: Path) -> list[tuple[list[int], Path]]:
    """List the unfinished committees in a folder, and the networks of each."""
    found = []
    for name in sorted(entry.name for entry in listed(folder)):
        if match := _NAME.fullmatch(name):
            spans = [list(map(int, span.split("-"))) for span in match[1].split("+")]
            counts = [span[-1] - span[0] + 1 for span in spans]
            if min(counts) > 0 and sum(counts) <= _MOST:
                numbers = [n for span in spans for n in range(span[0], span[-1] + 1)]
                found.append((numbers, folder / name))
    return found


def remove(checkpoint: Path) -> None:
    """Remove a checkpoint, and what is left of it by those who were killed writing."""
    checkpoint.unlink(missing_ok=True)
    for path in checkpoint.parent.glob(f".*{checkpoint.name}.*.partial"):
        path.unlink(missing_ok=True)
