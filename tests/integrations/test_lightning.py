"""Lightning's loops record a network: the real ones, where Lightning is installed."""

import types

import numpy as np
import pytest
import torch

from ensize import InputError, Store
from ensize.integrations.lightning import RecordPredictions

X = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
Y = torch.arange(50) % 3


class Loop:
    """The hooks that Lightning documents, in the order that it documents."""

    def __init__(self, callback, *, fast_dev_run=False, world_size=1):
        self.callback, self.fast_dev_run = callback, fast_dev_run
        self.world_size = world_size

    def run(self, kind, module, batches):
        call = self.callback
        try:
            getattr(call, f"on_{kind}_start")(self, module)
            for i, batch in enumerate(batches):
                with torch.no_grad():
                    outputs = getattr(module, f"{kind}_step")(batch, i)
                done = getattr(call, f"on_{kind}_batch_end")
                done(self, module, outputs, batch, i)
            getattr(call, f"on_{kind}_end")(self, module)
        except BaseException as error:
            call.on_exception(self, module, error)
            raise


def real(callback, **options):
    lightning = pytest.importorskip("lightning.pytorch")
    trainer = lightning.Trainer(
        callbacks=[callback],
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **options,
    )

    def run(kind, module, batches):
        getattr(trainer, kind)(module, batches)

    return types.SimpleNamespace(run=run)


def made(base, answer):
    class Module(base):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 3)

        def test_step(self, batch, index):
            return answer(self.layer(batch[0]), batch[1])

        predict_step = test_step

    torch.manual_seed(0)
    return Module()


def module_of(loop, answer=lambda logits, _: logits):
    if loop is real:
        return made(pytest.importorskip("lightning.pytorch").LightningModule, answer)
    return made(torch.nn.Module, answer)


@pytest.fixture(params=[Loop, real], ids=["stand-in", "Lightning"])
def loop(request):
    return request.param


@pytest.fixture
def batches():
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, Y), 20)


pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's, of our small machine


@pytest.mark.parametrize("kind", ["test", "predict"])
def test_what_a_network_says_is_recorded(loop, batches, tmp_path, kind):
    module = module_of(loop)
    callback = RecordPredictions(tmp_path, "small", seed=3, width=1)
    loop(callback).run(kind, module, batches)
    store = Store.open(tmp_path)
    pool = store.read("small")
    assert store.seeds("small") == (3,)
    assert (pool.pool.size, pool.pool.width) == (15, 1)
    np.testing.assert_array_equal(pool.targets, Y)
    expected = module.layer(X).detach()
    np.testing.assert_allclose(pool.logits(0, 0, 50), expected, rtol=1e-6)


def test_targets_may_come_with_the_logits(loop, batches, tmp_path):
    module = module_of(loop, lambda z, y: {"logits": z, "targets": 2 - y})
    loop(RecordPredictions(tmp_path, "small", seed=0)).run("test", module, batches)
    np.testing.assert_array_equal(Store.open(tmp_path).targets(), 2 - Y)


def test_a_loop_that_fails_writes_nothing(loop, batches, tmp_path):
    asked = []

    def fail_at_last(logits, _):
        asked.append(1)
        if len(asked) == 3:
            raise RuntimeError("the last batch")
        return logits

    callback = RecordPredictions(tmp_path, "small", seed=0)
    with pytest.raises(RuntimeError, match="the last batch"):
        loop(callback).run("test", module_of(loop, fail_at_last), batches)
    assert not list(tmp_path.rglob("*.safetensors"))
    again = module_of(loop)
    loop(callback).run("test", again, batches)
    assert Store.open(tmp_path).read("small").objects == 50


def test_a_rehearsal_is_not_recorded(loop, batches, tmp_path):
    callback = RecordPredictions(tmp_path, "small", seed=0)
    loop(callback, fast_dev_run=True).run("test", module_of(loop), batches)
    assert not list(tmp_path.rglob("*.safetensors"))


def test_a_step_without_logits_is_told(loop, batches, tmp_path):
    callback = RecordPredictions(tmp_path, "small", seed=0)
    with pytest.raises(InputError, match="returned no logits; return them"):
        loop(callback).run("test", module_of(loop, lambda *_: None), batches)


def test_what_cannot_be_recorded_whole_is_refused(batches, tmp_path):
    callback, module = RecordPredictions(tmp_path, "small", seed=0), module_of(Loop)
    with pytest.raises(InputError, match="shared out to 2 processes"):
        Loop(callback, world_size=2).run("test", module, batches)
    callback.on_test_start(Loop(callback), module)
    with pytest.raises(InputError, match="several test loaders"):
        callback.on_test_batch_end(None, module, X @ X.T, (X, Y), 0, 1)
    with pytest.raises(InputError, match=r"no pair \(x, y\)"):
        callback.on_test_batch_end(None, module, X, {"x": X}, 0)
