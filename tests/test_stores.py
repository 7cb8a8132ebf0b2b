import contextlib
import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file

from ensize import Grid, InputError, Predictions, Sketch
from ensize.sketches import grid_for, log_probabilities
from ensize.stores import FileArray, Store, open_safetensors
from ensize.stores.networks import Network

OBJECTS, CLASSES = 30, 5
KNOWN = {"size": 1000, "width": 8, "family": "vgg16", "recipe": "r1"}


def make(seed=0, objects=OBJECTS, classes=CLASSES):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 3, (objects, classes)).astype(np.float32)
    return logits, np.arange(objects) % classes


def contents(folder):
    """Every file's bytes and time of change."""
    return {
        path: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "store")
    for seed in range(3):
        store.add("vgg", seed, *make(seed), **KNOWN)
    return store


# What is written is what is read.


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_logits_come_back_as_they_were_rounded(tmp_path, dtype):
    logits, targets = make()
    store = Store(tmp_path)
    assert store.add("a", 7, logits, targets, dtype=dtype, **KNOWN) is True
    read = store.read()
    assert isinstance(read, Predictions)
    assert read.rows[0].dtype == dtype
    assert np.array_equal(read.rows[0][:], logits.astype(dtype))
    assert np.array_equal(read.rows[0][3:9], logits[3:9].astype(dtype))
    assert np.array_equal(read.targets, targets)
    assert np.array_equal(store.targets(), targets)
    assert read.labels == ("a/7",)
    assert (read.pool.name, read.pool.size, read.pool.width) == ("a", 1000, 8.0)
    assert (read.pool.family, read.pool.recipe) == ("vgg16", "r1")


def test_the_safetensors_library_reads_a_networks_file(store):
    path = store.path / "pools/vgg/1.safetensors"
    with safe_open(path, framework="numpy") as file:
        assert np.array_equal(file.get_tensor("logits"), make(1)[0])
        said = file.metadata()
    assert said == store.metadata("vgg", 1)
    assert (said["seed"], said["classes"], said["kind"]) == ("1", "5", "logits")
    assert said["written"].endswith("+00:00")
    assert {"ensize", "numpy", "checksum", "targets", "format"} <= set(said)


def test_what_users_add_stands_with_the_network(tmp_path):
    store = Store(tmp_path)
    store.add("a", 0, *make(), extra={"seconds": 12.5, "gpu": "τ"})
    said = store.metadata("a", 0)
    assert (said["extra.seconds"], said["extra.gpu"]) == ("12.5", "τ")


@pytest.mark.parametrize("kind", ["float64", ">f4", "float16", "int64"])
def test_logits_of_any_number_type_are_taken(tmp_path, kind):
    logits, targets = make()
    logits = np.asfortranarray(logits.astype(kind))
    store = Store(tmp_path)
    store.add("a", 0, logits, targets.astype("u1"))
    assert np.array_equal(store.read().rows[0][:], logits.astype(np.float32))


@pytest.mark.parametrize("batch", [1, 7, 300])
@pytest.mark.parametrize("sketch", [False, True])
def test_recording_in_batches_equals_adding_at_once(tmp_path, batch, sketch):
    logits, targets = make(objects=700)
    at_once, in_batches = Store(tmp_path / "a"), Store(tmp_path / "b")
    at_once.add("a", 3, logits, targets, sketch=sketch)
    with in_batches.record("a", seed=3, sketch=sketch) as r:
        r.update(logits[:0], targets[:0])
        for start in range(0, 700, batch):
            r.update(logits[start : start + batch], targets[start : start + batch])
        assert not r.written
    assert r.written
    one, other = at_once.read(), in_batches.read()
    if sketch:
        assert one.grid == other.grid == grid_for(logits[:256])
        np.testing.assert_allclose(one.rows[0][:], other.rows[0][:], 1e-5, 1e-6)
    else:
        assert np.array_equal(one.rows[0][:], other.rows[0][:])


def test_the_memory_of_a_sketch_does_not_grow_with_the_objects(tmp_path):
    """3,000 objects of 20,000 classes (240 MB) take 2 MB more than 300 of them."""
    rng = np.random.default_rng(0)
    batch, classes = rng.normal(0, 2, (20, 20_000)).astype(np.float32), 20_000
    tracemalloc.start()
    try:
        with Store(tmp_path).record("lm", seed=0, sketch=True) as r:
            for _ in range(150):
                r.update(batch, rng.integers(0, classes, 20))
        with_all = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        with Store(tmp_path / "short").record("lm", seed=0, sketch=True) as r:
            for _ in range(15):
                r.update(batch, rng.integers(0, classes, 20))
        assert with_all < tracemalloc.get_traced_memory()[1] + 2**21
    finally:
        tracemalloc.stop()
    assert (tmp_path / "pools/lm/0.safetensors").stat().st_size < 2**20


