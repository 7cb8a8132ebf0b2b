import math

import numpy as np
import pytest
import torch

from ensize import InputError
from ensize.train.networks import (
    FAMILIES,
    layers_of,
    module,
    multiply_adds,
    named_weights,
    parameters,
    width_for,
)
from ensize.train.seeds import Seed

CIFAR = {"shape": (3, 32, 32), "classes": 100}
SOME = [
    ("vgg16", 3, (3, 32, 32), 10),
    ("vgg16", 2, (1, 70, 64), 7),
    ("wideresnet28", 5, (3, 32, 32), 100),
    ("wideresnet28", 2, (1, 9, 12), 3),
    ("mlp", 11, (64,), 10),
    ("mlp", 4, (2, 3, 5), 2),
]
EACH = pytest.mark.parametrize(("family", "width", "shape", "classes"), SOME)


def counted(network, shape):
    """Count the multiply-adds of a plain module as it predicts, layer by layer."""
    total = 0

    def hook(layer, _, output):
        nonlocal total
        total += output[0].numel() * math.prod(layer.weight.shape[1:])

    for layer in network.modules():
        if isinstance(layer, torch.nn.Conv2d | torch.nn.Linear):
            layer.register_forward_hook(hook)
    with torch.no_grad():
        network.eval()(torch.zeros(1, *shape))
    return total


def test_sizes_are_those_of_the_paper():
    assert round(parameters("vgg16", 64, **CIFAR) / 1e6, 1) == 15.3
    assert round(parameters("wideresnet28", 160, **CIFAR) / 1e6, 1) == 36.8


def test_a_perceptron_is_counted_by_hand():
    assert parameters("mlp", 7, shape=(64,), classes=10) == (
        64 * 7 + 7 + 7 * 7 + 7 + 7 * 10 + 10
    )
    assert multiply_adds("mlp", 7, shape=(64,), classes=10) == 64 * 7 + 7 * 7 + 70


@EACH
def test_counts_are_those_of_the_plain_module(family, width, shape, classes):
    of = {"shape": shape, "classes": classes}
    network = module(family, width, **of)
    assert parameters(family, width, **of) == sum(
        each.numel() for each in network.parameters()
    )
    assert multiply_adds(family, width, **of) == counted(network, shape)
    with torch.no_grad():
        assert network.eval()(torch.zeros(2, *shape)).shape == (2, classes)


@EACH
def test_drawn_weights_are_those_of_the_plain_module(family, width, shape, classes):
    layers = layers_of(family, width, shape=shape, classes=classes)
    network = module(family, width, shape=shape, classes=classes)
    drawn = Seed("test", width, 0).weights(layers)
    state = {name: torch.from_numpy(each) for name, each in drawn.items()}
    network.load_state_dict(state)
    trained = {name for name, each in named_weights(layers).items() if each.trained}
    assert trained == {name for name, _ in network.named_parameters()}


def test_initial_weights_have_the_declared_scale():
    layers = layers_of("vgg16", 32, **CIFAR)
    drawn = Seed("test", 32, 0).weights(layers)
    conv, dense = drawn["2.weight"], drawn["33.weight"]
    assert conv.shape == (32, 32, 3, 3)
    assert conv.std() == pytest.approx(math.sqrt(2 / (9 * 32)), rel=0.03)
    assert not drawn["2.bias"].any()
    assert dense.shape == (256, 256)
    assert np.abs(dense).max() == pytest.approx(1 / 16, rel=1e-3)
    assert dense.mean() == pytest.approx(0, abs=1e-3)


def test_dropout_reaches_the_module():
    def rates(network):
        found = (each for each in network.modules())
        return [each.p for each in found if isinstance(each, torch.nn.Dropout)]

    assert rates(module("vgg16", 2, **CIFAR, dropout=0.3)) == [0.3, 0.3]
    assert len(rates(module("wideresnet28", 2, **CIFAR))) == 12


@pytest.mark.parametrize("family", FAMILIES)
def test_a_size_finds_its_width(family):
    for width in (1, 2, 7, 64):
        size = parameters(family, width, **CIFAR)
        assert width_for(family, size, **CIFAR) == width
        assert width_for(family, size + 1, **CIFAR) == width
        if width > 1:
            assert width_for(family, size - 1, **CIFAR) == width - 1


def test_what_is_no_network_gets_a_sentence():
    with pytest.raises(InputError, match="the narrowest vgg16 has"):
        width_for("vgg16", 100, **CIFAR)
    with pytest.raises(InputError, match="did you mean 'vgg16'"):
        parameters("vgg", 8, **CIFAR)
    with pytest.raises(InputError, match="width is 0"):
        parameters("vgg16", 0, **CIFAR)
    with pytest.raises(InputError, match="choose the family mlp"):
        parameters("vgg16", 8, shape=(64,), classes=10)
    with pytest.raises(InputError, match="at least 32×32"):
        parameters("vgg16", 8, shape=(3, 28, 28), classes=10)
