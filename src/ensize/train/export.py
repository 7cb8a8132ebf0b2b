"""Export: an ensemble as one module, with its temperature built in.

Before it is written, the module is asked about objects of the test set: it must say
what the store knows of the same networks.
"""

from __future__ import annotations

import dataclasses
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import softmax  # type: ignore[import-untyped]

from ensize.checks import InputError, one_of, positive, whole
from ensize.draws import chance_level, odd_ones_out
from ensize.predictions import Predictions
from ensize.scores import APPLY, score_ensembles
from ensize.scores.search import sketch_of
from ensize.stores import Store
from ensize.stores.files import reported
from ensize.temperatures import calibrate
from ensize.train.images import load_data, normalization
from ensize.train.members import members_of, seeds_kept
from ensize.train.programs import READERS, WRITERS, Ensemble
from ensize.train.studies.declarations import Study

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ensize.predictions import Progress
    from ensize.train.images import Data

FORMATS = ("torch", "onnx")
SUFFIXES = {"torch": ".pt2", "onnx": ".onnx"}
# Relative to the largest logit, what rounding may have changed between training and
# here: the arithmetic of both, and the numbers kept.
_ARITHMETIC = {"float32": 2.0**-16, "tf32": 2.0**-8}
_KEPT = {"float32": 0.0, "float16": 2.0**-11}
# And what the softmax in float32 adds to a probability.
_SOFTMAX = 2.0**-20


@dataclass(frozen=True)
class Exported:
    """An ensemble in a file.

    Attributes
    ----------
    file
        Where it is.
    pool, seeds, networks
        Its members, and how many they are.
    temperature, apply
        What is built in, and whether before averaging or after.
    cnll
        Of these networks on the test set, cross-validated.
    shape, dtype, classes
        Of one object as it is taken; how many probabilities come out.
    objects, difference, tolerance
        On how many objects of the test set the file was asked, how far its
        probabilities were at most from the store's, and how far rounding explains.
    warnings
        What else should be known.
    """

    file: Path
    pool: str
    seeds: tuple[int, ...]
    networks: int
    temperature: float
    apply: str
    cnll: float
    shape: tuple[int, ...]
    dtype: str
    classes: int
    objects: int
    difference: float
    tolerance: float
    warnings: tuple[str, ...]


def export_ensemble(
    store: Store | str | os.PathLike[str],
    pool: str | None,
    n: int,
    file: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
    kind: str = "torch",
    apply: str = "before",
    temperature: float | None = None,
    keep_odd: bool = False,
    objects: int = 1000,
    progress: Progress | None = None,
) -> Exported:
    """Write an ensemble of a pool as one module, and ask it what the store knows.

    Parameters
    ----------
    store
        A store whose study kept weights.
    pool, n
        Of which networks, and how many: the first whose weights are kept and that
        trained. The best ones are not picked, as that would flatter the test set.
    file
        Where to write it; what is there is replaced once the new file is whole.
    data
        The folder of the data set, if it is not to be downloaded.
    kind
        ``"torch"`` for a program of torch.export, or ``"onnx"``.
    apply
        Whether the temperature is applied ``"before"`` averaging or ``"after"``.
    temperature
        A fixed one; if not given that with the least NLL on the test set.
    keep_odd
        Keep networks that did not train.
    objects
        On how many objects of the test set the file is asked before it is written.
    progress
        Told what is being done and which share of it is done.
    """
    store = store if isinstance(store, Store) else Store.open(store)
    path = _path(file, one_of("format", kind, FORMATS))
    one_of("apply", apply, APPLY)
    whole("n", n, 1)
    whole("objects", objects, 1)
    said: list[str] = []
    predictions, chosen = _choose(store, pool, n, keep_odd=keep_odd, said=said)
    name = predictions.pool.name
    scored = score_ensembles(
        predictions,
        np.full((1, n), 1 / n),
        apply=apply,  # type: ignore[arg-type] # checked above
        progress=progress,
    )
    if temperature is None:
        best = calibrate(scored.grid, scored.profiles)
        temperature = float(best.temperature[0])
        if best.at_edge[0]:
            said.append(
                f"the best temperature, {temperature:.3g}, lies at the edge of those"
                " that were tried: look at the networks, or fix one with --temperature"
            )
    positive("temperature", temperature)
    dataset = _data(store, predictions, data)
    made = Ensemble(
        members_of(
            *(store, name, chosen),
            family=predictions.pool.family or "",
            width=int(predictions.pool.width or 0),
            shape=dataset.shape,
            classes=predictions.classes,
        ),
        *_spread(dataset, *normalization(dataset, predictions.pool.family or "")),
        temperature=temperature,
        apply=apply,
    )
    facts: dict[str, Any] = {
        "pool": name,
        "seeds": chosen,
        "networks": n,
        "temperature": temperature,
        "apply": apply,
        "cnll": float(scored.cnll[0]),
        "shape": dataset.shape,
        "dtype": str(dataset.x_test.dtype),
        "classes": predictions.classes,
        "size": n * (predictions.pool.size or 0) or None,
        "recipe": predictions.pool.recipe,
    }
    content = WRITERS[kind](made, dataset.x_test[:2], json.dumps(facts))
    if progress:
        progress("exporting", 0.5)
    objects = min(objects, predictions.objects)
    answers = READERS[kind](content, dataset.x_test[:objects])
    truth = probabilities(predictions, objects, temperature, apply)
    difference = float(np.abs(answers - truth).max())
    tolerance = _tolerance(store, predictions, chosen, objects, temperature, apply)
    if not difference <= tolerance:
        raise InputError(
            f"the exported ensemble of pool {name!r} differs from what {store.path}"
            f" holds of it by up to {difference:.2g} in probability, where rounding"
            f" explains {tolerance:.2g}; nothing was written: the weights, the"
            " predictions and the data set do not belong together"
        )
    _replace(path, content)
    if progress:
        progress("exporting", 1.0)
    return Exported(
        file=path,
        objects=objects,
        difference=difference,
        tolerance=tolerance,
        warnings=tuple(said),
        **{
            key: facts[key]
            for key in (each.name for each in dataclasses.fields(Exported))
            if key in facts
        },
    )


