"""The table of times: what networks of each size take to train and to predict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.figures import style
from ensize.figures.drawings import Drawn, Lacking, of_each

if TYPE_CHECKING:
    from ensize.evidence import Evidence


@of_each("timing", "Times to train and to predict", "table 1")
def timing(found: Evidence) -> Drawn:
    """Write what one network of each size takes, as a table."""
    known = np.isfinite(found.seconds) | np.isfinite(found.prediction_seconds)
    if not known.any() or np.isnan(found.sizes).any():
        raise Lacking(
            f"the networks of {found.name} do not say how long they took; `ensize"
            " study` records it, and so does Store.record with extra={'seconds': …,"
            " 'prediction_seconds': …} and size"
        )
    epochs = found.study.get("recipe", {}).get("epochs")
    per = float(epochs) if isinstance(epochs, (int, float)) and epochs > 0 else None
    standard = found.sizes[found.usual]
    records: list[dict[str, Any]] = []
    for k in range(len(found.pools)):
        seconds = float(found.seconds[k])
        records.append(
            {
                "pool": found.pools[k].pool.name,
                "size": int(found.sizes[k]),
                "relative_size": float(found.sizes[k] / standard),
                "networks": found.pools[k].networks,
                "train_seconds": seconds,
                "epoch_seconds": seconds / per if per else float("nan"),
                "predict_seconds": float(found.prediction_seconds[k]),
            }
        )
    columns = [("parameters", "size"), ("relative", "relative_size")]
    columns += [("train (s)", "train_seconds")]
    columns += [("epoch (s)", "epoch_seconds")] if per else []
    columns += [("predict (s)", "predict_seconds")]
    cells = [[style.cell(each[name]) for _, name in columns] for each in records]
    figure = style.table([label for label, _ in columns], cells)
    which = "the standard size" if found.standard is not None else "the largest size"
    caption = (
        "Seconds that one network of each size takes to train"
        f"{', in all and for an epoch,' if per else ''} and to predict the"
        f" {found.objects:,} test objects, means over the networks of a pool (several"
        " may have been trained at once, and share the time); sizes relative to"
        f" {which}, {style.short(standard)} parameters. {found.name}."
    )
    return Drawn(figure, caption, records)
