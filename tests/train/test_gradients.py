"""Slopes against those of plain modules, network by network."""

import pytest
import torch
from torch.nn import functional

from ensize.train.committees import Dropout, Way
from ensize.train.gradients import slopes
from ensize.train.networks import DROPOUT, FLATTEN, RELU, Dense
from stacked import (
    CLASSES,
    FLAT,
    NETWORKS,
    OBJECTS,
    PICTURES,
    WAYS,
    made,
)


def classes():
    random = torch.Generator().manual_seed(2)
    return torch.randint(0, CLASSES, (NETWORKS, OBJECTS), generator=random)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way} {way.fill}")
@pytest.mark.parametrize("of", [*PICTURES, *FLAT], ids=lambda of: f"{of[0]}-{of[1]}")
def test_they_are_those_of_plain_modules(of, way):
    layers, stack, alone, x = made(*of)
    y = classes()
    some = slice(0, 1) if way.networks == 1 else slice(0, NETWORKS)
    found = slopes(layers, stack.take(some), x[some], y[some], way)
    for i, network in enumerate(alone[some]):
        loss = functional.cross_entropy(network.train()(x[i]), y[i])
        expected = torch.autograd.grad(loss, list(network.parameters()))
        names = [name for name, _ in network.named_parameters()]
        by_name = dict(zip(names, expected, strict=True))
        for name, each in zip(stack.learned, found, strict=True):
            largest = float(by_name[name].abs().max())
            torch.testing.assert_close(
                each[i], by_name[name], rtol=1e-3, atol=1e-4 * largest + 1e-6
            )


@pytest.mark.parametrize("of", FLAT)
def test_a_perceptron_goes_back_by_hand_as_by_autograd(of):
    """With dropout: what is multiplied on the way there is on the way back."""
    layers, stack, _, x = made(*of)
    y = classes()
    dropout = Dropout(torch.tensor([0.0, 0.2, 0.6]), torch.tensor([1, 2, 3]))
    weights = stack.take(slice(0, NETWORKS))
    found = slopes(layers, weights, x, y, Way("products", NETWORKS), dropout)
    h, dropped = x.flatten(2), 0
    for i, layer in enumerate(layers):
        if isinstance(layer, Dense):
            h = h @ weights[f"{i}.weight"].mT + weights[f"{i}.bias"][:, None]
        elif layer == RELU:
            h = functional.relu(h)
        elif layer == DROPOUT:
            dropped += 1
            h = h * dropout.factors(dropped, *h.shape[1:])
        else:
            assert layer == FLATTEN
    loss = sum(functional.cross_entropy(h[i], y[i]) for i in range(NETWORKS))
    expected = torch.autograd.grad(loss, [weights[name] for name in stack.learned])
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_what_is_certain_and_wrong_has_finite_slopes():
    layers, stack, _, x = made(*FLAT[0])
    stack.learned[f"{len(layers) - 1}.bias"][:, 0] = 1e4
    y = torch.ones((NETWORKS, OBJECTS), dtype=torch.int64)
    found = slopes(layers, stack.take(slice(0, 3)), x, y, Way("products", 3))
    assert all(bool(each.isfinite().all()) for each in found)
    assert found[-1][:, 0].tolist() == pytest.approx([1.0] * 3)
    assert found[-1][:, 1].tolist() == pytest.approx([-1.0] * 3)
