"""Descent against PyTorch's own, network by network."""

import itertools

import pytest
import torch

from ensize.train.committees import Stack
from ensize.train.descent import Descent
from ensize.train.networks import layers_of

LAYERS = layers_of("mlp", 3, shape=(4,), classes=2)
NETWORKS = 5


@pytest.mark.parametrize(
    ("rates", "decays"),
    [
        ([0.1] * 5, [0.0] * 5),
        ([0.1] * 5, [1e-2] * 5),
        ([0.1, 0.1, 0.1, 0.3, 0.3], [1e-2, 1e-2, 0.0, 0.0, 0.5]),
        ([0.1, 0.2, 0.1, 0.2, 0.1], [1e-2, 1e-3, 1e-2, 0.0, 1e-3]),
    ],
)
@pytest.mark.parametrize("edges", [(0, 5), (0, 2, 5), (0, 1, 2, 3, 4, 5)])
def test_each_network_goes_down_at_its_own_rate(rates, decays, edges):
    random = torch.Generator().manual_seed(0)
    stack = Stack(LAYERS, NETWORKS, torch.device("cpu"))
    stack.values.copy_(torch.randn(stack.values.shape, generator=random))
    descent = Descent(stack, rates, decays, momentum=0.9)
    alone = [
        [each[i].clone().requires_grad_() for each in stack.learned.values()]
        for i in range(NETWORKS)
    ]
    plain = [
        torch.optim.SGD(own, rate, momentum=0.9, weight_decay=decay)
        for own, rate, decay in zip(alone, rates, decays, strict=True)
    ]
    for factor in (1.0, 1.0, 0.5, 0.01):
        drawn = [
            torch.randn(each.shape, generator=random) for each in stack.learned.values()
        ]
        for i, (own, optimizer) in enumerate(zip(alone, plain, strict=True)):
            optimizer.param_groups[0]["lr"] = factor * rates[i]
            for weight, slope in zip(own, drawn, strict=True):
                weight.grad = slope[i].clone()
            optimizer.step()
        for start, stop in itertools.pairwise(edges):
            some = slice(start, stop)
            descent.step(some, [each[some].clone() for each in drawn], factor)
    for i, own in enumerate(alone):
        for weight, each in zip(own, stack.learned.values(), strict=True):
            torch.testing.assert_close(each[i], weight.detach())


def test_what_stands_beside_it_changes_no_bit_of_a_network():
    """Networks of 9 + 3 + … numbers, which no processor takes at a time."""
    random = torch.Generator().manual_seed(1)
    layers = layers_of("mlp", 3, shape=(3,), classes=2)
    stacks = [Stack(layers, NETWORKS, torch.device("cpu")) for _ in range(2)]
    drawn = torch.randn(stacks[0].values.shape, generator=random)
    whole = slice(0, NETWORKS)
    each_alone = [slice(i, i + 1) for i in range(NETWORKS)]
    for stack, cut in zip(stacks, ([whole], each_alone), strict=True):
        stack.values.copy_(drawn)
        descent = Descent(stack, [0.1] * NETWORKS, [1e-3] * NETWORKS, momentum=0.9)
        for _ in range(3):
            for some in cut:
                slopes = [each[some] / 3 for each in stack.learned.values()]
                descent.step(some, slopes)
    assert torch.equal(stacks[0].values, stacks[1].values)