def test_a_batch_may_be_overwritten_after_its_update(tmp_path):
    logits, targets = make()
    buffer = np.empty((10, CLASSES), np.float32)
    with Store(tmp_path).record("a", seed=0) as r:
        for start in range(0, OBJECTS, 10):
            buffer[:] = logits[start : start + 10]
            r.update(buffer, targets[start : start + 10])
    assert np.array_equal(Store(tmp_path).read().rows[0][:], logits)


def test_a_sketch_holds_log_probabilities_of_the_true_class(tmp_path):
    logits, targets = make(objects=400)
    store = Store(tmp_path)
    store.add("a", 0, logits, targets, sketch=True, size=9)
    read = store.read()
    assert isinstance(read, Sketch)
    expected = log_probabilities(logits.astype(float), targets, read.grid)
    np.testing.assert_allclose(read.rows[0][:], expected, 1e-4, 1e-5)
    assert (read.classes, read.pool.size, read.labels) == (CLASSES, 9, ("a/0",))
    assert store.pools()[0].form == "sketch"
    assert store.verify() == ()


def test_sketches_on_different_grids_are_read_on_what_they_share(tmp_path):
    logits, targets = make()
    store = Store(tmp_path)
    store.add("a", 0, logits, targets, sketch=True)
    store.add("a", 1, 20 * logits, targets, sketch=True)
    read = store.read()
    grids = [grid_for(logits), grid_for(20 * logits)]
    assert grids[0] != grids[1]
    assert read.grid == grids[0].shared(grids[1])
    expected = log_probabilities(20 * logits, targets, read.grid)
    np.testing.assert_allclose(read.rows[1][:], expected, 1e-4, 1e-4)


class Tensor:
    """As much of a PyTorch tensor as matters here: on a device, with a gradient."""

    def __init__(self, array, dtype="torch.float32", ready=()):
        self.array, self.dtype, self.ready = array, dtype, ready

    def detach(self):
        return Tensor(self.array, self.dtype, (*self.ready, "detach"))

    def cpu(self):
        return Tensor(self.array, self.dtype, (*self.ready, "cpu"))

    def float(self):
        return Tensor(self.array, "torch.float32", self.ready)

    def __array__(self, dtype=None, copy=None):
        if self.ready != ("detach", "cpu") or self.dtype == "torch.bfloat16":
            raise TypeError("can't convert this tensor to numpy")
        return self.array


class Bfloat16:
    """As much of a JAX array of bfloat16."""

    dtype = "bfloat16"

    def __init__(self, array):
        self.array = array

    def astype(self, dtype):
        return self.array.astype(dtype)


@pytest.mark.parametrize(
    "wrap", [Tensor, lambda each: Tensor(each, "torch.bfloat16"), Bfloat16]
)
def test_tensors_are_taken_from_their_device(tmp_path, wrap):
    logits, targets = make()
    with Store(tmp_path).record("a", seed=0) as r:
        r.update(wrap(logits), Tensor(targets, "torch.int64"))
    assert np.array_equal(Store(tmp_path).read().rows[0][:], logits)


# What is there.


def test_a_store_lists_its_pools(store):
    store.add("wide", 5, *make(5), size=4000)
    (store.path / "pools/vgg/.9.safetensors.1-a.partial").write_bytes(b"half")
    (store.path / "pools/vgg/notes.txt").write_text("mine")
    vgg, wide = store.pools()
    assert (vgg.name, vgg.width, vgg.size, vgg.networks) == ("vgg", 8.0, 1000, 3)
    assert (vgg.form, vgg.objects, vgg.classes) == ("logits", OBJECTS, CLASSES)
    assert vgg.partial == 1
    assert (wide.name, wide.width, wide.networks, wide.partial) == ("wide", None, 1, 0)
    assert store.seeds("vgg") == (0, 1, 2)
    assert store.seeds("none") == ()
    assert len(store.partials()) == 1
    assert store.verify() == ()


def test_reading_makes_nothing(tmp_path):
    store = Store(tmp_path / "new")
    assert store.pools() == ()
    assert store.seeds("a") == ()
    assert store.verify() == ()
    with pytest.raises(InputError, match="holds no networks yet"):
        store.read()
    assert not (tmp_path / "new").exists()
    with pytest.raises(InputError, match="new does not exist; a store is a folder"):
        Store.open(tmp_path / "new")
    (tmp_path / "new").mkdir()
    with pytest.raises(InputError, match="new is no store; a store is a folder"):
        Store.open(tmp_path / "new")


