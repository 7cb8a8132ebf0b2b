"""The paper's studies by name, with the values that its authors chose.

Values are those of the paper's appendix and of its public code
(nadiinchi/power_laws_deep_ensembles, consts.py). None are published for VGG below
w = 6 and WideResNet below w = 20, although the paper has networks of these widths.
"""

from __future__ import annotations

import math
from typing import Any

from ensize.train.networks import parameters

_VGG = (6, 8, 11, 16, 23, 32, 45, 64, 91, 128, 181)
# Weight decay, dropout and learning rate of VGG by dataset and width.
_CHOSEN = {
    "cifar10": {
        6: (1e-3, 0.0, 0.005),
        **dict.fromkeys((8, 11), (1e-3, 0.0, 0.05)),
        16: (3e-4, 0.0, 0.05),
        **dict.fromkeys((23, 32, 45, 64), (3e-4, 0.25, 0.05)),
        **dict.fromkeys((91, 128, 181), (3e-4, 0.0, 0.05)),
    },
    "cifar100": {
        6: (1e-3, 0.25, 0.005),
        **dict.fromkeys((8, 11, 16), (1e-3, 0.0, 0.05)),
        **dict.fromkeys((23, 32, 45), (1e-3, 0.25, 0.05)),
        64: (1e-3, 0.5, 0.05),
        **dict.fromkeys((91, 128), (3e-4, 0.5, 0.05)),
        181: (1e-3, 0.5, 0.05),
    },
}
_WIDE = {
    "cifar10": (20, 28, 40, 57, 80, 113, 160, 226, 320, 453),
    "cifar100": (20, 28, 40, 56, 80, 113, 160, 226, 320, 453),
}
_CLASSES = {"cifar10": 10, "cifar100": 100}
# The width of the standard size, and how many networks of a large size, N.
_STANDARD = {"vgg16": (64, 64), "wideresnet28": (160, 12)}
_RATES = {"vgg16": 0.05, "wideresnet28": 0.1}

# {dataset}-{family}, with `-unregularized` where there is no regularization.
PRESETS = tuple(
    f"paper-{dataset}-{family}{setting}"
    for family in _STANDARD
    for dataset in _CLASSES
    for setting in ("", "-unregularized")
)


def networks(dataset: str, family: str, width: int) -> int:
    """Say how many networks the paper trains: ℓ = max(N, 8·s_standard / s)."""
    standard, least = _STANDARD[family]
    size, whole = (
        parameters(family, each, shape=(3, 32, 32), classes=_CLASSES[dataset])
        for each in (width, standard)
    )
    return max(least, math.ceil(8 * whole / size))


def declared(name: str) -> dict[str, Any]:
    """Declare one of the paper's studies as a study file does."""
    _, dataset, family, *unregularized = name.split("-")
    widths = _VGG if family == "vgg16" else _WIDE[dataset]
    recipe = {"epochs": 200, "batch": 128, "momentum": 0.9}
    recipe |= {"learning_rate": _RATES[family], "weight_decay": 3e-4, "dropout": 0.0}
    study: dict[str, Any] = {"name": name, "dataset": dataset, "family": family}
    study["widths"] = list(widths)
    study["networks"] = [networks(dataset, family, width) for width in widths]
    if unregularized:
        rate = _RATES[family] / 10
        off = {"learning_rate": rate, "weight_decay": 0.0, "augment": False}
        return {**study, "recipe": {**recipe, **off}}
    if family == "vgg16":
        keys = ("weight_decay", "dropout", "learning_rate")
        study["width"] = {
            str(width): dict(zip(keys, values, strict=True))
            for width, values in _CHOSEN[dataset].items()
        }
    return {**study, "recipe": recipe}
