"""Batches against pictures cropped and mirrored one by one, and pixel by pixel."""

import numpy as np
import pytest
import torch

from ensize.train.batches import Batches
from ensize.train.images import Data, normalization
from ensize.train.seeds import OFFSETS, PAD, Seed, draw


def pictures(objects=9, shape=(3, 6, 5)):
    random = np.random.default_rng(0)
    x = random.integers(0, 256, (objects, *shape), np.uint8)
    return Data("p", x, np.arange(objects) % 3, x[:4], np.arange(4) % 3, 3, shape)


def cropped(picture, crop):
    """Move a picture over black, and mirror it: the slow way."""
    place, mirrored = divmod(int(crop), 2)
    down, right = (each - PAD for each in divmod(place, OFFSETS))
    _, height, width = picture.shape
    result = np.zeros_like(picture)
    for i in range(height):
        for j in range(width):
            if 0 <= i + down < height and 0 <= j + right < width:
                to = width - 1 - j if mirrored else j
                result[:, i, to] = picture[:, i + down, j + right]
    return result


def normalized(x, data):
    mean, deviation = normalization(data, "vgg16")
    return (x - mean[:, None, None]) / deviation[:, None, None]


def test_networks_take_their_own_pictures_cropped_their_own_way():
    data = pictures()
    batches = Batches(data, "vgg16", torch.device("cpu"))
    seeds = [Seed("s", 1, i) for i in range(40)]
    parts = [draw(each, 3, 9, crops=True) for each in (seeds[:15], seeds[15:])]
    keys, orders, crops = batches.epoch(parts)
    assert keys.tolist() == [*parts[0].keys, *parts[1].keys]
    x = batches.take(orders[:, 2:5], crops[:, 2:5]).numpy()
    for i in range(len(seeds)):
        for j in range(3):
            picture = data.x_train[orders[i, 2 + j]]
            expected = normalized(cropped(picture, crops[i, 2 + j]), data)
            assert x[i, j] == pytest.approx(expected, abs=1e-5)
    assert np.array_equal(
        batches.classes(orders[:, :2]).numpy(), data.y_train[orders[:, :2]]
    )


def test_without_crops_pictures_are_what_they_are():
    data = pictures()
    batches = Batches(data, "vgg16", torch.device("cpu"))
    _, orders, crops = batches.epoch([draw([Seed("s", 1, 0)], 0, 9)])
    assert crops is None
    x = batches.take(orders, None).numpy()[0]
    assert x == pytest.approx(normalized(data.x_train[orders[0]], data), abs=1e-5)
    test = torch.cat(list(batches.test(3))).numpy()
    assert test == pytest.approx(normalized(data.x_test, data), abs=1e-5)


def test_numbers_are_normalized_by_the_training_objects():
    random = np.random.default_rng(1)
    x = random.normal(3, 2, (50, 4)).astype(np.float32)
    data = Data("n", x, np.zeros(50, np.int64), x[:7], np.zeros(7, np.int64), 2, (4,))
    batches = Batches(data, "mlp", torch.device("cpu"))
    mean, deviation = normalization(data, "mlp")
    which = torch.tensor([[4, 1], [0, 0]])
    expected = (x[which.numpy()] - mean) / deviation
    assert batches.take(which, None).numpy() == pytest.approx(expected, abs=1e-5)
