"""A checkpoint is gone on with where it is whole, and else it is as if it were not."""

import os
import random

import numpy as np
import pytest

pytest.importorskip("torch")

from ensize.train import loop
from ensize.train.images import load_data
from ensize.train.loop import Interrupted, Recipe, train
from ensize.train.resumption import Checkpoint

ARRAYS = {"values": np.arange(12, dtype=np.float32).reshape(3, 4), "n": np.ones(2)}
SHAPES = {"values": (3, 4), "n": (2,)}
SAID = {"epoch": 3, "step": 1, "seconds": 0.5, "failures": {"1": "its loss"}}


@pytest.fixture
def kept(tmp_path):
    checkpoint = Checkpoint(tmp_path / "0-2.checkpoint", "these", 10.0)
    checkpoint.write(ARRAYS, SAID)
    return checkpoint


def test_what_is_written_is_read(kept):
    arrays, said = kept.read(SHAPES)
    assert {**said, "failures": None} == {**SAID, "failures": None}
    assert said["failures"] == {1: "its loss"}
    assert all(np.array_equal(arrays[name], ARRAYS[name]) for name in ARRAYS)


def test_other_networks_and_other_shapes_are_not_read(kept):
    assert Checkpoint(kept.path, "those", 10.0).read(SHAPES) is None
    assert kept.read({**SHAPES, "n": (3,)}) is None
    assert kept.read({**SHAPES, "more": (1,)}) is None


def test_no_bit_of_it_may_be_another(kept):
    """Found: a flipped bit went into the networks that were trained on."""
    whole, chance = kept.path.read_bytes(), random.Random(0)
    assert kept.read(SHAPES) is not None
    start = 8 + int.from_bytes(whole[:8], "little")
    places = [chance.randrange(len(whole)) for _ in range(100)]
    for at in [*places, *range(start, len(whole))]:
        spoiled = bytearray(whole)
        spoiled[at] ^= 1 << chance.randrange(8)
        kept.path.write_bytes(spoiled)
        found = kept.read(SHAPES)
        if found is not None:  # a bit that nobody looks at, such as of a blank
            assert all(np.array_equal(found[0][k], ARRAYS[k]) for k in ARRAYS)
            assert found[1]["epoch"] == 3
    kept.path.write_bytes(whole[: len(whole) // 2])
    assert kept.read(SHAPES) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"epoch": "3"},
        {"epoch": -1},
        {"step": None},
        {"seconds": float("nan")},
        {"failures": []},
        {"failures": {"x": 1}},
    ],
)
def test_a_sealed_checkpoint_may_say_anything(kept, wrong):
    """Found: TypeError, and KeyError, of what somebody else has written."""
    kept.write(ARRAYS, {**SAID, **wrong})
    assert kept.read(SHAPES) is None
    kept.write(ARRAYS, {key: SAID[key] for key in SAID if key not in wrong})
    assert kept.read(SHAPES) is None


def test_a_pipe_holds_nobody_up(kept):
    kept.path.unlink()
    os.mkfifo(kept.path)
    assert kept.read(SHAPES) is None


def test_networks_that_are_ready_are_not_trained_again(tmp_path, monkeypatch):
    """Killed between its end and the store, a committee has only to predict again."""
    data, recipe = load_data("digits"), Recipe(2, 0.1, 0.0)
    path, steps = tmp_path / "0-1.checkpoint", []
    looks = iter([False] * 4 + [True])
    few = {"study": "few", "checkpoint": path}
    with pytest.raises(Interrupted):
        train(data, "mlp", 4, [0, 1], recipe, stop=lambda: next(looks), **few)
    first = train(data, "mlp", 4, [0, 1], recipe, **few)
    assert path.exists()
    step = loop._Committee._step
    monkeypatch.setattr(
        loop._Committee, "_step", lambda *of: (steps.append(1), step(*of))
    )
    again = train(data, "mlp", 4, [0, 1], recipe, **few)
    assert steps == []
    for one, other in zip(first, again, strict=True):
        assert np.array_equal(one.logits, other.logits)
