"""Hugging Face's Trainer: a callback that records the network when it has trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ensize.checks import InputError
from ensize.stores import Store

if TYPE_CHECKING:
    import os

try:
    from transformers import TrainerCallback
except ImportError:  # then nobody calls, but the class can be read about
    TrainerCallback = object


class RecordPredictions(TrainerCallback):
    """Let the trainer predict the test set when training ends, and record that.

    A callback is told metrics and no logits, so it asks the trainer, which gathers
    them from as many devices as it uses.

    Parameters
    ----------
    trainer
        Who trains, and is asked to predict.
    store
        A store, or the folder of one.
    pool
        Of which pool this network is.
    test
        The test set, as ``trainer.predict`` takes it, with labels.
    seed
        Which network it is; that of the training arguments if not given.
    known
        What else is known of it, as `Store.record` takes it. The size is the number of
        the model's parameters if not given.
    """

    def __init__(
        self,
        trainer: Any,
        store: Store | str | os.PathLike[str],
        pool: str,
        test: Any,
        *,
        seed: int | None = None,
        **known: Any,
    ) -> None:
        self.trainer, self.test = trainer, test
        self.store = store if isinstance(store, Store) else Store(store)
        self.pool, self.seed, self.known = pool, seed, known

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Predict and record; one process of several writes."""
        said = self.trainer.predict(self.test)
        if not state.is_world_process_zero:
            return
        if said.label_ids is None:
            raise InputError(
                "the test set has no labels, so that the true classes are not known;"
                " hand in one with labels, as for evaluation"
            )
        # Some models return hidden states after their logits.
        several = isinstance(said.predictions, tuple)
        logits = said.predictions[0] if several else said.predictions
        seed = args.seed if self.seed is None else self.seed
        size = sum(each.numel() for each in self.trainer.model.parameters())
        self.store.add(
            self.pool, seed, logits, said.label_ids, **{"size": size, **self.known}
        )
