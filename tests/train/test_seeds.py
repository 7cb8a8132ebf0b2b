import numpy as np
import pytest

from ensize.train.networks import layers_of
from ensize.train.seeds import CROPS, Seed

LAYERS = layers_of("mlp", 8, shape=(4,), classes=3)


def first_weights(seed):
    return seed.weights(LAYERS)["1.weight"]


def test_the_same_network_gets_the_same_chances():
    one, other = (Seed("study", 8, 3) for _ in range(2))
    assert np.array_equal(first_weights(one), first_weights(other))
    a, b = (each.epoch(5, 100, crops=True) for each in (one, other))
    assert a.key == b.key
    assert np.array_equal(a.order, b.order)
    assert np.array_equal(a.crops, b.crops)


@pytest.mark.parametrize(
    "other", [Seed("studies", 8, 3), Seed("study", 16, 3), Seed("study", 8, 4)]
)
def test_another_network_gets_others(other):
    one = Seed("study", 8, 3)
    assert not np.array_equal(first_weights(one), first_weights(other))
    a, b = (each.epoch(0, 100) for each in (one, other))
    assert a.key != b.key
    assert not np.array_equal(a.order, b.order)


def test_epochs_differ_and_need_not_be_drawn_in_order():
    seed = Seed("study", 8, 0)
    alone = seed.epoch(7, 50)
    orders = [tuple(seed.epoch(epoch, 50).order) for epoch in range(20)]
    assert len(set(orders)) == 20
    assert tuple(alone.order) == orders[7]


def test_the_order_does_not_depend_on_whether_objects_are_cropped():
    seed = Seed("study", 8, 0)
    plain, cropped = seed.epoch(2, 30), seed.epoch(2, 30, crops=True)
    assert plain.crops is None
    assert plain.key == cropped.key
    assert np.array_equal(plain.order, cropped.order)


def test_an_epoch_sees_every_object_once():
    assert np.array_equal(np.sort(Seed("s", 1, 0).epoch(0, 999).order), range(999))


def test_crops_and_keys_are_uniform():
    """A chi-squared test at five standard deviations, and keys over all 32 bits."""
    drawn = np.concatenate(
        [Seed("s", 1, i).epoch(0, 5000, crops=True).crops for i in range(10)]
    )
    counts = np.bincount(drawn, minlength=CROPS)
    assert len(counts) == CROPS
    expected = len(drawn) / CROPS
    chi = ((counts - expected) ** 2 / expected).sum()
    assert abs(chi - (CROPS - 1)) < 5 * np.sqrt(2 * (CROPS - 1))
    keys = np.array([Seed("s", 1, i).epoch(0, 1).key for i in range(400)])
    assert np.abs(keys / 2**31).mean() == pytest.approx(0.5, abs=0.08)
    assert (keys < 0).mean() == pytest.approx(0.5, abs=0.13)


def test_first_places_of_orders_are_uniform():
    places = np.array([Seed("s", 2, i).epoch(0, 10).order for i in range(1000)])
    counts = np.array([np.bincount(column, minlength=10) for column in places.T])
    assert np.abs(counts - 100).max() < 5 * np.sqrt(90)
