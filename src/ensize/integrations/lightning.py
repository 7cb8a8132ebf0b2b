"""PyTorch Lightning: a callback that records what a network says of the test set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ensize.checks import InputError
from ensize.stores import Store

if TYPE_CHECKING:
    import os

    from ensize.stores import Recording

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    try:
        from pytorch_lightning.callbacks import Callback
    except ImportError:  # then nobody calls, but the class can be read about
        Callback = object


class RecordPredictions(Callback):
    """Record a network when ``trainer.test`` or ``trainer.predict`` has gone through.

    What `test_step` (or `predict_step`) returns is recorded: logits, or a mapping with
    ``"logits"`` and maybe ``"targets"``. Without targets these are the second of the
    batch, as in ``(x, y)``. Nothing is written if the loop fails.

    Parameters
    ----------
    store
        A store, or the folder of one.
    pool, seed
        Which network of which pool this is.
    known
        What else is known of it, as `Store.record` takes it. The size is the number of
        the module's parameters if not given.
    """

    def __init__(
        self,
        store: Store | str | os.PathLike[str],
        pool: str,
        *,
        seed: int,
        **known: Any,
    ) -> None:
        super().__init__()
        self.store = store if isinstance(store, Store) else Store(store)
        self.pool, self.seed, self.known = pool, seed, known
        self._recording: Recording | None = None

    def _start(self, trainer: Any, module: Any) -> None:
        self._recording = None
        if trainer.fast_dev_run:  # a rehearsal, on a batch or two
            return
        if trainer.world_size > 1:
            raise InputError(
                f"the test set is shared out to {trainer.world_size} processes, and a"
                " network is recorded whole; test with Trainer(devices=1)"
            )
        size = sum(each.numel() for each in module.parameters())
        self._recording = self.store.record(
            self.pool, seed=self.seed, **{"size": size, **self.known}
        )

    def _take(self, outputs: Any, batch: Any, loader: int) -> None:
        if self._recording is None:
            return
        if loader:
            raise InputError(
                "there are several test loaders, and a network is recorded on one test"
                " set; test with one loader at a time, each with a store of its own"
            )
        logits, targets = outputs, None
        if isinstance(outputs, Mapping):
            logits, targets = outputs.get("logits"), outputs.get("targets")
        if logits is None:
            raise InputError(
                "the step returned no logits; return them, (objects, classes), or a"
                ' mapping such as {"logits": ..., "targets": ...}'
            )
        if targets is None:
            if not isinstance(batch, (tuple, list)) or len(batch) < 2:
                raise InputError(
                    "the batch is no pair (x, y), so that the true classes are not"
                    ' known; return {"logits": ..., "targets": ...} from the step'
                )
            targets = batch[1]
        self._recording.update(logits, targets)

    def _end(self) -> None:
        if self._recording is not None:
            self._recording.__exit__(None)
        self._recording = None

    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin."""
        self._start(trainer, pl_module)

    def on_test_batch_end(
        self,
        trainer: Any,  # noqa: ARG002 # Lightning's signature
        pl_module: Any,  # noqa: ARG002
        outputs: Any,
        batch: Any,
        batch_idx: int,  # noqa: ARG002
        dataloader_idx: int = 0,
    ) -> None:
        """Take what the network said of a batch."""
        self._take(outputs, batch, dataloader_idx)

    def on_test_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Write the network."""
        self._end()

    on_predict_start = on_test_start
    on_predict_batch_end = on_test_batch_end
    on_predict_end = on_test_end

    def on_exception(self, *_: Any) -> None:
        """Write nothing: what was said is not whole."""
        self._recording = None