def test_some_seeds_of_a_pool_are_read(store):
    read = store.read("vgg", [2, 0])
    assert read.labels == ("vgg/2", "vgg/0")
    assert np.array_equal(read.rows[0][:], make(2)[0])
    with pytest.raises(InputError, match="has no network of seed 9; it has 3, with"):
        store.read("vgg", [0, 9])


def test_one_of_several_pools_must_be_chosen(store):
    store.add("wide", 0, *make(), size=4000)
    with pytest.raises(InputError, match=r"several pools \(vgg, wide\).* --pool NAME"):
        store.read()
    with pytest.raises(InputError, match="did you mean 'wide'"):
        store.read("wiide")
    assert store.read("wide").networks == 1


def test_the_common_claim_can_be_lost(store):
    """A pool without pool.json is listed, read, and gets it back from a network."""
    before = store.pools()
    claim = store.path / "pools/vgg/pool.json"
    whole = claim.read_bytes()
    claim.unlink()
    assert store.pools() == before
    assert store.read().networks == 3
    assert store.verify() == ()
    with pytest.raises(InputError, match="its recipe is 'r2'"):
        store.add("vgg", 3, *make(3), **KNOWN | {"recipe": "r2"})
    assert not claim.exists()
    store.add("vgg", 3, *make(3), **KNOWN)
    assert claim.read_bytes() == whole


def test_thousands_of_networks_are_listed_at_once_and_all_read(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    store, targets = Store(tmp_path), np.array([0, 1, 0])
    for seed in range(3000):
        logits = np.full((3, 2), seed, np.float32)
        logits[:, 0] += 2
        store.add("tiny", seed, logits, targets)
    start = time.perf_counter()
    assert store.pools()[0].networks == 3000
    assert len(store.seeds("tiny")) == 3000
    assert time.perf_counter() - start < 1
    files, maps = len(list(Path("/proc/self/fd").iterdir())), Path("/proc/self/maps")
    mapped = len(maps.read_text().splitlines())
    read = store.read()
    assert [rows[0:1][0, 1] for rows in read.rows] == list(range(3000))
    assert len(list(Path("/proc/self/fd").iterdir())) == files
    assert len(maps.read_text().splitlines()) < mapped + 100
    shares = []
    assert store.verify(progress=lambda what, share: shares.append((what, share))) == ()
    assert len(shares) == 3000
    assert shares[-1] == ("verifying", 1.0)


# What does not come in.


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"size": 1001}, "its size is '1001', and the pool's '1000'"),
        ({"width": 9}, "its width is '9.0', and the pool's '8.0'"),
        ({"family": "mlp"}, "its family is 'mlp'"),
        ({"recipe": "r2"}, "its recipe is 'r2', and the pool's 'r1'"),
        ({"recipe": None}, "its recipe is None"),
        ({"multiply_adds": 5}, "its multiply_adds is '5'"),
        ({"sketch": True}, "its form is 'sketch', and the pool's 'logits'"),
    ],
)
def test_a_network_unlike_its_pool_is_refused_before_it_is_evaluated(
    store, known, message
):
    before = contents(store.path)
    with pytest.raises(InputError, match=message) as caught:
        store.record("vgg", seed=9, **KNOWN | known)
    assert "vgg/9" in str(caught.value)
    assert str(store.path) in str(caught.value)
    assert contents(store.path) == before


def test_other_targets_are_refused(store):
    before = contents(store.path)
    logits, targets = make()
    for pool in ("vgg", "other"):
        for seed in (0, 9):
            with pytest.raises(InputError, match=r"not the 30 of .*use another store"):
                store.add(pool, seed, logits, targets[::-1], **KNOWN)
            with pytest.raises(InputError, match="comes with 29 targets"):
                store.add(pool, seed, logits[1:], targets[1:], **KNOWN)
    with pytest.raises(InputError, match="its classes is '6', and the pool's '5'"):
        store.add("vgg", 9, make(classes=6)[0], targets, **KNOWN)
    assert contents(store.path) == before


@pytest.mark.parametrize(
    "name",
    [
        *("../x", "/tmp/x", "", ".", "..", ".x", "a/b", "a\\b", "a\0b", "a b"),
        *("n" * 101, "é", "a\n", 3, None),
    ],
)
def test_names_that_would_leave_the_store_are_refused(tmp_path, name):
    store = Store(tmp_path / "store")
    for call in (
        lambda: store.add(name, 0, *make()),
        lambda: store.seeds(name),
        lambda: store.metadata(name, 0),
    ):
        with pytest.raises(InputError, match=r"pool name .* cannot be"):
            call()
    assert list(tmp_path.iterdir()) == []


def test_names_at_the_limit_are_taken(tmp_path):
    for name in ("n" * 100, "-a.B_c+1-"):
        assert Store(tmp_path).add(name, 10**18 - 1, *make())
        assert Store(tmp_path).seeds(name) == (10**18 - 1,)


