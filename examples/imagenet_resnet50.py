"""Record what trained ResNet-50s say about ImageNet's validation set.

    python examples/imagenet_resnet50.py STORE --data ILSVRC2012/val CHECKPOINT...
    ensize score STORE --n 1,2,4
    ensize forecast STORE --to 16,64

DATA has a folder for each class, as torchvision.datasets.ImageFolder reads it. A
CHECKPOINT is the state dict of a torchvision ResNet-50 (.pt, .pth or .safetensors); the
networks should differ in nothing but their seeds. Predictions of 50,000 objects are
kept in float16, 100 MB a network; with --sketch 8 MB. What is recorded already is left
as it is, so that an interrupted run goes on.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from safetensors.torch import load_file

import ensize


def main() -> None:
    """Predict with one checkpoint after another."""
    # Here, so that this file can be read, and compiled, without torchvision.
    from torchvision import datasets, models, transforms  # noqa: PLC0415

    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("store")
    options.add_argument("checkpoints", nargs="+", type=Path)
    options.add_argument("--data", required=True, type=Path)
    options.add_argument("--pool", default="resnet50")
    options.add_argument("--batch", default=250, type=int)
    options.add_argument("--sketch", action="store_true")
    given = options.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    center = transforms.Compose(
        [
            transforms.Resize(256),
            transforms.CenterCrop(224),
            transforms.ToTensor(),
            transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ]
    )
    objects = torch.utils.data.DataLoader(
        datasets.ImageFolder(given.data, center), batch_size=given.batch, num_workers=8
    )
    store = ensize.Store(given.store)
    for seed, path in enumerate(given.checkpoints):
        if seed in store.seeds(given.pool):
            continue
        network = models.resnet50(weights=None)
        if path.suffix == ".safetensors":
            state = load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
        network.load_state_dict(state)
        network.to(device, memory_format=torch.channels_last).eval()
        size = sum(each.numel() for each in network.parameters())
        how = {"sketch": True} if given.sketch else {"dtype": "float16"}
        extra = {"checkpoint": path.name}
        with (
            store.record(
                given.pool, seed=seed, family="resnet50", size=size, extra=extra, **how
            ) as recording,
            torch.inference_mode(),
        ):
            for x, y in objects:
                recording.update(network(x.to(device)), y)
        print(f"{path} is {given.pool}/{seed} in {store.path}")


if __name__ == "__main__":
    main()
