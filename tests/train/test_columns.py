"""The product with columns against PyTorch's own convolution, there and back."""

import pytest
import torch
from torch.nn import functional

from ensize.train.columns import Columns


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("stride", [1, 2])
def test_it_is_a_convolution_of_each_network(kernel, stride):
    random = torch.Generator().manual_seed(kernel + stride)

    def drawn(*shape):
        return torch.randn(shape, generator=random, dtype=torch.float64)

    networks, objects = 3, 4
    x = drawn(networks, 2, objects, 7, 6).requires_grad_()
    weight = drawn(networks, 5, 2, kernel, kernel).requires_grad_()
    bias = drawn(networks, 5).requires_grad_()
    found = Columns.apply(x, weight, bias, stride)
    expected = torch.stack(
        [
            functional.conv2d(
                x[i].transpose(0, 1), weight[i], bias[i], stride, kernel // 2
            ).transpose(0, 1)
            for i in range(networks)
        ]
    ).flatten(2)
    torch.testing.assert_close(found, expected)
    back = drawn(*expected.shape)
    each = (x, weight, bias)
    ours, theirs = (torch.autograd.grad(y, each, back) for y in (found, expected))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)