@pytest.mark.parametrize("seed", [-1, 1.5, "x", None, True, 10**18, "../1"])
def test_seeds_that_are_no_numbers_are_refused(tmp_path, seed):
    with pytest.raises(InputError, match=r"seed is .*; give a whole number"):
        Store(tmp_path).add("a", seed, *make())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"size": 0}, "size is 0"),
        ({"width": -1}, "width is -1"),
        ({"multiply_adds": 1.5}, "multiply_adds is 1.5"),
        ({"dtype": "float8"}, "dtype is 'float8'.*'float16'"),
        ({"dtype": "float16", "sketch": True}, "dtype is 'float16'"),
        ({"recipe": "\ud800"}, "a/0 is no Unicode text"),
        ({"extra": {"\udfff": "x"}}, "a/0 is no Unicode text"),
    ],
)
def test_what_cannot_be_said_of_a_network_is_refused(tmp_path, known, message):
    with pytest.raises(InputError, match=message):
        Store(tmp_path).add("a", 0, *make(), **known)
    assert list(tmp_path.iterdir()) == []


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("logits", "targets", "message"),
    [
        (np.full((3, 2), np.nan), [0, 1, 0], "logit of object 0, class 0 is nan"),
        ([[1, 2], [3, -np.inf]], [0, 1], "object 1, class 1 is -inf"),
        (np.full((2, 2), 1e300), [0, 1], "1e\\+300, which is no float32 number"),
        (np.zeros(3), [0, 1, 0], r"logits of shape \(3,\)"),
        (np.zeros((3, 2)), [0, 1], r"targets of shape \(2,\)"),
        (np.zeros((3, 2)), [[0], [1], [0]], r"targets of shape \(3, 1\)"),
        (np.zeros((2, 2)), [0, 2], "2 classes and targets up to 2"),
        (np.zeros((2, 2)), [0, -1], "negative class -1 at object 1"),
        (np.zeros((2, 2)), [0, 0.5], "targets are integers"),
        (np.zeros((2, 1)), [0, 0], "has 1 classes"),
        (np.array([["a", "b"]]), [0], "not numbers"),
        (np.zeros((0, 2)), [], "nothing was recorded of a/0"),
        (softmax(make()[0]), make()[1], "a/0 holds probabilities"),
    ],
)
def test_predictions_that_cannot_be_are_refused(tmp_path, logits, targets, message):
    for sketch in (False, True):
        with pytest.raises(InputError, match=message) as caught:
            Store(tmp_path).add("a", 0, logits, targets, sketch=sketch)
        assert "a/0" in str(caught.value)
        assert list(tmp_path.iterdir()) == []


def test_logits_beyond_float16_are_refused_there_alone(tmp_path):
    logits, targets = make()
    logits[4, 2] = 1e5
    with pytest.raises(InputError, match=r"object 4, class 2 .*record in float32"):
        Store(tmp_path).add("a", 0, logits, targets, dtype="float16")
    assert Store(tmp_path).add("a", 0, logits, targets)


def test_batches_of_different_classes_are_refused(tmp_path):
    recording = Store(tmp_path).record("a", seed=0)
    recording.update(*make())
    with pytest.raises(InputError, match="from object 30 on has 4 classes"):
        recording.update(*make(classes=4))
    assert list(tmp_path.iterdir()) == []


