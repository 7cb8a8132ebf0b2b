"""Study: what a study file declares, one dataset, family and recipe, many widths."""

from __future__ import annotations

import dataclasses
import math
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from ensize.checks import InputError, one_of, positive, shown, whole
from ensize.stores.files import brief, read_text, reported
from ensize.train.loop import Recipe
from ensize.train.networks import FAMILIES
from ensize.train.tuning import BY, TUNED, Tuning

KEEPS = ("float32", "float16")
# More networks than this are no study; beyond it are the seeds of second tries.
MOST = 1_000_000
_TRIALS = 100_000
_LARGE = 1_000_000_000
_FIELDS = tuple(each.name for each in dataclasses.fields(Recipe))
_TUNING = tuple(each.name for each in dataclasses.fields(Tuning))


@dataclass(frozen=True)
class Study:
    """Which networks there should be, and how they are trained.

    Parameters
    ----------
    name
        Of the study; with the width and the seed it determines a network.
    dataset
        cifar10, cifar100, digits, or an .npz file.
    family
        Of architectures: vgg16, wideresnet28 or mlp.
    widths, networks
        The widths, and how many networks there should be of each.
    recipe
        How networks are trained.
    overrides
        What differs from the recipe at some widths.
    tuning
        The grid from which each width takes its values, if they are tuned.
    keep
        How logits are kept: float32 or float16.
    """

    name: str
    dataset: str
    family: str
    widths: tuple[int, ...]
    networks: tuple[int, ...]
    recipe: Recipe
    overrides: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    tuning: Tuning | None = None
    keep: str = "float32"

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a study file, or the study.toml of a folder."""
        path = Path(path)
        with reported(path):
            path = path / "study.toml" if path.is_dir() else path
        text = read_text(path)
        try:
            declared = tomllib.loads(text.decode())
        except (RecursionError, ValueError) as error:  # of UTF-8 and of TOML
            raise InputError(
                f"{path} is no TOML file ({brief(error)}); mend it"
            ) from error
        try:
            return cls.of(declared, folder=path.parent)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error

    @classmethod
    def of(cls, declared: Mapping[str, Any], *, folder: Path = Path()) -> Self:
        """Check what is declared; a dataset's file is looked for beside `folder`."""
        _known("the study", declared, _KEYS)
        name, dataset = _text("name", declared), _text("dataset", declared)
        if dataset.endswith(".npz"):
            dataset = str((folder / dataset).absolute())
        family = one_of("family", _text("family", declared), list(FAMILIES))
        widths = _numbers("widths", declared.get("widths"), None)
        if len(set(widths)) < len(widths):
            raise InputError(f"widths are {list(widths)}; give each once")
        networks = _numbers("networks", declared.get("networks"), len(widths))
        whole("the number of networks of all widths", sum(networks), 1, MOST)
        overrides = {
            int(width): recipe_values(f"[width.{width}]", table)
            for width, table in _table("width", declared).items()
            if _is_width(width, widths)
        }
        tuning = None
        if "tuning" in declared:
            tuning = _tuning(_table("tuning", declared))
        values = recipe_values("[recipe]", _table("recipe", declared))
        for key in TUNED if tuning else ():  # stands until the values are chosen
            values.setdefault(key, getattr(tuning, key)[0])
        for key in ("epochs", "learning_rate", "weight_decay"):
            if key not in values:
                raise InputError(f"[recipe] has no {key}; add it")
        keep = one_of("keep", declared.get("keep", "float32"), KEEPS)
        recipe = Recipe(**values)
        return cls(
            *(name, dataset, family, widths, networks, recipe),
            *(overrides, tuning, keep),
        )

    @classmethod
    def preset(cls, name: str) -> Self:
        """Take one of the paper's studies, by its name in `PRESETS`."""
        from ensize.train.studies.presets import (  # noqa: PLC0415 - it needs this class
            PRESETS,
            declared,
        )

        return cls.of(declared(one_of("study", name, list(PRESETS))))

    def pool(self, width: int) -> str:
        """Name the pool of a width."""
        return f"{self.family}-w{width}"

    def seeds(self, width: int) -> range:
        """List the networks that there should be of a width."""
        return range(dict(zip(self.widths, self.networks, strict=True))[width])

    def recipe_at(
        self, width: int, chosen: Mapping[str, float] | None = None
    ) -> Recipe:
        """Say how a width is trained: with the values `chosen` by tuning, if any.

        A width that the study does not list takes what its nearest one has.
        """
        values = self.overrides.get(self._nearest(width), {})
        return dataclasses.replace(self.recipe, **{**(chosen or {}), **values})

    def grid_at(self, width: int) -> Tuning | None:
        """Say what is tuned at a width: all but what the study states for it."""
        stated = self.overrides.get(self._nearest(width), {})
        fixed: dict[str, Any] = {k: (stated[k],) for k in TUNED if k in stated}
        return self.tuning and dataclasses.replace(self.tuning, **fixed)

    def toml(self) -> str:
        """Write the study file that declares this study."""
        lines = [
            f"{key} = {_toml(getattr(self, key))}" for key in _KEYS if key in _PLAIN
        ]
        tables: dict[str, Any] = {"recipe": dataclasses.asdict(self.recipe)}
        tables |= {f"width.{width}": each for width, each in self.overrides.items()}
        if self.tuning:
            tables["tuning"] = dataclasses.asdict(self.tuning)
        for name, table in tables.items():
            lines += ["", f"[{name}]"]
            stated = {k: each for k, each in table.items() if each is not None}
            lines += [f"{key} = {_toml(each)}" for key, each in stated.items()]
        return "\n".join(lines) + "\n"

    def _nearest(self, width: int) -> int:
        return min(self.widths, key=lambda each: abs(math.log(each / width)))


