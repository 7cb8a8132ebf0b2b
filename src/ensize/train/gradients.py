"""Gradients: what every weight of every network does to its loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from ensize.train.committees import forward
from ensize.train.networks import DROPOUT, FLATTEN, RELU, Dense

if TYPE_CHECKING:
    from ensize.train.committees import Dropout, Way
    from ensize.train.networks import Layer

    Tensors = dict[str, torch.Tensor]


def slopes(
    layers: tuple[Layer, ...],
    weights: Tensors,
    x: torch.Tensor,
    y: torch.Tensor,
    way: Way,
    dropout: Dropout | None = None,
) -> list[torch.Tensor]:
    """Return the slopes of each network's loss on its own batch, for all weights."""
    if all(isinstance(each, Dense) or each in _FLAT for each in layers):
        return _back_through(layers, weights, x, y, dropout)
    logits = forward(layers, weights, x, way, training=True, dropout=dropout)
    # A sum over networks: the loss of none depends on what another one has learned.
    loss = functional.cross_entropy(logits.mT, y, reduction="sum") / y.shape[1]
    learned = [each for each in weights.values() if each.requires_grad]
    return [each.contiguous() for each in torch.autograd.grad(loss, learned)]


_FLAT = FLATTEN, RELU, DROPOUT


@torch.no_grad()
def _back_through(
    layers: tuple[Layer, ...],
    weights: Tensors,
    x: torch.Tensor,
    y: torch.Tensor,
    dropout: Dropout | None,
) -> list[torch.Tensor]:
    """Go through a perceptron and back by hand.

    Its layers are so small that keeping the books for automatic differentiation would
    take a tenth of the time.
    """
    h, back, dropped = x.flatten(2).mT, [], 0
    for i, layer in enumerate(layers):
        if isinstance(layer, Dense):
            weight, bias = weights[f"{i}.weight"], weights[f"{i}.bias"]
            back.append((i, h))
            h = torch.baddbmm(bias[:, :, None], weight, h)
        elif layer == RELU:
            back.append((i, h.relu_()))
        elif layer == DROPOUT:
            dropped += 1
            if dropout is not None:
                factors = dropout.factors(dropped, h.shape[2], h.shape[1]).mT
                back.append((i, factors))
                h = h * factors
    slope = torch.softmax(h, 1)
    slope.scatter_add_(1, y[:, None], slope.new_full((), -1.0).expand_as(y[:, None]))
    slope /= y.shape[1]
    found = {}
    for i, kept in reversed(back):
        if isinstance(layers[i], Dense):
            found[f"{i}.weight"] = torch.bmm(slope, kept.mT)
            found[f"{i}.bias"] = slope.sum(2)
            if back[0][0] != i:
                slope = torch.bmm(weights[f"{i}.weight"].mT, slope)
        elif layers[i] == RELU:
            slope = torch.ops.aten.threshold_backward(slope, kept, 0)
        else:
            slope *= kept
    return [found[name] for name in weights]