def test_nothing_recorded_is_an_error(tmp_path):
    with (
        pytest.raises(InputError, match=r"nothing was recorded of a/0; call update"),
        Store(tmp_path).record("a", seed=0),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_single_objects_of_two_classes_that_sum_to_one_are_no_probabilities(tmp_path):
    """A last batch of one row is no ground to take logits for probabilities."""
    logits, targets = make(objects=257, classes=2)
    logits[256] = 0.25, 0.75
    assert Store(tmp_path).add("a", 0, logits[:256], targets[:256])
    with Store(tmp_path / "b").record("a", seed=0, sketch=True) as r:
        r.update(logits[:256], targets[:256])
        r.update(logits[256:], targets[256:])
    assert r.written


# Whole or not at all.


def fail_after(call, *args):
    call(*args)
    raise ZeroDivisionError


def test_an_exception_in_a_recording_leaves_nothing(tmp_path, store):
    before = contents(store.path)
    for there in (Store(tmp_path / "new"), store):
        recording = there.record("x", seed=0)
        with pytest.raises(ZeroDivisionError), recording:
            fail_after(recording.update, *make())
        assert not recording.written
    assert not (tmp_path / "new").exists()
    assert contents(store.path) == before


def test_a_second_writer_of_a_network_changes_nothing(store):
    before = contents(store.path)
    assert store.add("vgg", 1, *make(99), **KNOWN) is False
    with store.record("vgg", seed=1, **KNOWN) as r:
        r.update(*make(98))
    assert r.written is False
    assert contents(store.path) == before


def test_a_writer_that_loses_the_race_changes_nothing(store, monkeypatch):
    """The other writer's file appears between the look and the link."""
    first, link = store.path / "pools/vgg/7.safetensors", os.link

    def late(hidden, path):
        shutil.copy(store.path / "pools/vgg/1.safetensors", first)
        link(hidden, path)

    monkeypatch.setattr(os, "link", late)
    assert store.add("vgg", 7, *make(7), **KNOWN) is False
    assert first.read_bytes() == (store.path / "pools/vgg/1.safetensors").read_bytes()
    assert store.partials() == ()


def test_a_link_whose_answer_was_lost_counts(store, monkeypatch):
    link = os.link

    def answered_twice(hidden, path):
        link(hidden, path)
        link(hidden, path)

    monkeypatch.setattr(os, "link", answered_twice)
    assert store.add("vgg", 7, *make(7), **KNOWN) is True
    assert store.verify() == ()


def test_without_hard_links_files_are_renamed(tmp_path, monkeypatch):
    def none(hidden, path):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    store = Store(tmp_path)
    assert store.add("a", 0, *make(0)) is True
    assert store.add("a", 0, *make(1)) is False
    assert np.array_equal(store.read().rows[0][:], make(0)[0])
    assert store.verify() == ()
    assert store.partials() == ()


@pytest.mark.parametrize("call", ["link", "fsync"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EIO])
def test_a_disk_that_takes_nothing_is_named(store, monkeypatch, call, code):
    before = contents(store.path)

    def fail(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(InputError, match=os.strerror(code)) as caught:
        store.add("vgg", 9, *make(9), **KNOWN)
    assert str(store.path / "pools/vgg/9.safetensors") in str(caught.value)
    assert "\n" not in str(caught.value)
    monkeypatch.undo()
    assert contents(store.path) == before


def test_a_store_where_a_file_lies_is_named(tmp_path):
    (tmp_path / "file").write_text("here")
    with pytest.raises(InputError, match="is a file, where a folder"):
        Store(tmp_path / "file").add("a", 0, *make())
    with pytest.raises(InputError, match="is no store"):
        Store.open(tmp_path / "file")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do anything")
def test_a_folder_without_permission_is_named(store):
    folder = store.path / "pools/vgg"
    folder.chmod(0)
    try:
        for call in (store.pools, store.read, lambda: store.seeds("vgg")):
            with pytest.raises(InputError, match="Permission denied"):
                call()
    finally:
        folder.chmod(0o755)


WRITER = """
import sys
import numpy as np
from ensize.stores import Store

store, first, count = Store(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
targets = np.arange(200) % 5
print("ready", flush=True)
sys.stdin.readline()
for seed in range(first, first + count):
    logits = np.random.default_rng(seed % 20).normal(0, 3, (200, 5))
    written = store.add("a", seed % 20, logits, targets, size=100, recipe="r")
    print(seed % 20 if written else "-", flush=True)
"""


def start_writer(path, first, count):
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(first), str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def same_networks(one, other):
    a, b = one.read(), other.read()
    pairs = zip(a.rows, b.rows, strict=True)
    return (
        (a.labels, a.pool) == (b.labels, b.pool)
        and np.array_equal(a.targets, b.targets)
        and all(np.array_equal(x[:], y[:]) for x, y in pairs)
        and one.pools() == other.pools()
    )


def alone(tmp_path):
    store, targets = Store(tmp_path / "alone"), np.arange(200) % 5
    for seed in range(20):
        logits = np.random.default_rng(seed).normal(0, 3, (200, 5))
        store.add("a", seed, logits, targets, size=100, recipe="r")
    return store


def test_eight_writers_make_the_store_that_one_makes(tmp_path):
    """Each network is written by exactly one of them, and every one is told."""
    store = Store(tmp_path / "together")
    writers = [start_writer(store.path, 2 * i, 20) for i in range(8)]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    written = []
    for writer in writers:
        writer.stdin.write("\n")
        writer.stdin.flush()
    for writer in writers:
        out, _ = writer.communicate()
        assert writer.returncode == 0
        assert len(out.split()) == 20
        written += [int(each) for each in out.split() if each != "-"]
    assert sorted(written) == list(range(20))
    assert store.verify() == ()
    assert store.partials() == ()
    assert same_networks(store, alone(tmp_path))


def test_killed_writers_damage_nothing_and_lose_nothing(tmp_path):
    """SIGKILL at random moments; then a writer makes the store complete."""
    store, luck = Store(tmp_path / "store"), random.Random(5)
    said = set()
    for _ in range(10):
        pair = [start_writer(store.path, luck.randrange(20), 20) for _ in range(2)]
        for writer in pair:
            writer.stdout.readline()
            writer.stdin.write("\n")
            writer.stdin.flush()
        for writer in pair:
            time.sleep(luck.random() * 0.006)
            writer.send_signal(signal.SIGKILL)
            out, _ = writer.communicate()
            said |= {int(each) for each in out.split() if each != "-"}
        assert store.verify() == ()
        if store.seeds("a"):
            assert store.read().networks == len(store.seeds("a"))
        assert said <= set(store.seeds("a"))
        if len(store.seeds("a")) > 15:
            shutil.rmtree(store.path)
            said = set()
    assert start_writer(store.path, 0, 20).communicate("\n")[0].startswith("ready")
    assert store.verify() == ()
    left = len(store.partials()) - sum(
        ".partial" in each.name for each in store.path.iterdir()
    )
    assert store.pools()[0].partial == left
    for each in store.partials():
        each.unlink()
    assert same_networks(store, alone(tmp_path))


# What was damaged is noticed.


@pytest.mark.parametrize("sketch", [False, True])
def test_a_flipped_bit_anywhere_in_a_network_is_noticed(tmp_path, sketch):
    store = Store(tmp_path)
    for seed in range(2):
        store.add("a", seed, *make(seed), sketch=sketch, **KNOWN)
    path = tmp_path / "pools/a/1.safetensors"
    whole = path.read_bytes()
    steps = range(0, len(whole), 50 if not sketch else 200)
    for position in {*steps, *range(16), len(whole) - 1}:
        for bit in (0, 5):
            broken = bytearray(whole)
            broken[position] ^= 1 << bit
            path.write_bytes(broken)
            damage = store.verify()
            assert [each.path for each in damage] == ["pools/a/1.safetensors"]
            assert str(path) in damage[0].reason
            assert "\n" not in damage[0].reason
    path.write_bytes(whole)
    assert store.verify() == ()


@pytest.mark.parametrize("name", ["targets.npy", "pools/vgg/pool.json"])
def test_a_flipped_bit_beside_the_networks_is_noticed(store, name):
    path = store.path / name
    whole = path.read_bytes()
    for position in range(0, len(whole), 5):
        broken = bytearray(whole)
        broken[position] ^= 1 << (position % 7)
        path.write_bytes(broken)
        damage = store.verify()
        assert [each.path for each in damage] == [name], (position, damage)
        assert str(path) in damage[0].reason
    path.write_bytes(whole)
    assert store.verify() == ()


@pytest.mark.parametrize("kept", [0, 1, 7, 8, 9, 100, 600, -4, -1])
def test_a_truncated_network_is_named(store, kept):
    path = store.path / "pools/vgg/1.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    assert [each.path for each in store.verify()] == ["pools/vgg/1.safetensors"]
    with pytest.raises(InputError, match=r"vgg/1.safetensors is truncated, damaged"):
        store.read()
    assert store.read("vgg", [0, 2]).networks == 2


def test_a_file_that_shrinks_in_use_is_an_error_and_not_the_end(store):
    """A memory map would end the process here (SIGBUS)."""
    read = store.read()
    os.truncate(store.path / "pools/vgg/1.safetensors", 1000)
    with pytest.raises(InputError, match=r"1.safetensors ends before row 30"):
        read.rows[1][:]
    (store.path / "pools/vgg/1.safetensors").unlink()
    with pytest.raises(InputError, match=r"1.safetensors cannot be read \(No such"):
        read.rows[1][:]


def test_truncated_and_lost_targets_are_named(store):
    path = store.path / "targets.npy"
    whole = path.read_bytes()
    for kept in (0, 5, 60, 130, -8):
        path.write_bytes(whole[:kept])
        for call in (store.read, lambda: store.add("vgg", 9, *make(9), **KNOWN)):
            with pytest.raises(InputError, match=r"targets.npy"):
                call()
        assert [each.path for each in store.verify()] == ["targets.npy"]
    path.unlink()
    with pytest.raises(InputError, match=r"targets.npy is missing; add one of"):
        store.read()
    assert [each.path for each in store.verify()] == ["targets.npy"]
    with pytest.raises(InputError, match="its targets is"):
        store.add("vgg", 9, make()[0], make()[1][::-1], **KNOWN)
    store.add("vgg", 9, *make(9), **KNOWN)
    assert path.read_bytes() == whole


def test_a_file_under_anothers_name_is_noticed(store):
    folder = store.path / "pools/vgg"
    shutil.copy(folder / "1.safetensors", folder / "8.safetensors")
    shutil.copy(folder / "1.safetensors", folder / "best.safetensors")
    shutil.copy(folder / "1.safetensors", folder / "007.safetensors")
    assert store.seeds("vgg") == (0, 1, 2, 8)
    assert {each.path: each.reason.count("seed") for each in store.verify()} == {
        "pools/vgg/8.safetensors": 1,
        "pools/vgg/best.safetensors": 1,
        "pools/vgg/007.safetensors": 1,
    }
    with pytest.raises(InputError, match="by itself it is seed '1' of 'vgg'"):
        store.read()


def test_a_network_of_another_store_is_noticed(store, tmp_path):
    other = Store(tmp_path / "other")
    logits, targets = make(5)
    other.add("vgg", 5, logits, targets[::-1], **KNOWN)
    other.add("vgg", 6, logits, targets[::-1], **KNOWN | {"extra": {"a": "b"}})
    name = "pools/vgg/5.safetensors"
    shutil.copy(other.path / name, store.path / name)
    assert [each.path for each in store.verify()] == [name]
    with pytest.raises(InputError, match=r"5.safetensors is not as it was written"):
        store.read()


def test_targets_of_another_store_are_noticed(store, tmp_path):
    np.save(store.path / "targets.npy", make()[1][::-1])
    assert [each.path for each in store.verify()] == ["targets.npy"]
    with pytest.raises(InputError, match="recorded with other targets"):
        store.read()


def test_a_foreign_safetensors_file_is_noticed(store):
    save_file({"logits": make()[0]}, store.path / "pools/vgg/5.safetensors")
    assert [each.path for each in store.verify()] == ["pools/vgg/5.safetensors"]
    with pytest.raises(InputError, match=r"store format None.*reads '1'"):
        store.read()


def test_links_that_lead_out_of_the_store_are_not_followed(store, tmp_path):
    secret, outside = tmp_path / "secret.safetensors", tmp_path / "outside"
    shutil.copy(store.path / "pools/vgg/1.safetensors", secret)
    shutil.copytree(store.path / "pools/vgg", outside)
    before = contents(outside)
    (store.path / "pools/vgg/5.safetensors").symlink_to(secret)
    (store.path / "pools/linked").symlink_to(outside)
    assert store.seeds("vgg") == (0, 1, 2)
    assert [each.name for each in store.pools()] == ["vgg"]
    assert {each.path for each in store.verify()} == {
        "pools/vgg/5.safetensors",
        "pools/linked",
    }
    for call in (
        lambda: store.add("linked", 9, *make(9), **KNOWN),
        lambda: store.add("vgg", 5, *make(5), **KNOWN),
        lambda: store.seeds("linked"),
    ):
        with pytest.raises(InputError, match="it is a link, which may lead out"):
            call()
    assert contents(outside) == before


def rewritten(path, **changes):
    """Write a network's file with other metadata and a checksum that fits."""
    network = Network.open(path)
    rows, said = network.rows[:], {**network.metadata, **changes}
    said = {key: each for key, each in said.items() if each is not None}
    save_file({"logits": rows}, path, said)
    try:
        said["checksum"] = Network.open(path).checksum()
    except InputError:
        return
    save_file({"logits": rows}, path, said)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pool": "../../x"}, "cannot be the name of a pool"),
        ({"pool": "other"}, "by itself it is seed '1' of 'other'"),
        ({"seed": "2"}, "by itself it is seed '2'"),
        ({"seed": None}, "by itself it is seed None"),
        ({"objects": "1000000000000000000"}, "not those that its metadata"),
        ({"objects": "x"}, "metadata cannot be read"),
        ({"classes": "-1"}, "metadata cannot be read"),
        ({"classes": None}, "metadata cannot be read"),
        ({"size": "9" * 5000}, "metadata cannot be read"),
        ({"size": "1001"}, "its size is '1001'"),
        ({"width": "nan"}, "metadata cannot be read"),
        ({"form": "sketch", "grid": "0 1 4"}, "not those that its metadata"),
        ({"form": "sketch", "grid": "0 1000000000000000000"}, "grid"),
        ({"form": "sketch", "grid": "1 2"}, "its grid cannot be read"),
        ({"form": "sketch", "grid": "a"}, "its grid cannot be read"),
        ({"form": "sketch", "grid": "0 1 0"}, "its grid"),
        ({"form": "sketch"}, "its grid cannot be read"),
        ({"form": "other"}, "not those that its metadata"),
        ({"dtype": "float16"}, "not those that its metadata"),
        ({"format": "2"}, "store format '2'"),
        ({"targets": None}, "its targets is None"),
    ],
)
def test_metadata_that_lie_are_named(store, changes, message):
    path = store.path / "pools/vgg/1.safetensors"
    rewritten(path, **changes)
    with pytest.raises(InputError, match=message):
        store.read()
    damage = store.verify()
    assert [each.path for each in damage] == ["pools/vgg/1.safetensors"]


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"{}", b"null", b"\xff", b"[" * 10**6, b'{"checksum": []}', b'"a"'],
)
def test_a_claim_that_is_none_is_derived_again(store, text):
    path = store.path / "pools/vgg/pool.json"
    path.write_bytes(text)
    assert [each.path for each in store.verify()] == ["pools/vgg/pool.json"]
    assert store.read().pool.size == 1000
    assert store.pools()[0].size == 1000
    for each in path.parent.glob("*.safetensors"):
        each.unlink()
    with pytest.raises(InputError, match=r"pool.json is not as it was.*delete it"):
        store.add("vgg", 0, *make(), **KNOWN)


