"""Programs: an ensemble as one module, in a format that others run.

The file needs PyTorch, or a runtime of ONNX, and nothing of ensize. It takes objects as
the data set holds them, pictures as bytes, however many at once, and answers with the
ensemble's probabilities, (objects, classes).
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import logging
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ensize.checks import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# What the file says of itself: among its extra files, or its metadata.
FACTS = "ensize.json"
_BATCH = 250


class Ensemble(torch.nn.Module):
    """Networks as one: objects in, mean probabilities out.

    Parameters
    ----------
    members
        The networks.
    mean, deviation
        With which objects are normalized: one number for each channel, or for all.
    temperature
        Of each member, or of their mean.
    apply
        Which of the two.
    """

    mean: torch.Tensor
    deviation: torch.Tensor
    temperature: torch.Tensor

    def __init__(
        self,
        members: Sequence[torch.nn.Module],
        mean: NDArray[Any],
        deviation: NDArray[Any],
        *,
        temperature: float,
        apply: str = "before",
    ) -> None:
        super().__init__()
        self.members = torch.nn.ModuleList(members)
        self.after = apply == "after"
        for name, value in (
            ("mean", mean),
            ("deviation", deviation),
            ("temperature", temperature),
        ):
            self.register_buffer(name, torch.as_tensor(value, dtype=torch.float32))

    def forward(self, objects: torch.Tensor) -> torch.Tensor:
        """Compute the probabilities, (objects, classes)."""
        x = (objects.to(torch.float32) - self.mean) / self.deviation
        logits = [member(x) for member in self.members]
        if not self.after:
            logits = [each / self.temperature for each in logits]
        # In logarithms, so that nothing underflows.
        logs = torch.stack([torch.log_softmax(each, 1) for each in logits])
        mean = torch.logsumexp(logs, 0)  # and log n, which the softmax takes off
        return torch.softmax(mean / self.temperature if self.after else mean, 1)


def _example(objects: NDArray[Any]) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(objects))


def _program(made: Ensemble, objects: NDArray[Any]) -> Any:
    any_number = torch.export.Dim("objects", min=1)
    return torch.export.export(
        made.eval(), (_example(objects),), dynamic_shapes=({0: any_number},)
    )


def _write_torch(made: Ensemble, objects: NDArray[Any], facts: str) -> bytes:
    file = io.BytesIO()
    torch.export.save(_program(made, objects), file, extra_files={FACTS: facts})
    return file.getvalue()


def _ask_torch(content: bytes, objects: NDArray[Any]) -> NDArray[Any]:
    ensemble = torch.export.load(io.BytesIO(content)).module()
    with torch.inference_mode():
        starts = range(0, len(objects), _BATCH)
        parts = (_example(objects[start : start + _BATCH]) for start in starts)
        answers = [ensemble(part) for part in parts]
    return np.concatenate([each.numpy() for each in answers])


def _write_onnx(made: Ensemble, objects: NDArray[Any], facts: str) -> bytes:
    _needs_onnx()
    program = _program(made, objects)
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)  # about libraries that an ensemble has no use for
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the converter to itself
            model = torch.onnx.export(
                program,
                input_names=["objects"],
                output_names=["probabilities"],
                verbose=False,
            ).model_proto  # type: ignore[union-attr] # it is none without a program
    finally:
        logger.setLevel(level)
    model.metadata_props.add(key=FACTS, value=facts)
    return bytes(model.SerializeToString())


def _ask_onnx(content: bytes, objects: NDArray[Any]) -> NDArray[Any]:
    if importlib.util.find_spec("onnxruntime"):
        runtime = importlib.import_module("onnxruntime")
        session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    else:
        reference = importlib.import_module("onnx.reference")
        session = reference.ReferenceEvaluator(
            importlib.import_module("onnx").load_from_string(content)
        )
    parts = range(0, len(objects), _BATCH)
    each = (objects[start : start + _BATCH] for start in parts)
    return np.concatenate([session.run(None, {"objects": part})[0] for part in each])


def _needs_onnx() -> None:
    for name in ("onnx", "onnxscript"):
        if importlib.util.find_spec(name) is None:
            raise InputError(
                f"the format 'onnx' needs {name}, which is not installed; pip install"
                " onnx onnxscript, or take the format 'torch'"
            )


WRITERS = {"torch": _write_torch, "onnx": _write_onnx}
READERS = {"torch": _ask_torch, "onnx": _ask_onnx}
