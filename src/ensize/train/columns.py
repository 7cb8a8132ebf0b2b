"""Columns: a convolution of many networks as one batched matrix product."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Sequence


class Columns(torch.autograd.Function):
    """A convolution as a product with the columns of its windows.

    Written out, since going back through padding and slices one by one would copy the
    whole picture for each of the nine.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        stride: int,
    ) -> torch.Tensor:
        """Take x of shape (networks, channels, objects, height, width).

        What comes out is (networks, channels, objects · height · width).
        """
        networks, outputs, inputs, kernel, _ = weight.shape
        ctx.shape, ctx.windows = x.shape, _windows(x.shape, kernel, stride)
        padded = functional.pad(x, (kernel // 2,) * 4)
        parts = torch.stack([padded[each] for each in ctx.windows], 1)
        ctx.size = parts.shape[3:]
        columns = parts.view(networks, kernel * kernel * inputs, -1)
        flat = weight.permute(0, 1, 3, 4, 2).reshape(networks, outputs, -1)
        ctx.save_for_backward(columns, flat)
        return torch.baddbmm(bias[:, :, None], flat, columns)

    @staticmethod
    def backward(
        ctx: Any, slope: torch.Tensor
    ) -> tuple[torch.Tensor | None, torch.Tensor, torch.Tensor, None]:
        """Go back to inputs, weights and biases."""
        columns, flat = ctx.saved_tensors
        networks, inputs, objects, height, width = ctx.shape
        kernel = math.isqrt(len(ctx.windows))
        of_weight = torch.bmm(slope, columns.mT)
        of_weight = of_weight.view(networks, -1, kernel, kernel, inputs)
        found = of_weight.permute(0, 1, 4, 2, 3), slope.sum(2), None
        if not ctx.needs_input_grad[0]:
            return None, *found
        parts = torch.bmm(flat.mT, slope).view(networks, -1, inputs, *ctx.size)
        edge = kernel // 2
        padded = parts.new_zeros(
            (networks, inputs, objects, height + 2 * edge, width + 2 * edge)
        )
        for i, each in enumerate(ctx.windows):
            padded[each] += parts[:, i]
        return padded[..., edge : edge + height, edge : edge + width], *found


def _windows(shape: Sequence[int], kernel: int, stride: int) -> list[tuple[Any, ...]]:
    """Say which pixels of padded pictures meet each weight of a kernel."""
    height, width = shape[-2:]
    return [
        (..., slice(i, i + height, stride), slice(j, j + width, stride))
        for i in range(kernel)
        for j in range(kernel)
    ]