def probabilities(
    predictions: Predictions, objects: int, temperature: float, apply: str
) -> NDArray[np.float64]:
    """Compute what an ensemble of all these networks says of the first objects.

    >>> pool = Predictions.of([[[2.0, 0.0]], [[0.0, 2.0]]], [0])
    >>> probabilities(pool, 1, 1.5, "before")
    array([[0.5, 0.5]])
    """
    before = temperature if apply == "before" else 1.0
    logits = [predictions.logits(i, 0, objects) for i in range(predictions.networks)]
    mean = np.mean([softmax(np.asarray(z, float) / before, 1) for z in logits], 0)
    if apply == "before":
        return np.asarray(mean)
    with np.errstate(divide="ignore"):
        return np.asarray(softmax(np.log(mean) / temperature, 1))


def _choose(
    store: Store, pool: str | None, n: int, *, keep_odd: bool, said: list[str]
) -> tuple[Predictions, tuple[int, ...]]:
    """Open the first networks that have weights and trained."""
    everyone = store.read(pool)
    name = everyone.pool.name
    if not isinstance(everyone, Predictions):
        raise InputError(
            f"pool {name!r} of {store.path} holds sketches, with which an export cannot"
            " be compared; train it by a study, which keeps logits"
        )
    there = store.seeds(name)
    able = seeds_kept(store, name)
    remedy = (
        f"ensize study {store.path / 'study.toml'} --store NEW --keep-weights trains"
        " them again, in another store, and keeps their weights"
    )
    if not able:
        raise InputError(f"{store.path} keeps no weights of pool {name!r}; {remedy}")
    if not keep_odd:
        sketch = sketch_of(everyone)
        alone = calibrate(sketch.grid, sketch.member_nll()).nll
        odd = {there[i] for i in odd_ones_out(alone, chance_level(everyone.targets))}
        said += [
            f"{name}/{seed} did not train and is left out (--keep-odd keeps it)"
            for seed in able
            if seed in odd
        ]
        able = tuple(seed for seed in able if seed not in odd)
    if n > len(able):
        raise InputError(
            f"n is {n}, and {store.path} keeps the weights of {len(able)} networks of"
            f" pool {name!r} that trained; give at most that, or train more: {remedy}"
        )
    chosen = able[:n]
    return everyone.choose([there.index(seed) for seed in chosen]), chosen


def _data(
    store: Store, predictions: Predictions, folder: str | os.PathLike[str] | None
) -> Data:
    """Load the data set of a store's study, and see that it is still the same."""
    path = store.path / "study.toml"
    if not path.exists():
        raise InputError(
            f"{store.path} has no study.toml, which names the data set; only networks"
            " that `ensize study` trained can be exported"
        )
    dataset = Study.read(path).dataset
    data = load_data(dataset, folder=None if folder is None else Path(folder))
    recipe = predictions.pool.recipe or ""
    same = np.array_equal(data.y_test, predictions.targets)
    if not same or data.fingerprint[:12] not in recipe:
        raise InputError(
            f"the data set {dataset} is not the one with which pool"
            f" {predictions.pool.name!r} was trained ({recipe}); bring that back, or"
            " train again"
        )
    return data


def _spread(data: Data, *colors: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    """Let what is one number a color stand for all pixels."""
    return [each.reshape(-1, 1, 1) if data.pictures else each for each in colors]


def _tolerance(
    store: Store,
    predictions: Predictions,
    seeds: Sequence[int],
    objects: int,
    temperature: float,
    apply: str,
) -> float:
    """Bound how far rounding can move a probability.

    If logits are wrong by e at most, a softmax is by e/2, and the logarithm of the mean
    of some by 2e; the temperature divides both.
    """
    known = [store.metadata(predictions.pool.name, seed) for seed in seeds]
    wrong = [
        _ARITHMETIC.get(each.get("extra.precision", ""), _ARITHMETIC["tf32"])
        + _KEPT[each["dtype"]]
        for each in known
    ]
    largest = [
        float(np.abs(predictions.logits(i, 0, objects)).max())
        for i in range(predictions.networks)
    ]
    most = max(e * z for e, z in zip(wrong, largest, strict=True)) / temperature
    return _SOFTMAX + (most if apply == "after" else most / 2)


def _path(file: str | os.PathLike[str], kind: str) -> Path:
    path, suffix = Path(file), SUFFIXES[kind]
    if path.suffix != suffix:
        raise InputError(
            f"{path} does not end in {suffix}, as a file of the format {kind!r} does;"
            f" name it {path.stem or 'ensemble'}{suffix}"
        )
    return path


def _replace(path: Path, content: bytes) -> None:
    """Write a file whole, in place of what has its name."""
    hidden = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    with reported(path, "written"):
        try:
            with hidden.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            hidden.replace(path)
        finally:
            hidden.unlink(missing_ok=True)