def test_a_claim_of_another_pool_is_noticed(store):
    store.add("wide", 0, *make(), size=4000)
    folders = store.path / "pools"
    shutil.copy(folders / "wide/pool.json", folders / "vgg/pool.json")
    assert [each.path for each in store.verify()] == ["pools/vgg/pool.json"]
    claim = json.loads((folders / "wide/pool.json").read_text())
    assert claim["pool"] == "wide"
    assert store.read("vgg").pool.size == 1000


@pytest.fixture(scope="module")
def playground(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("fuzz"))
    for seed in range(2):
        store.add("a", seed, *make(seed, objects=3, classes=2))
    return store, (store.path / "pools/a/1.safetensors").read_bytes()


@settings(max_examples=300, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
def test_no_bytes_make_a_store_fail_otherwise_than_by_a_sentence(playground, data):
    store, whole = playground
    path = store.path / data.draw(
        st.sampled_from(["pools/a/1.safetensors", "pools/a/pool.json", "targets.npy"])
    )
    whole = path.read_bytes()
    mutated = bytearray(whole)
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(whole) - 1))
        new = data.draw(st.binary(max_size=4))
        mutated[at : at + data.draw(st.integers(0, 4))] = new
    content = data.draw(st.one_of(st.just(bytes(mutated)), st.binary(max_size=200)))
    try:
        path.write_bytes(content)
        for call in (store.pools, store.read, lambda: store.seeds("a")):
            with contextlib.suppress(InputError):
                call()
        assert all(each.reason.isprintable() for each in store.verify())
    finally:
        path.write_bytes(whole)


