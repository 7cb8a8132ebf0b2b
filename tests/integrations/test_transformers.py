"""Hugging Face's Trainer records a network: the real one, where it is installed."""

import types

import numpy as np
import pytest
import torch

from ensize import InputError, Store
from ensize.integrations.transformers import RecordPredictions

GENERATOR = torch.Generator().manual_seed(0)
TEST = [
    {"x": torch.randn(4, generator=GENERATOR), "labels": torch.tensor(i % 3)}
    for i in range(30)
]
X, Y = torch.stack([each["x"] for each in TEST]), np.arange(30) % 3


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x, labels=None):
        logits = self.layer(x)
        if labels is None:
            return {"logits": logits}
        loss = torch.nn.functional.cross_entropy(logits, labels)
        return {"loss": loss, "logits": logits}


class StandIn:
    """What the callback uses of a Trainer, as documented."""

    def __init__(self, model, seed, *, zero=True, labels=True, more=()):
        self.model, self.seed, self.callbacks = model, seed, []
        self.zero, self.labels, self.more = zero, labels, more

    def add_callback(self, callback):
        self.callbacks.append(callback)

    def predict(self, objects):
        with torch.no_grad():
            logits = self.model(torch.stack([o["x"] for o in objects]))["logits"]
        found = (logits.numpy(), *self.more) if self.more else logits.numpy()
        labels = np.stack([o["labels"] for o in objects]) if self.labels else None
        return types.SimpleNamespace(predictions=found, label_ids=labels, metrics={})

    def train(self):
        args = types.SimpleNamespace(seed=self.seed)
        state = types.SimpleNamespace(is_world_process_zero=self.zero)
        for each in self.callbacks:
            each.on_train_end(args, state, None, model=self.model)


def real(model, seed, folder):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    args = transformers.TrainingArguments(
        output_dir=str(folder),
        seed=seed,
        max_steps=2,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
    )
    return transformers.Trainer(model, args, train_dataset=TEST)


pytestmark = pytest.mark.filterwarnings("ignore")  # of other people's libraries


@pytest.mark.parametrize("which", ["stand-in", "Hugging Face"])
def test_a_network_is_recorded_when_it_has_trained(which, tmp_path):
    model = Model()
    if which == "stand-in":
        trainer = StandIn(model, seed=7)
    else:
        trainer = real(model, 7, tmp_path / "trainer")
    trainer.add_callback(
        RecordPredictions(trainer, tmp_path / "store", "tiny", TEST, recipe="two steps")
    )
    trainer.train()
    store = Store.open(tmp_path / "store")
    pool = store.read("tiny")
    assert store.seeds("tiny") == (7,)
    assert (pool.pool.size, pool.pool.recipe) == (15, "two steps")
    np.testing.assert_array_equal(pool.targets, Y)
    expected = model.layer(X).detach()
    np.testing.assert_allclose(pool.logits(0, 0, 30), expected, rtol=1e-5)


def test_logits_are_the_first_of_several_outputs(tmp_path):
    trainer = StandIn(Model(), 0, more=(np.zeros((30, 9)),))
    trainer.add_callback(RecordPredictions(trainer, tmp_path, "tiny", TEST, seed=4))
    trainer.train()
    assert Store.open(tmp_path).read("tiny").classes == 3
    assert Store.open(tmp_path).seeds("tiny") == (4,)


def test_one_process_writes(tmp_path):
    trainer = StandIn(Model(), 0, zero=False)
    trainer.add_callback(RecordPredictions(trainer, tmp_path, "tiny", TEST))
    trainer.train()
    assert not list(tmp_path.rglob("*.safetensors"))


def test_a_test_set_without_labels_is_told(tmp_path):
    trainer = StandIn(Model(), 0, labels=False)
    trainer.add_callback(RecordPredictions(trainer, tmp_path, "tiny", TEST))
    with pytest.raises(InputError, match="no labels"):
        trainer.train()
