"""Networks: families of architectures with one dial, the width.

A network is declared once, as a list of layers. The plain PyTorch module, a committee
of many networks and the counts of parameters and multiply-adds all read that list, so
that a new family is one function and one line in `FAMILIES`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from ensize.checks import InputError, one_of, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Weight:
    """An array of a network: its shape, and the distribution of its initial values.

    With `trained` false it is a running statistic, which no gradient reaches.
    """

    shape: Shape
    initial: str  # "normal", "uniform" or "constant"
    scale: float  # standard deviation, largest value, or the constant itself
    trained: bool = True


@dataclass(frozen=True)
class Conv:
    """A convolution with bias that keeps the edges where they are.

    `normal` weights have variance 2 / (kernel² · outputs) and no bias, as in the VGG
    of the paper; the others are uniform, as PyTorch's own.
    """

    inputs: int
    outputs: int
    kernel: int = 3
    stride: int = 1
    normal: bool = False

    def weights(self) -> dict[str, Weight]:
        """Return what is learned."""
        shape = (self.outputs, self.inputs, self.kernel, self.kernel)
        if self.normal:
            scale = math.sqrt(2 / (self.kernel**2 * self.outputs))
            return {
                "weight": Weight(shape, "normal", scale),
                "bias": Weight((self.outputs,), "constant", 0.0),
            }
        return _uniform(shape)

    def leads_to(self, shape: Shape) -> Shape:
        """Return the shape of what comes out."""
        _, height, width = shape
        return self.outputs, -(-height // self.stride), -(-width // self.stride)

    def multiply_adds(self, shape: Shape) -> int:
        """Count those of one object."""
        return math.prod(self.leads_to(shape)) * self.inputs * self.kernel**2

    def module(self, dropout: float) -> torch.nn.Module:  # noqa: ARG002
        """Return it as plain PyTorch."""
        size = self.kernel
        return torch.nn.Conv2d(
            self.inputs, self.outputs, size, self.stride, padding=size // 2
        )


@dataclass(frozen=True)
class Dense:
    """A matrix and a bias."""

    inputs: int
    outputs: int

    def weights(self) -> dict[str, Weight]:
        """Return what is learned."""
        return _uniform((self.outputs, self.inputs))

    def leads_to(self, shape: Shape) -> Shape:  # noqa: ARG002
        """Return the shape of what comes out."""
        return (self.outputs,)

    def multiply_adds(self, shape: Shape) -> int:  # noqa: ARG002
        """Count those of one object."""
        return self.inputs * self.outputs

    def module(self, dropout: float) -> torch.nn.Module:  # noqa: ARG002
        """Return it as plain PyTorch."""
        return torch.nn.Linear(self.inputs, self.outputs)


@dataclass(frozen=True)
class Norm:
    """Batch normalization; `momentum` is the share of the newest batch."""

    channels: int
    momentum: float = 0.1

    def weights(self) -> dict[str, Weight]:
        """Return what is learned, and the running statistics."""
        one, shape = "constant", (self.channels,)
        return {
            "weight": Weight(shape, one, 1.0),
            "bias": Weight(shape, one, 0.0),
            "running_mean": Weight(shape, one, 0.0, trained=False),
            "running_var": Weight(shape, one, 1.0, trained=False),
        }

    def leads_to(self, shape: Shape) -> Shape:
        """Return the shape of what comes out."""
        return shape

    def multiply_adds(self, shape: Shape) -> int:  # noqa: ARG002
        """Count none: a convolution beside it can take its two numbers over."""
        return 0

    def module(self, dropout: float) -> torch.nn.Module:  # noqa: ARG002
        """Return it as plain PyTorch."""
        return _Norm(self.channels, momentum=self.momentum)


@dataclass(frozen=True)
class Plain:
    """A layer without weights: relu, pool (2×2 maxima), mean (of pixels) or dropout."""

    does: str

    def weights(self) -> dict[str, Weight]:
        """Return nothing."""
        return {}

    def leads_to(self, shape: Shape) -> Shape:
        """Return the shape of what comes out."""
        if self.does == "pool":
            channels, height, width = shape
            return channels, height // 2, width // 2
        if self.does == "mean":
            return (shape[0],)
        return (math.prod(shape),) if self.does == "flatten" else shape

    def multiply_adds(self, shape: Shape) -> int:  # noqa: ARG002
        """Count none."""
        return 0

    def module(self, dropout: float) -> torch.nn.Module:
        """Return it as plain PyTorch."""
        if self.does == "mean":
            mean = torch.nn.AdaptiveAvgPool2d(1)
            return torch.nn.Sequential(mean, torch.nn.Flatten())
        if self.does == "pool":
            return torch.nn.MaxPool2d(2)
        if self.does == "dropout":
            return torch.nn.Dropout(dropout)
        return torch.nn.ReLU() if self.does == "relu" else torch.nn.Flatten()


@dataclass(frozen=True)
class Residual:
    """The sum of what a body makes of its input, and of a shortcut around it."""

    body: tuple[Layer, ...]
    shortcut: tuple[Layer, ...]

    def weights(self) -> dict[str, Weight]:
        """Return what both have."""
        return {
            f"{part}.{name}": weight
            for part, layers in (("body", self.body), ("shortcut", self.shortcut))
            for name, weight in named_weights(layers).items()
        }

    def leads_to(self, shape: Shape) -> Shape:
        """Return the shape of what comes out."""
        return shapes(self.body, shape)[-1]

    def multiply_adds(self, shape: Shape) -> int:
        """Count those of both, for one object."""
        return count(self.body, shape) + count(self.shortcut, shape)

    def module(self, dropout: float) -> torch.nn.Module:
        """Return it as plain PyTorch."""
        return _Residual(
            sequential(self.body, dropout), sequential(self.shortcut, dropout)
        )


Layer = Conv | Dense | Norm | Plain | Residual
RELU, POOL, MEAN, FLATTEN, DROPOUT = map(
    Plain, ("relu", "pool", "mean", "flatten", "dropout")
)


class _Norm(torch.nn.BatchNorm2d):
    """Batch normalization without a count of batches, for which momentum has no use."""

    def __init__(self, channels: int, momentum: float) -> None:
        super().__init__(channels, momentum=momentum)
        self.num_batches_tracked = None

    def _load_from_state_dict(
        self, state: Any, prefix: str, metadata: dict[str, Any], *rest: Any
    ) -> None:
        # Before version 2 PyTorch would add the count, and then refuse it.
        known = {**metadata, "version": 2}
        super()._load_from_state_dict(state, prefix, known, *rest)


class _Residual(torch.nn.Module):
    def __init__(self, body: torch.nn.Module, shortcut: torch.nn.Module) -> None:
        super().__init__()
        self.body, self.shortcut = body, shortcut

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total: torch.Tensor = self.body(x) + self.shortcut(x)
        return total


def _uniform(shape: Shape) -> dict[str, Weight]:
    """Initialize as PyTorch does: up to 1 / √inputs, the bias too."""
    scale = 1 / math.sqrt(math.prod(shape[1:]))
    return {
        "weight": Weight(shape, "uniform", scale),
        "bias": Weight(shape[:1], "uniform", scale),
    }


def named_weights(layers: tuple[Layer, ...]) -> dict[str, Weight]:
    """Name the weights as PyTorch's Sequential does: `3.weight`."""
    return {
        f"{i}.{name}": weight
        for i, layer in enumerate(layers)
        for name, weight in layer.weights().items()
    }


