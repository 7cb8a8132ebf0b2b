"""Committees: many networks of one shape as one, in one forward and backward pass.

Parameters of all networks are stacked, (networks, …). How a layer is computed for all
of them at once is a `Way`, of which there are two kinds:

products
    Activations are (networks, channels, objects, height, width); a convolution is a
    batched matrix product with the columns of its windows.
convolutions
    Activations are (objects, networks · channels, height, width); a convolution has
    groups. Convolutions compute channels by the dozen, so that a few narrow networks
    side by side in one group, with zeros between them, cost no more than one: groups
    are filled up to `fill` channels. With one network this is the plain convolution.

Either way each network computes what it would compute alone, up to rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from ensize.train.columns import Columns
from ensize.train.networks import (
    Conv,
    Dense,
    Norm,
    Plain,
    Residual,
    named_weights,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ensize.train.networks import Layer, Shape

    Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Way:
    """How a pass is computed.

    Parameters
    ----------
    kind
        `products` or `convolutions`.
    networks
        The most that one pass takes.
    fill
        Up to how many channels a group is filled.
    channels_last
        Whether channels are innermost in memory.
    shared
        Whether all cores of a CPU share each pass; without, each has passes of its own.
    """

    kind: str
    networks: int
    fill: int = 1
    channels_last: bool = False
    shared: bool = False

    def __str__(self) -> str:
        """Say it in a few words."""
        if self.networks == 1:
            order = "channels last" if self.channels_last else "channels first"
            return f"one by one, {order}"
        if self.kind == "products":
            return f"products of {self.networks}"
        return f"convolutions of {self.networks}" + (
            ", channels last" if self.channels_last else ""
        )


@dataclass(frozen=True, eq=False)
class Dropout:
    """Which activations are dropped: a function of each network's key alone.

    Parameters
    ----------
    rates
        Of each network, (networks,).
    keys
        Of each network in this step, (networks,).
    """

    rates: torch.Tensor
    keys: torch.Tensor

    def take(self, some: slice) -> Dropout:
        """Take some of the networks."""
        return Dropout(self.rates[some], self.keys[some])

    def factors(self, layer: int, objects: int, features: int) -> torch.Tensor:
        """Return 0 or 1 / (1 − rate) for each activation, as those of a network stand.

        The mask is a hash of the key, the layer and the place of the activation, so
        that it depends neither on the way nor on the device.
        """
        place = torch.arange(objects * features, device=self.keys.device)
        mixed = _hashed(self.keys + 0x9E3779B9 * (layer + 1))[:, None]
        kept = _hashed(place[None] ^ mixed) >= (self.rates * 2.0**32)[:, None]
        factor = kept / (1 - self.rates)[:, None]
        return factor.to(torch.float32).view(len(self.keys), objects, features)


def _hashed(x: torch.Tensor) -> torch.Tensor:
    """Mix the bits of 32-bit numbers, which stand in 64 bits."""
    x = x & 0xFFFFFFFF
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = ((x ^ (x >> shift)) * factor) & 0xFFFFFFFF
    return x ^ (x >> 16)


def forward(
    layers: Sequence[Layer],
    weights: Tensors,
    objects: torch.Tensor,
    way: Way,
    *,
    training: bool = False,
    dropout: Dropout | None = None,
) -> torch.Tensor:
    """Compute the logits of some networks, (networks, objects, classes).

    Parameters
    ----------
    layers
        Of each network.
    weights
        Stacked, by the names of `named_weights`; running statistics are updated in
        place while training.
    objects
        For each network its own, (networks, objects, …).
    way
        How to compute.
    training
        Whether batch statistics normalize.
    dropout
        What is dropped; nothing without.
    """
    machine = _MACHINES[way.kind](way, len(objects), training, dropout)
    x = machine.enter(objects) if objects.ndim == 5 else objects.flatten(2).mT
    return machine.run(layers, weights, x).mT


class _Machine:
    """What both kinds share: everything but the layout of pictures.

    Flat activations are (networks, features, objects) in both: so a loss over few
    classes is computed for many objects at a time.
    """

    def __init__(
        self,
        way: Way,
        networks: int,
        training: bool,  # noqa: FBT001 - made in one place
        dropout: Dropout | None,
    ) -> None:
        self.way, self.networks = way, networks
        self.training, self.dropout = training, dropout
        self.dropouts = 0  # layers met so far

    def run(
        self, layers: Sequence[Layer], weights: Tensors, x: torch.Tensor, at: str = ""
    ) -> torch.Tensor:
        for i, layer in enumerate(layers):
            own = {name: weights[f"{at}{i}.{name}"] for name in _own(layer)}
            if isinstance(layer, Conv):
                x = self.conv(layer, own["weight"], own["bias"], x)
            elif isinstance(layer, Dense):
                x = torch.baddbmm(own["bias"][:, :, None], own["weight"], x)
            elif isinstance(layer, Norm):
                x = self.norm(layer, own, x)
            elif isinstance(layer, Residual):
                body = self.run(layer.body, weights, x, f"{at}{i}.body.")
                x = body + self.run(layer.shortcut, weights, x, f"{at}{i}.shortcut.")
            else:
                x = self.plain(layer, x)
        return x

    def plain(self, layer: Plain, x: torch.Tensor) -> torch.Tensor:
        if layer.does == "relu":
            # In place: what is before needs only its own inputs to go back.
            return functional.relu(x, inplace=True)
        if layer.does == "dropout":
            self.dropouts += 1
            return x if self.dropout is None else self.drop(self.dropout, x)
        if layer.does == "pool":
            return self.pool(x)
        return x if x.ndim == 3 else self.leave(x, mean=layer.does == "mean")

    def drop(self, dropout: Dropout, x: torch.Tensor) -> torch.Tensor:
        if x.ndim == 3:
            features, objects = x.shape[1:]
            return x * dropout.factors(self.dropouts, objects, features).mT
        objects, *shape = self.facts(x)
        factors = dropout.factors(self.dropouts, objects, math.prod(shape))
        return x * self.enter(factors.view(self.networks, objects, *shape))

    def enter(self, objects: torch.Tensor) -> torch.Tensor:
        """Bring (networks, objects, channels, height, width) into the layout."""
        raise NotImplementedError

    def leave(self, x: torch.Tensor, *, mean: bool) -> torch.Tensor:
        """Bring pictures to (networks, features, objects)."""
        raise NotImplementedError

    def facts(self, x: torch.Tensor) -> tuple[int, ...]:
        """Say how many objects, and channels, rows and columns of each, there are."""
        raise NotImplementedError

    def conv(
        self, layer: Conv, weight: torch.Tensor, bias: torch.Tensor, x: torch.Tensor
    ) -> torch.Tensor:
        raise NotImplementedError

    def norm(self, layer: Norm, own: Tensors, x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def pool(self, x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError


class _Products(_Machine):
    def enter(self, objects: torch.Tensor) -> torch.Tensor:
        return objects.transpose(1, 2).contiguous()

    def leave(self, x: torch.Tensor, *, mean: bool) -> torch.Tensor:
        return x.mean((3, 4)) if mean else x.permute(0, 1, 3, 4, 2).flatten(1, 3)

    def facts(self, x: torch.Tensor) -> tuple[int, ...]:
        return x.shape[2], x.shape[1], *x.shape[3:]

    def conv(
        self, layer: Conv, weight: torch.Tensor, bias: torch.Tensor, x: torch.Tensor
    ) -> torch.Tensor:
        flat = Columns.apply(x, weight, bias, layer.stride)  # type: ignore[no-untyped-call]
        _, height, width = layer.leads_to(x.shape[1:2] + x.shape[3:])
        result: torch.Tensor = flat.view(*flat.shape[:2], x.shape[2], height, width)
        return result

    def norm(self, layer: Norm, own: Tensors, x: torch.Tensor) -> torch.Tensor:
        return _normalized(layer, own, x.flatten(0, 1)[None], self.training).view_as(x)

    def pool(self, x: torch.Tensor) -> torch.Tensor:
        small = functional.max_pool2d(x.flatten(0, 1), 2)
        return small.view(*x.shape[:2], *small.shape[1:])


class _Convolutions(_Machine):
    def enter(self, objects: torch.Tensor) -> torch.Tensor:
        x = objects.transpose(0, 1).flatten(1, 2)
        return x.contiguous(memory_format=self.order)

    @property
    def order(self) -> torch.memory_format:
        return (
            torch.channels_last if self.way.channels_last else torch.contiguous_format
        )

    def leave(self, x: torch.Tensor, *, mean: bool) -> torch.Tensor:
        x = x.mean((2, 3)) if mean else x
        return x.reshape(len(x), self.networks, -1).permute(1, 2, 0)

    def facts(self, x: torch.Tensor) -> tuple[int, ...]:
        return x.shape[0], x.shape[1] // self.networks, *x.shape[2:]

    def conv(
        self, layer: Conv, weight: torch.Tensor, bias: torch.Tensor, x: torch.Tensor
    ) -> torch.Tensor:
        beside = _beside(self.networks, layer.outputs, self.way.fill)
        groups = self.networks // beside
        if beside > 1:
            # On the diagonal of each group the weights, and zeros between networks.
            own = torch.eye(beside, device=x.device)[None, :, None, :, None, None, None]
            weight = weight.view(groups, beside, *weight.shape[1:]).unsqueeze(3) * own
            weight = weight.flatten(3, 4).flatten(0, 2)
        else:
            weight = weight.flatten(0, 1)
        if self.way.channels_last:
            weight = weight.contiguous(memory_format=torch.channels_last)
        return functional.conv2d(
            *(x, weight, bias.flatten(), layer.stride),
            padding=layer.kernel // 2,
            groups=groups,
        )

    def norm(self, layer: Norm, own: Tensors, x: torch.Tensor) -> torch.Tensor:
        return _normalized(layer, own, x, self.training)

    def pool(self, x: torch.Tensor) -> torch.Tensor:
        return functional.max_pool2d(x, 2)


def _normalized(
    layer: Norm,
    own: Tensors,
    x: torch.Tensor,
    training: bool,  # noqa: FBT001
) -> torch.Tensor:
    return functional.batch_norm(
        x,
        own["running_mean"].view(-1),
        own["running_var"].view(-1),
        own["weight"].flatten(),
        own["bias"].flatten(),
        training,
        layer.momentum,
    )


def _beside(networks: int, outputs: int, fill: int) -> int:
    """Say how many networks stand side by side in a group of a convolution."""
    most = max(1, min(networks, fill // outputs))
    return next(each for each in range(most, 0, -1) if networks % each == 0)


def _own(layer: Layer) -> tuple[str, ...]:
    return () if isinstance(layer, Residual) else tuple(layer.weights())


_MACHINES = {"products": _Products, "convolutions": _Convolutions}


class Stack:
    """The weights of some networks, as one row of numbers that are learned.

    By their names, each (networks, …), stand the weights that are learned, with their
    velocities, and running statistics; `named` has all but velocities.
    """

    def __init__(
        self, layers: Sequence[Layer], networks: int, device: torch.device
    ) -> None:
        self.layers, self.networks = tuple(layers), networks
        weights = named_weights(self.layers)
        each = {n: w for n, w in weights.items() if w.trained}
        self.shapes: dict[str, Shape] = {
            n: (networks, *w.shape) for n, w in each.items()
        }
        total = sum(map(math.prod, self.shapes.values()))
        self.values = torch.zeros(total, device=device)
        self.velocity = torch.zeros(total, device=device)
        self.learned = self._views(self.values)
        self.velocities = self._views(self.velocity)
        self.statistics = {
            name: torch.zeros((networks, *weight.shape), device=device)
            for name, weight in weights.items()
            if not weight.trained
        }
        both = self.learned | self.statistics
        self.named = {name: both[name] for name in weights}
        self._taken: dict[tuple[int, int], Tensors] = {}

    def _views(self, row: torch.Tensor) -> Tensors:
        views, start = {}, 0
        for name, shape in self.shapes.items():
            length = math.prod(shape)
            views[name] = row[start : start + length].view(shape)
            start += length
        return views

    def take(self, some: slice) -> Tensors:
        """Take the weights of some networks, ready to be learned.

        The same views each time: to make them takes longer than a small product.
        """
        key = some.start, some.stop
        if key not in self._taken:
            # Not detached but as data: autograd counts the changes of what is detached
            # together with those of other networks, which go down at their own time.
            learned = {
                name: each[some].data.requires_grad_()
                for name, each in self.learned.items()
            }
            others = {name: each[some] for name, each in self.statistics.items()}
            self._taken[key] = learned | others
        return self._taken[key]
