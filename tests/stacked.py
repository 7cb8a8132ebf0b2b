"""Networks of a few seeds, stacked and as plain modules, to be compared."""

import torch

from ensize.train.committees import Stack, Way
from ensize.train.networks import layers_of, module
from ensize.train.seeds import Seed

NETWORKS, OBJECTS, CLASSES = 3, 5, 4
WAYS = (
    Way("products", 3),
    Way("convolutions", 3),
    Way("convolutions", 3, channels_last=True),
    Way("convolutions", 3, 16),
    Way("convolutions", 3, 16, channels_last=True),
    Way("convolutions", 1, 1, channels_last=True),
)
PICTURES = [("vgg16", 2, (3, 32, 32)), ("wideresnet28", 2, (1, 12, 9))]
FLAT = [("mlp", 6, (7,)), ("mlp", 3, (2, 3, 4))]


def made(family, width, shape):
    """Networks of three seeds, stacked and as plain modules, and objects for each."""
    layers = layers_of(family, width, shape=shape, classes=CLASSES)
    stack = Stack(layers, NETWORKS, torch.device("cpu"))
    alone = []
    for i in range(NETWORKS):
        drawn = Seed("made", width, i).weights(layers)
        for name, each in drawn.items():
            stack.named[name][i] = torch.from_numpy(each)
        network = module(family, width, shape=shape, classes=CLASSES, dropout=0.0)
        network.load_state_dict({n: torch.from_numpy(w) for n, w in drawn.items()})
        alone.append(network)
    random = torch.Generator().manual_seed(1)
    x = torch.randn((NETWORKS, OBJECTS, *shape), generator=random)
    return layers, stack, alone, x