def shapes(layers: tuple[Layer, ...], shape: Shape) -> list[Shape]:
    """Follow the shape of one object through the layers, itself included."""
    met = [shape]
    for layer in layers:
        met.append(layer.leads_to(met[-1]))
    return met


def count(layers: tuple[Layer, ...], shape: Shape) -> int:
    """Count the multiply-adds of one prediction."""
    met = shapes(layers, shape)
    return sum(layer.multiply_adds(met[i]) for i, layer in enumerate(layers))


def sequential(layers: tuple[Layer, ...], dropout: float) -> torch.nn.Sequential:
    """Make the plain PyTorch module of these layers."""
    return torch.nn.Sequential(*(layer.module(dropout) for layer in layers))


def vgg16(width: int, shape: Shape, classes: int) -> Iterator[Layer]:
    """Declare the paper's VGG-16: w = 64 on CIFAR-100 has 15.3 million parameters."""
    channels = shape[0]
    for times, depth in ((1, 2), (2, 2), (4, 3), (8, 3), (8, 3)):
        for _ in range(depth):
            yield Conv(channels, times * width, normal=True)
            yield RELU
            channels = times * width
        yield POOL
    yield FLATTEN
    inputs = channels * (shape[1] // 32) * (shape[2] // 32)
    for outputs in (channels, channels):
        yield from (DROPOUT, Dense(inputs, outputs), RELU)
        inputs = outputs
    yield Dense(inputs, classes)


def wideresnet28(width: int, shape: Shape, classes: int) -> Iterator[Layer]:
    """Declare the paper's WideResNet-28: w = 160 has 36.8 million parameters."""
    yield Conv(shape[0], width)
    channels = width
    for times, first in ((1, 1), (2, 2), (4, 2)):
        for stride in (first, 1, 1, 1):
            outputs = times * width
            body = (
                *(Norm(channels), RELU, Conv(channels, outputs), DROPOUT),
                *(Norm(outputs), RELU, Conv(outputs, outputs, stride=stride)),
            )
            same = stride == 1 and channels == outputs
            shortcut = () if same else (Conv(channels, outputs, 1, stride),)
            yield Residual(body, shortcut)
            channels = outputs
    yield from (Norm(channels, momentum=0.9), RELU, MEAN, Dense(channels, classes))


def mlp(width: int, shape: Shape, classes: int) -> Iterator[Layer]:
    """Declare a perceptron for small data, with two hidden layers."""
    yield from (FLATTEN, Dense(math.prod(shape), width), RELU, DROPOUT)
    yield from (Dense(width, width), RELU, DROPOUT, Dense(width, classes))


@dataclass(frozen=True)
class Family:
    """Architectures of one kind.

    Parameters
    ----------
    name
        As it is called in studies and stores.
    declare
        Yields the layers of a width, for objects of some shape and some classes.
    least
        The smallest height and width of pictures; 0 where objects may be of any shape.
    mean, deviation
        With which the paper's recipe normalizes colors; empty: with the data's own.
    """

    name: str
    declare: Callable[[int, Shape, int], Iterator[Layer]]
    least: int = 0
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()


_FAMILIES = (
    Family("vgg16", vgg16, 32, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    Family(
        *("wideresnet28", wideresnet28, 4),
        *((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    ),
    Family("mlp", mlp),
)
FAMILIES = {family.name: family for family in _FAMILIES}


def layers_of(
    family: str, width: int, *, shape: Shape, classes: int
) -> tuple[Layer, ...]:
    """Declare a network, or say why there is none of this kind."""
    found = FAMILIES[one_of("family", family, list(FAMILIES))]
    whole("width", width, 1)
    whole("classes", classes, 2)
    if found.least and (len(shape) != 3 or min(shape[1:]) < found.least):
        raise InputError(
            f"objects of shape {tuple(shape)} cannot go through {family}, which takes"
            f" pictures of at least {found.least}×{found.least} pixels; choose the"
            " family mlp"
        )
    return tuple(found.declare(width, tuple(shape), classes))


def parameters(family: str, width: int, *, shape: Shape, classes: int) -> int:
    """Count what is learned: the size of a network.

    >>> parameters("vgg16", 64, shape=(3, 32, 32), classes=100)
    15291300
    """
    layers = layers_of(family, width, shape=shape, classes=classes)
    each = named_weights(layers).values()
    return sum(math.prod(weight.shape) for weight in each if weight.trained)


def multiply_adds(family: str, width: int, *, shape: Shape, classes: int) -> int:
    """Count the multiply-adds of the prediction for one object."""
    return count(layers_of(family, width, shape=shape, classes=classes), tuple(shape))


def width_for(family: str, size: float, *, shape: Shape, classes: int) -> int:
    """Find the widest network of at most so many parameters."""

    def fits(width: int) -> bool:
        return parameters(family, width, shape=shape, classes=classes) <= size

    if not fits(1):
        raise InputError(
            f"size is {size!r}, and the narrowest {family} has"
            f" {parameters(family, 1, shape=shape, classes=classes)} parameters; give"
            " at least that"
        )
    high = 2
    while fits(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def module(
    family: str, width: int, *, shape: Shape, classes: int, dropout: float = 0.0
) -> torch.nn.Sequential:
    """Make one network as plain PyTorch, whose state dict takes a network's weights."""
    layers = layers_of(family, width, shape=shape, classes=classes)
    return sequential(layers, dropout)