_PLAIN = ("name", "dataset", "family", "widths", "networks", "keep")
_KEYS = (*_PLAIN, "recipe", "width", "tuning")


def _known(where: str, table: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    for key in table:
        one_of(f"a key of {where}", key, keys)


def _text(key: str, table: Mapping[str, Any]) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value.isprintable() or not value.strip():
        raise InputError(f'{key} is {shown(value)}; give {key} = "…", a line of text')
    return value


def _table(key: str, declared: Mapping[str, Any]) -> Mapping[str, Any]:
    value = declared.get(key, {})
    if not isinstance(value, Mapping):
        raise InputError(f"{key} is {shown(value)}; make it a table, [{key}]")
    return value


def _numbers(key: str, value: Any, times: int | None) -> tuple[int, ...]:
    """Read whole numbers; one stands for all widths."""
    if times and not isinstance(value, list):
        value = [value] * times
    if not isinstance(value, list) or not value or (times and len(value) != times):
        wanted = f"one number, or {times}, one for each width" if times else "a list"
        raise InputError(f"{key} is {shown(value)}; give {wanted}")
    return tuple(whole(f"each of {key}", each, 1, MOST) for each in value)


def _is_width(text: str, widths: tuple[int, ...]) -> bool:
    one_of("a table [width.…]", text, [str(width) for width in widths])
    return True


def recipe_values(
    where: str, table: Any, keys: tuple[str, ...] = _FIELDS
) -> dict[str, Any]:
    """Check the values of a recipe, or of a part of one."""
    if not isinstance(table, Mapping):
        raise InputError(f"{where} is {shown(table)}; make it a table")
    _known(where, table, keys)
    return {key: _value(f"{key} of {where}", key, table[key]) for key in table}


def _value(name: str, key: str, value: Any) -> Any:
    if key in ("epochs", "batch"):
        return whole(name, value, 1, _LARGE)
    if key == "augment":
        if not isinstance(value, bool):
            raise InputError(f"{name} is {shown(value)}; give true or false")
        return value
    if key == "learning_rate":
        return positive(name, value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"{name} is {shown(value)}; give a number")
    most = sys.float_info.max if key == "weight_decay" else 1.0
    if not 0 <= value < most:
        limits = "from 0 on" if most > 1 else "from 0 to below 1"
        raise InputError(f"{name} is {shown(value)}; give a number {limits}")
    return float(value)


def _tuning(table: Mapping[str, Any]) -> Tuning:
    _known("[tuning]", table, _TUNING)
    values: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{key} of [tuning]"
        if key in TUNED:
            if not isinstance(value, list) or not value:
                raise InputError(
                    f"{name} is {shown(value)}; give a list of values to try"
                )
            values[key] = tuple(_value(f"each {name}", key, each) for each in value)
        elif key == "by":
            values[key] = one_of(name, value, BY)
        else:
            values[key] = whole(name, value, 1, _LARGE)
    for key in TUNED[:2]:
        if key not in values:
            raise InputError(f"[tuning] has no {key}; add a list of values to try")
    grid = Tuning(**values)
    trials = grid.networks * math.prod(len(getattr(grid, key)) for key in TUNED)
    if trials > _TRIALS:
        raise InputError(
            f"[tuning] asks for {trials} networks; make its grid smaller than {_TRIALS}"
        )
    return grid


def _toml(value: Any) -> str:
    """Write a value of a study as TOML does."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_toml, value))}]"
    return repr(value)
