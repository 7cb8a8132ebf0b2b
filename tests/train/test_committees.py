"""A committee against plain modules, network by network."""

import numpy as np
import pytest
import torch

from ensize.train.committees import Dropout, Way, forward
from ensize.train.networks import named_weights
from stacked import FLAT, NETWORKS, PICTURES, WAYS, made

EACH = pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way} {way.fill}")


@pytest.fixture(scope="module", params=PICTURES, ids=lambda of: of[0])
def pictures(request):
    return request.param


@EACH
@pytest.mark.parametrize("training", [False, True])
def test_pictures_go_through_as_through_plain_modules(pictures, way, training):
    layers, stack, alone, x = made(*pictures)
    together = forward(layers, stack.named, x, way, training=training)
    for i, network in enumerate(alone):
        expected = network.train(training)(x[i])
        torch.testing.assert_close(together[i], expected, rtol=1e-4, atol=1e-5)
        for name, each in network.state_dict().items():
            if not name.endswith("num_batches_tracked"):
                torch.testing.assert_close(
                    stack.named[name][i], each, rtol=1e-4, atol=1e-6
                )


@pytest.mark.parametrize("flat", FLAT)
def test_numbers_go_through_as_through_plain_modules(flat):
    layers, stack, alone, x = made(*flat)
    together = forward(layers, stack.named, x, Way("products", NETWORKS))
    for i, network in enumerate(alone):
        torch.testing.assert_close(together[i], network.eval()(x[i]))


def test_half_of_what_is_dropped_is_dropped():
    """Each network by its own rate and key: the same whichever it sits beside."""
    rates, keys = torch.tensor([0.0, 0.5, 0.25]), torch.tensor([5, 6, -7])
    factors = Dropout(rates, keys).factors(1, 100, 50)
    for each, rate in zip(factors, rates, strict=True):
        assert set(each.unique().tolist()) <= {0.0, float(1 / (1 - rate))}
        dropped = float((each == 0).float().mean())
        assert dropped == pytest.approx(float(rate), abs=5 * (0.25 / 5000) ** 0.5)
    one = Dropout(rates, keys).take(slice(1, 2)).factors(1, 100, 50)
    assert torch.equal(one[0], factors[1])
    assert not torch.equal(Dropout(rates, keys).factors(2, 100, 50)[1], factors[1])
    other = Dropout(rates, keys + 1).factors(1, 100, 50)
    assert float((other[1] == factors[1]).float().mean()) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("way", WAYS[:4], ids=str)
def test_every_way_drops_the_same(way):
    layers, stack, _, x = made(*PICTURES[0])
    dropout = Dropout(torch.full((NETWORKS,), 0.5), torch.arange(NETWORKS))
    found, plain = (
        forward(layers, stack.named, x, each, dropout=dropout)
        for each in (way, Way("products", NETWORKS))
    )
    torch.testing.assert_close(found, plain, rtol=1e-4, atol=1e-5)
    without = forward(layers, stack.named, x, way)
    assert not torch.allclose(found, without, rtol=1e-2)


def test_a_stack_holds_views():
    layers, stack, _, _ = made(*FLAT[0])
    assert list(stack.named) == list(named_weights(layers))
    stack.values.fill_(2.0)
    assert all(bool((each == 2).all()) for each in stack.learned.values())
    some = stack.take(slice(1, 3))
    assert all(each.requires_grad for each in some.values())
    next(iter(some.values())).data.fill_(3.0)
    first = next(iter(stack.learned.values()))
    assert np.array_equal(first[:, 0, 0], [2, 3, 3])


def test_a_way_says_what_it_is():
    assert [str(way) for way in WAYS] == [
        "products of 3",
        "convolutions of 3",
        "convolutions of 3, channels last",
        "convolutions of 3",
        "convolutions of 3, channels last",
        "one by one, channels last",
    ]
    assert str(Way("convolutions", 1)) == "one by one, channels first"