# Arrays in files.


def test_arrays_in_files_read_as_slices_of_arrays_do(tmp_path):
    cube = np.arange(2 * 5 * 3, dtype=">f4").reshape(2, 5, 3)
    (tmp_path / "c").write_bytes(b"head" + cube.tobytes())
    (tmp_path / "f").write_bytes(b"head" + cube.tobytes("F"))
    strides = np.asfortranarray(cube).strides
    for array in (
        FileArray(tmp_path / "c", 4, cube.shape, cube.dtype),
        FileArray(tmp_path / "f", 4, cube.shape, cube.dtype, strides=strides),
    ):
        assert array.dtype == np.dtype("=f4")
        assert array.nbytes == cube.nbytes
        for rows in (slice(None), slice(1, 1), slice(0, 9), slice(-1, None)):
            assert np.array_equal(array[rows], cube[rows])
        for part, expected in zip(array.parts(), cube, strict=True):
            for rows in (slice(None), slice(1, 4), slice(4, 2), slice(3, None)):
                assert np.array_equal(part[rows], expected[rows])
                assert part[rows].dtype == np.dtype("=f4")
                assert part[rows].flags.writeable
        with pytest.raises(IndexError, match="without a step"):
            array[::2]
        os.truncate(array.path, 30)
        with pytest.raises(InputError, match="ends before row 2"):
            array[:]


def test_bfloat16_is_read_as_float32(tmp_path):
    logits = make()[0]
    halves = (logits.view(np.uint32) >> 16).astype(np.uint16)
    path = tmp_path / "b.safetensors"
    save_file({"logits": halves}, path)
    path.write_bytes(path.read_bytes().replace(b'"U16"', b'"BF16"', 1)[:])
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little") + 1
    path.write_bytes(length.to_bytes(8, "little") + content[8:])
    _, arrays = open_safetensors(path)
    assert arrays["logits"].dtype == np.float32
    expected = (halves.astype(np.uint32) << 16).view(np.float32)
    assert np.array_equal(arrays["logits"][:], expected)
    np.testing.assert_allclose(expected, logits, 2**-7)


def test_no_warning_is_given_on_the_way(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Store(tmp_path).add("a", 0, *make(), sketch=True)
        assert Store(tmp_path).read().grid.nodes >= Grid(-5, 5).nodes
