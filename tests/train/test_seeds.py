import itertools

import numpy as np
import pytest

from ensize.train.networks import layers_of
from ensize.train.seeds import CROPS, Seed, draw

LAYERS = layers_of("mlp", 8, shape=(4,), classes=3)


def first_weights(seed):
    return seed.weights(LAYERS)["1.weight"]


def test_the_same_network_gets_the_same_chances():
    one, other = (Seed("study", 8, 3) for _ in range(2))
    assert np.array_equal(first_weights(one), first_weights(other))
    alone = draw([one], 5, 100, crops=True)
    beside = draw([Seed("study", 8, 2), other], 5, 100, crops=True)
    assert alone.keys[0] == beside.keys[1]
    assert np.array_equal(alone.orders[0], beside.orders[1])
    assert np.array_equal(alone.crops[0], beside.crops[1])


@pytest.mark.parametrize(
    "other", [Seed("studies", 8, 3), Seed("study", 16, 3), Seed("study", 8, 4)]
)
def test_another_network_gets_others(other):
    one = Seed("study", 8, 3)
    assert not np.array_equal(first_weights(one), first_weights(other))
    drawn = draw([one, other], 0, 100)
    assert drawn.keys[0] != drawn.keys[1]
    assert not np.array_equal(*drawn.orders)


def test_epochs_differ_and_need_not_be_drawn_in_order():
    seeds = [Seed("study", 8, 0)]
    alone = draw(seeds, 7, 50)
    orders = [tuple(draw(seeds, epoch, 50).orders[0]) for epoch in range(20)]
    assert len(set(orders)) == 20
    assert tuple(alone.orders[0]) == orders[7]


def test_the_order_does_not_depend_on_whether_objects_are_cropped():
    seeds = [Seed("study", 8, 0)]
    plain, cropped = draw(seeds, 2, 30), draw(seeds, 2, 30, crops=True)
    assert plain.crops is None
    assert plain.keys == cropped.keys
    assert np.array_equal(plain.orders, cropped.orders)


@pytest.mark.parametrize("objects", [1, 2, 999, 1024, 50_000])
def test_an_epoch_sees_every_object_once(objects):
    drawn = draw([Seed("s", 1, 0), Seed("s", 1, 1)], 0, objects)
    for order in drawn.orders:
        assert np.array_equal(np.sort(order), range(objects))


def splitmix64(state):
    """The generator as its authors wrote it, one number after the other."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        yield z ^ (z >> 31)


def test_orders_sort_objects_by_splitmix64():
    seed, objects = Seed("s", 1, 0), 100
    key = int.from_bytes(seed.digest("epoch 4")[:8], "little")
    numbers = list(itertools.islice(splitmix64(key), objects))
    assert next(splitmix64(0)) == 0xE220A8397B1DCDAF  # of the reference implementation
    by_number = sorted(range(objects), key=numbers.__getitem__)
    assert draw([seed], 4, objects).orders[0].tolist() == by_number


def test_crops_and_keys_are_uniform():
    """A chi-squared test at five standard deviations, and keys over all 32 bits."""
    seeds = [Seed("s", 1, i) for i in range(400)]
    drawn = draw(seeds[:10], 0, 5000, crops=True).crops.ravel()
    counts = np.bincount(drawn, minlength=CROPS)
    assert len(counts) == CROPS
    expected = len(drawn) / CROPS
    chi = ((counts - expected) ** 2 / expected).sum()
    assert abs(chi - (CROPS - 1)) < 5 * np.sqrt(2 * (CROPS - 1))
    keys = draw(seeds, 0, 1).keys
    assert np.abs(keys / 2**31).mean() == pytest.approx(0.5, abs=0.08)
    assert (keys < 0).mean() == pytest.approx(0.5, abs=0.13)


def test_first_places_of_orders_are_uniform():
    places = draw([Seed("s", 2, i) for i in range(1000)], 0, 10).orders
    counts = np.array([np.bincount(column, minlength=10) for column in places.T])
    assert np.abs(counts - 100).max() < 5 * np.sqrt(90)
