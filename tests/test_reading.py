import io
import os
import pickle
import struct
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from ensize import InputError, Predictions, Sketch
from ensize.reading import load
from ensize.stores import FileArray, Store

NETWORKS, OBJECTS, CLASSES = 3, 20, 4


def make(kind="f4", networks=NETWORKS, objects=OBJECTS, classes=CLASSES):
    rng = np.random.default_rng(0)
    cube = rng.normal(0, 3, (networks, objects, classes)).astype(kind)
    return cube, np.arange(objects) % classes


CUBE, TARGETS = make()


def write(path, array, **others):
    """Write predictions in the format that the name ends in."""
    if path.suffix == ".npy":
        np.save(path, array)
    elif path.suffix == ".npz":
        np.savez(path, logits=array, **others)
    else:
        native = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
        save_file({"logits": native, **others}, path)
    return path


def refusal(*args, **kwargs):
    """The sentence with which these are refused."""
    with pytest.raises(InputError) as caught:
        load(*args, **kwargs)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


# Every format.


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors"])
@pytest.mark.parametrize("kind", ["<f2", "<f4", "<f8", ">f2", ">f4", ">f8", "i2"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_what_was_saved_is_what_is_loaded(tmp_path, suffix, kind, order):
    cube = np.array(make(kind)[0], order=order)
    several = load(write(tmp_path / f"all{suffix}", cube), targets=TARGETS)
    assert several.networks == NETWORKS
    for i, rows in enumerate(several.rows):
        assert rows.dtype == np.dtype(kind).newbyteorder("=")
        assert rows[:].dtype.isnative
        assert np.array_equal(rows[:], cube[i])
        assert np.array_equal(rows[5:11], cube[i, 5:11])
        assert several.labels[i] == f"{tmp_path}/all{suffix}[{i}]"
    flat = np.array(cube[1], order=order)
    one = load(write(tmp_path / f"one{suffix}", flat), targets=TARGETS)
    assert one.labels == (f"{tmp_path}/one{suffix}",)
    assert np.array_equal(one.rows[0][7:], cube[1, 7:])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_compressed_npz_is_read_into_memory(tmp_path, order, method):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", method) as archive:
        for name, array in (("logits", CUBE.astype(">f4")), ("targets", TARGETS)):
            with archive.open(f"{name}.npy", "w") as member:
                np.save(member, np.array(array, order=order))
    read = load(tmp_path / "a.npz")
    for i, rows in enumerate(read.rows):
        assert np.array_equal(rows[:], CUBE[i])
    assert np.array_equal(read.targets, TARGETS)


def test_bfloat16_tensors_are_read(tmp_path):
    halves = (CUBE[0].view(np.uint32) >> 16).astype(np.uint16)
    header = (
        b'{"logits":{"dtype":"BF16","shape":[20,4],"data_offsets":[0,160]},'
        b'"scales":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[160,161]}}'
    )
    content = len(header).to_bytes(8, "little") + header + halves.tobytes() + b"0"
    (tmp_path / "a.safetensors").write_bytes(content)
    rows = load(tmp_path / "a.safetensors", targets=TARGETS).rows[0]
    assert (rows.dtype, rows[:].dtype) == (np.float32, np.float32)
    np.testing.assert_allclose(rows[:], CUBE[0], 2**-7)


def test_the_only_fitting_tensor_needs_no_name(tmp_path):
    path = tmp_path / "a.safetensors"
    save_file({"outputs": CUBE, "y": TARGETS}, path)
    assert load(path, targets=path).networks == NETWORKS
    save_file({"outputs": CUBE, "others": CUBE}, path)
    assert "has no array named 'logits', but 'others', 'outputs'; write" in refusal(
        path, targets=TARGETS
    )


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors"])
def test_files_are_not_read_whole(tmp_path, suffix):
    """40 MB on the disk take less than 1 MB of memory until they are needed."""
    cube, targets = make(networks=5, objects=20_000, classes=100)
    path = write(tmp_path / f"a{suffix}", cube)
    expected = cube[3, 500:510].copy()
    del cube
    tracemalloc.start()
    try:
        read = load(path, targets=targets)
        block = read.rows[3][500:510]
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
    assert all(isinstance(rows, FileArray) for rows in read.rows)
    assert np.array_equal(block, expected)


def test_old_and_wide_npy_versions_are_read(tmp_path):
    path = tmp_path / "a.npy"
    for version in ((1, 0), (2, 0), (3, 0)):
        with path.open("wb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.lib.format.write_array(file, CUBE, version)
        assert np.array_equal(load(path, targets=TARGETS).rows[2][:], CUBE[2])


# Several files, patterns, stores, memory.


def test_files_are_put_together_in_the_order_given(tmp_path):
    paths = [
        write(tmp_path / "b.npz", CUBE[2]),
        write(tmp_path / "a.npy", CUBE[:2]),
        write(tmp_path / "c.safetensors", CUBE[1]),
    ]
    for source in (paths, tuple(map(str, paths)), iter(paths)):
        read = load(source, targets=TARGETS)
        names = ["b.npz", "a.npy[0]", "a.npy[1]", "c.safetensors"]
        assert list(read.labels) == [str(tmp_path / name) for name in names]
        for rows, i in zip(read.rows, (2, 0, 1, 1), strict=True):
            assert np.array_equal(rows[:], CUBE[i])


def test_the_files_of_a_pattern_come_in_natural_order(tmp_path, monkeypatch):
    for i in (10, 9, 1):
        write(tmp_path / f"net{i}.npy", CUBE[0])
    np.save(tmp_path / "targets.npy", TARGETS)
    read = load(str(tmp_path / "*.npy"), targets=tmp_path / "targets.npy")
    names = [Path(label).name for label in read.labels]
    assert names == ["net1.npy", "net9.npy", "net10.npy"]
    monkeypatch.chdir(tmp_path)
    assert load("net?.npy", targets="targets.npy").labels == ("net1.npy", "net9.npy")
    assert load("**/net1.npy", targets="targets.npy").labels == ("net1.npy",)
    assert refusal("x*.npy", targets="targets.npy") == (
        "x*.npy matches no file; correct the pattern"
    )
    assert "matches no file" in refusal("targets*", targets="targets.npy")
    write(tmp_path / "a[1].npy", CUBE[0])
    assert load("a[1].npy", targets=TARGETS).labels == ("a[1].npy",)


def test_arrays_in_memory_are_taken(tmp_path):
    for source in (CUBE, list(CUBE), CUBE.tolist(), iter(CUBE)):
        read = load(source, targets=TARGETS)
        assert read.labels == ("network 0", "network 1", "network 2")
        assert np.array_equal(read.rows[1][:], CUBE[1])
    assert "these arrays came without targets" in refusal(CUBE)
    path = write(tmp_path / "a.npy", CUBE)
    assert "stands among arrays" in refusal([CUBE[0], path], targets=TARGETS)
    assert "there are no predictions" in refusal([], targets=TARGETS)


def test_the_kind_is_passed_on(tmp_path):
    shares = np.exp(CUBE) / np.exp(CUBE).sum(axis=2, keepdims=True)
    path = write(tmp_path / "a.npy", shares)
    assert load(path, targets=TARGETS, kind="probabilities").kind == "probabilities"
    assert f"{path}[0] holds probabilities" in refusal(path, targets=TARGETS)
    assert "did you mean 'logits'" in refusal(path, targets=TARGETS, kind="logit")


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "store")
    for seed in range(NETWORKS):
        store.add("a", seed, CUBE[seed], TARGETS, size=100)
    return store


def test_a_store_is_loaded(store):
    for source in (store, store.path, str(store.path), [store.path]):
        read = load(source)
        assert read.labels == ("a/0", "a/1", "a/2")
        assert read.pool.size == 100
        assert np.array_equal(read.targets, TARGETS)
    assert load(store, targets=TARGETS).networks == NETWORKS
    assert "speaks of other targets than targets" in refusal(
        store, targets=1 - TARGETS // 2
    )
    assert "leave --kind probabilities away" in refusal(store, kind="probabilities")


def test_a_pool_of_a_store_is_chosen(store):
    store.add("b", 0, CUBE[0], TARGETS, size=200)
    assert load(store, pool="b").pool.size == 200
    assert "choose one with --pool NAME" in refusal(store)
    assert "not one of 'a', 'b'" in refusal(store, pool="c")
    assert "only a store has pools" in refusal(CUBE, targets=TARGETS, pool="a")


def test_a_file_of_a_store_is_loaded_with_the_stores_targets(store, tmp_path):
    path = store.path / "pools/a/1.safetensors"
    read = load(path)
    assert read.labels == (str(path),)
    assert read.pool.size == 100
    assert np.array_equal(read.targets, TARGETS)
    assert np.array_equal(read.rows[0][:], CUBE[1])
    elsewhere = tmp_path / "elsewhere.safetensors"
    elsewhere.write_bytes(path.read_bytes())
    assert load(elsewhere, targets=TARGETS).networks == 1
    assert "came without targets" in refusal(elsewhere)
    assert "elsewhere.safetensors speaks of other targets" in refusal(
        elsewhere, targets=TARGETS[::-1]
    )


def test_a_store_of_sketches_is_loaded(tmp_path):
    store = Store(tmp_path / "store")
    for seed in range(NETWORKS):
        store.add("a", seed, CUBE[seed], TARGETS, sketch=True)
    whole = load(store)
    assert isinstance(whole, Sketch)
    file = store.path / "pools/a/1.safetensors"
    one = load(file)
    assert isinstance(one, Sketch)
    assert np.array_equal(one.rows[0][:], whole.rows[1][:])
    assert (one.grid, one.classes) == (whole.grid, CLASSES)
    assert load([store, file]).networks == NETWORKS + 1
    other = write(tmp_path / "a.npy", CUBE)
    assert "load sketches and logits apart" in refusal([store, other])


# Targets.


def test_targets_come_from_wherever_they_are(tmp_path):
    path = write(tmp_path / "a.npy", CUBE)
    np.save(tmp_path / "t.npy", TARGETS.astype(">i2"))
    np.savez(tmp_path / "t.npz", targets=TARGETS.astype("u1"))
    save_file({"targets": TARGETS, "x": TARGETS + 1}, tmp_path / "t.safetensors")
    save_file({"labels": TARGETS.astype("i4")}, tmp_path / "u.safetensors")
    lines = "\n".join(map(str, TARGETS))
    (tmp_path / "t.txt").write_text(lines + "\n\n")
    (tmp_path / "t.csv").write_bytes(
        b"\xef\xbb\xbf" + lines.replace("\n", "\r\n").encode()
    )
    for name in ("t.npy", "t.npz", "t.safetensors", "u.safetensors", "t.txt", "t.csv"):
        read = load(path, targets=tmp_path / name)
        assert np.array_equal(read.targets, TARGETS)
        assert read.targets.dtype == np.int64
    assert np.array_equal(load(path, targets=TARGETS.tolist()).targets, TARGETS)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_targets_beside_the_predictions_must_agree(tmp_path, suffix):
    one = write(tmp_path / f"1{suffix}", CUBE[0], targets=TARGETS)
    two = write(tmp_path / f"2{suffix}", CUBE[0], targets=TARGETS)
    bare = write(tmp_path / f"3{suffix}", CUBE[0])
    other = write(tmp_path / f"4{suffix}", CUBE[0], targets=TARGETS[::-1].copy())
    assert load([bare, one, two]).networks == 3
    assert load(one, targets=TARGETS).networks == 1
    sentence = refusal([bare, one, other])
    assert f"{other} speaks of other targets than {one}" in sentence
    assert "speaks of other targets" in refusal(one, targets=TARGETS[::-1])
    assert refusal(bare) == (
        f"{bare} came without targets; give the true classes with --targets FILE"
        " (targets= in Python)"
    )


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (TARGETS[1:], "t.npy of 19; both must be of the same objects"),
        (TARGETS + 1, "t.npy has class 4 at object 3, but"),
        (TARGETS - 1, "t.npy has the negative class -1 at object 0"),
        (TARGETS + 0.5, "t.npy holds numbers of type float64 (entry 0 is 0.5)"),
        (TARGETS[:, None], "t.npy has shape (20, 1); targets are one true class"),
        (CUBE, "t.npy has shape (3, 20, 4); targets are one true class"),
        (TARGETS[:0], "t.npy is empty"),
        (TARGETS[0], "t.npy has shape ()"),
        (TARGETS.astype("S1"), "t.npy holds |S1"),
    ],
)
def test_targets_that_cannot_be_are_refused(tmp_path, targets, message):
    path = write(tmp_path / "a.npy", CUBE)
    np.save(tmp_path / "t.npy", targets)
    assert message in refusal(path, targets=tmp_path / "t.npy")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0\n1.5\n", "has '1.5' in line 2"),
        ("target\n0\n", "has 'target' in line 1"),
        ("0\n\n1", "has '' in line 2"),
        ("0,1,2", "has '0,1,2' in line 1"),
        ("1_0", "has '1_0' in line 1"),
        ("9" * 5000, "in line 1"),
        (" \n ", "has '' in line 1"),
        ("-1\n0", "negative class -1"),
        ("\x00\ud800".encode("utf-8", "surrogatepass"), "in line 1"),
        ("", "is empty"),
    ],
)
def test_text_that_holds_no_targets_is_refused(tmp_path, text, message):
    path = tmp_path / "t.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    sentence = refusal(CUBE, targets=path)
    assert message in sentence
    assert str(path) in sentence


# What cannot be loaded.


def test_a_missing_file_is_named_with_its_neighbor(tmp_path):
    write(tmp_path / "logits.npy", CUBE)
    sentence = refusal(tmp_path / "logit.npy", targets=TARGETS)
    assert sentence == (
        f"{tmp_path}/logit.npy does not exist; did you mean {tmp_path}/logits.npy?"
    )
    for path in (
        tmp_path / "no/x.npy",
        "a\0b.npy",
        tmp_path / ("x" * 300 + ".npy"),
        "",
    ):
        refusal(path, targets=TARGETS)
    assert "does not exist" in refusal(CUBE, targets=tmp_path / "t.npy")


def test_a_folder_that_is_no_store_is_named(tmp_path):
    write(tmp_path / "a.npy", CUBE)
    sentence = refusal(tmp_path, targets=TARGETS)
    assert f"{tmp_path} is no store; a store is a folder with pools/" in sentence


@pytest.mark.parametrize(
    "name",
    [
        *("a.pt", "a.pth", "a.pkl", "a.pickle", "a.ckpt", "a.bin", "a.joblib"),
        *("a.csv", "a.txt", "a.h5", "a", "a.NPX"),
    ],
)
def test_other_formats_are_refused_with_a_way_out(tmp_path, name):
    (tmp_path / name).write_bytes(b"content")
    sentence = refusal(tmp_path / name, targets=TARGETS)
    assert name in sentence
    assert "np.save" in sentence
    assert ("pickle" in sentence) == (name[2:4] in ("pt", "pk", "pi", "ck", "bi", "jo"))


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("unpickled",)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors"])
def test_nothing_is_ever_unpickled(tmp_path, monkeypatch, suffix):
    monkeypatch.chdir(tmp_path)
    objects = np.empty((2, 2), object)
    objects[:] = Bomb()
    path = tmp_path / f"a{suffix}"
    path.write_bytes(pickle.dumps([Bomb()]))
    refusal(path, targets=TARGETS)
    if suffix != ".safetensors":
        path = tmp_path / f"b{suffix}"
        save = np.save if suffix == ".npy" else np.savez
        save(path, **{"arr" if suffix == ".npy" else "logits": objects})
        assert "Python objects, which are never unpickled" in refusal(
            path, targets=TARGETS
        )
    assert not Path("unpickled").exists()


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors"])
def test_files_cut_short_are_named(tmp_path, suffix):
    path = write(tmp_path / f"a{suffix}", CUBE)
    whole = path.read_bytes()
    for kept in (0, 1, 5, 9, 60, 127, 128, 300, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:kept])
        sentence = refusal(path, targets=TARGETS)
        assert str(path) in sentence
        assert "empty" in sentence or "truncated" in sentence


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors"])
def test_other_shapes_are_named(tmp_path, suffix):
    for shape in ((5,), (2, 3, 4, 5), (), (0, 4), (20, 0), (0, 20, 4), (3, 0, 4)):
        path = write(tmp_path / f"a{suffix}", np.zeros(shape, np.float32))
        sentence = refusal(path, targets=TARGETS)
        assert str(path) in sentence
        assert "(objects, classes)" in sentence or "no array named" in sentence
    path = write(tmp_path / f"a{suffix}", np.zeros((100_001, 1, 2), np.int8))
    assert "would be 100001 networks" in refusal(path, targets=[0])


def test_files_of_other_objects_or_classes_are_named(tmp_path):
    one = write(tmp_path / "1.npy", CUBE[0])
    short = write(tmp_path / "2.npy", CUBE[0, 1:])
    narrow = write(tmp_path / "3.npy", CUBE[0, :, 1:])
    assert f"{short} speaks of 19 objects" in refusal([one, short], targets=TARGETS)
    assert f"{narrow} has 3 classes, but {one} has 4" in refusal(
        [one, narrow], targets=TARGETS
    )


def test_infinite_logits_are_named_with_their_file(tmp_path):
    cube = CUBE.copy()
    cube[1, 7, 2] = np.nan
    read = load(write(tmp_path / "a.npy", cube), targets=TARGETS)
    with pytest.raises(InputError, match=r"a.npy\[1\] has nan at object 7, class 2"):
        read.logits(1, 0, OBJECTS)


def test_keys_of_an_npz_are_listed(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, outputs=CUBE, y=TARGETS)
    assert f"{path} has no array named 'logits', but 'outputs', 'y'" in refusal(path)
    assert "no array named 'targets'" in refusal(CUBE, targets=path)
    np.savez(path)
    assert "but none at all" in refusal(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_a_file_without_permission_is_named(tmp_path):
    path = write(tmp_path / "a.npy", CUBE)
    path.chmod(0)
    assert f"{path} cannot be read (Permission denied)" in refusal(path)


def test_a_refused_system_call_is_named(tmp_path, monkeypatch):
    path = write(tmp_path / "a.npy", CUBE)

    def fail(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", fail)
    assert f"{path} cannot be read (Permission denied)" in refusal(
        path, targets=TARGETS
    )


def test_a_pipe_is_not_waited_for(tmp_path):
    for name in ("a.npy", "a.npz", "a.safetensors", "t.txt"):
        os.mkfifo(tmp_path / name)
        given = CUBE if name == "t.txt" else tmp_path / name
        sentence = refusal(
            given, targets=tmp_path / "t.txt" if given is CUBE else TARGETS
        )
        assert "is no ordinary file" in sentence


# Headers that lie.


def npy(header, data=b"", version=b"\x01\x00"):
    text = header.encode() if isinstance(header, str) else header
    width = "<H" if version[0] == 1 else "<I"
    return b"\x93NUMPY" + version + struct.pack(width, len(text)) + text + data


def descr(shape, kind="'<f4'", order="False"):
    return f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}}}\n"


HOSTILE = {
    "10^18 elements": npy(descr("(1000000000, 1000000000)"), b"0" * 64),
    "10^18 networks": npy(descr(f"({10**18}, 1, 2)"), b"0" * 64),
    "10^18 and none": npy(descr(f"({10**18}, 0, 2)"), b"0" * 64),
    "beyond 64 bits": npy(descr(f"({10**30}, {10**30})"), b"0" * 64),
    "a product that wraps": npy(descr(f"({2**32}, {2**32})"), b"0" * 64),
    "negative": npy(descr("(-1, 4)"), b"0" * 64),
    "twice negative": npy(descr("(-2, -4)"), b"0" * 64),
    "fortran 10^18": npy(descr("(1000, 1000000, 1000000000)", order="True"), b"0" * 64),
    "no tuple": npy(descr("4"), b"0" * 64),
    "floats": npy(descr("(2.0, 4)"), b"0" * 64),
    "many dimensions": npy(descr("(1,)*99"), b"0" * 64),
    "99 dimensions": npy(descr("(" + "1," * 99 + ")"), b"0" * 64),
    "structured": npy(descr("(2, 4)", "[('a', '<f4'), ('b', '<f4')]"), b"0" * 64),
    "subarrays": npy(descr("(2, 4)", "('<f4', (2, 2))"), b"0" * 128),
    "huge subarrays": npy(descr("(2, 4)", f"('<f4', ({2**30},))"), b"0" * 64),
    "objects": npy(descr("(2, 4)", "'|O'"), b"0" * 64),
    "text": npy(descr("(2, 4)", "'<U4'"), b"0" * 128),
    "void": npy(descr("(2, 4)", "'|V0'"), b"0" * 64),
    "times": npy(descr("(2, 4)", "'<M8[s]'"), b"0" * 64),
    "complex": npy(descr("(2, 4)", "'<c8'"), b"0" * 64),
    "no type": npy(descr("(2, 4)", "'<q9'"), b"0" * 64),
    "an expression": npy(descr("(2, 4)", "__import__('os').mkdir('x')"), b"0" * 64),
    "deep": npy("(" * 9000, b"0" * 64),
    "deep signs": npy("-" * 9000 + "1", b"0" * 64),
    "deep lists": npy("[" * 150 + "]" * 150, b"0" * 64),
    "open text": npy("{'descr': '''", b"0" * 64),
    "an escape": npy(r"{'descr': '\d'}", b"0" * 64),
    "no dictionary": npy("3", b"0" * 64),
    "unhashable": npy("{[]: 1}", b"0" * 64),
    "nothing": npy("", b"0" * 64),
    "a long header": npy(" " * 60_000, b"0" * 64),
    "4 GB of header": b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b"0" * 64,
    "version 9": npy(descr("(2, 4)"), b"0" * 64, b"\x09\x00"),
    "no UTF-8": npy(b"\xff\xfe{}", b"0" * 64, b"\x03\x00"),
    "Python 2": npy("{'descr': '<f4', 'fortran_order': 0L, 'shape': (2L, 4L)}"),
}


def bounded(path, **kwargs):
    """Load it, or be refused, in less than 8 MB."""
    tracemalloc.start()
    try:
        return load(path, **kwargs)
    except InputError as error:
        sentence = str(error)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2**23
    assert str(path) in sentence
    assert sentence.isprintable()
    return None


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("where", ["npy", "npz", "deflated", "targets"])
def test_headers_that_lie_are_refused_and_allocate_nothing(
    tmp_path, monkeypatch, name, where
):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / ("a.npy" if where in ("npy", "targets") else "a.npz")
    if path.suffix == ".npy":
        path.write_bytes(HOSTILE[name])
    else:
        method = zipfile.ZIP_DEFLATED if where == "deflated" else zipfile.ZIP_STORED
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr("logits.npy", HOSTILE[name])
    if where == "targets":
        good = write(tmp_path / "good.npy", CUBE)
        with pytest.raises(InputError, match=r"a\.npy"):
            load(good, targets=path)
    else:
        assert bounded(path, targets=[0, 1]) is None
    assert not (tmp_path / "x").exists()


def test_a_safetensors_header_that_lies_is_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    for header in (
        b'{"logits":{"dtype":"F32","shape":[1000000000,1000000000],"data_offsets":[0,64]}}',
        b'{"logits":{"dtype":"F32","shape":[-4,-4],"data_offsets":[0,64]}}',
        b'{"logits":{"dtype":"F32","shape":[4,4],"data_offsets":[64,0]}}',
        b'{"logits":{"dtype":"F32","shape":[4,4],"data_offsets":[8,72]}}',
        b'{"logits":{"dtype":"X9","shape":[4,4],"data_offsets":[0,64]}}',
        b'{"logits":{"dtype":"F32","shape":[4,4],"data_offsets":[0,64.5]}}',
        b'{"logits":{"dtype":"F32","shape":4,"data_offsets":[0,64]}}',
        b'{"logits":[]}',
        b'{"__metadata__":{"a":1}}',
        b'{"__metadata__":{"form":"logits","pool":"x","seed":"1","format":"1"}}',
        b"[" * 5000,
        b'"',
        b"",
        b"\xff",
    ):
        path.write_bytes(len(header).to_bytes(8, "little") + header + b"0" * 64)
        assert bounded(path, targets=[0, 1, 2, 3]) is None
    path.write_bytes(b"\xff" * 8 + b"{}")
    assert bounded(path, targets=[0]) is None


def zeros(shape):
    """An .npy file of zeros, in pieces."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": "<f4", "fortran_order": False, "shape": shape}
    )
    yield buffer.getvalue()
    for _ in range(4 * int(np.prod(shape)) // 2**20):
        yield bytes(2**20)


def test_a_zip_bomb_is_refused_unopened(tmp_path):
    path = tmp_path / "a.npz"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("logits.npy", "w", force_zip64=True) as member,
    ):
        for piece in zeros((200, 2**18)):
            member.write(piece)
    assert path.stat().st_size < 2**18
    assert bounded(path, targets=[0] * 200) is None
    assert "np.savez, uncompressed" in refusal(path, targets=[0] * 200)


def test_a_member_that_lies_about_its_size_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr("logits.npy", npy(descr("(2, 4)"), bytes(32)))
        whole = path.read_bytes()
        size = archive.getinfo("logits.npy").file_size
        for lie in (0, size - 1, size + 1, 2**31, 2**32 - 2):
            content = whole.replace(struct.pack("<I", size), struct.pack("<I", lie))
            path.write_bytes(content)
            read = bounded(path, targets=[0, 1])
            assert read is None or not read.rows[0][:].any()


def test_an_encrypted_or_unknown_member_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("logits.npy", npy(descr("(2, 4)"), bytes(32)))
    whole = path.read_bytes()
    at = whole.index(b"PK\x01\x02")
    for offset, new in ((8, b"\x01\x00"), (10, b"\x63\x00"), (42, b"\xff\xff\xff\x7f")):
        broken = bytearray(whole)
        broken[at + offset : at + offset + len(new)] = new
        path.write_bytes(broken)
        assert bounded(path, targets=[0, 1]) is None


# Whatever the bytes.


def originals():
    cube, targets = make("f4", 2, 3, 2)
    files = {}
    for suffix in (".npy", ".npz", ".safetensors"):
        path = Path(f"whole{suffix}")
        buffer = io.BytesIO()
        if suffix == ".npy":
            np.save(buffer, cube)
            files[suffix] = buffer.getvalue()
        elif suffix == ".npz":
            np.savez(buffer, logits=cube, targets=targets)
            files[suffix] = buffer.getvalue()
            buffer = io.BytesIO()
            np.savez_compressed(buffer, logits=cube, targets=targets)
            files[f"2{path.suffix}"] = buffer.getvalue()
        else:
            from safetensors.numpy import save

            files[suffix] = save({"logits": cube, "targets": targets})
    files[".txt"] = b"0\n1\n0\n"
    return files


ORIGINALS = originals()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize("suffix", ORIGINALS)
@settings(max_examples=250, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
def test_any_bytes_are_read_or_refused_with_a_sentence(folder, suffix, data):
    content = bytearray(ORIGINALS[suffix])
    if data.draw(st.booleans()):
        content[:] = data.draw(st.binary(max_size=300))
    else:
        for _ in range(data.draw(st.integers(1, 5))):
            at = data.draw(st.integers(0, len(content)))
            content[at : at + data.draw(st.integers(0, 4))] = data.draw(
                st.binary(max_size=4)
            )
    path = folder / f"a{suffix}"
    path.write_bytes(content)
    try:
        if suffix == ".txt":
            read = load(make("f4", 1, 3, 2)[0], targets=path)
        else:
            read = load(path, targets=None if data.draw(st.booleans()) else [0, 1, 0])
        assert isinstance(read, Predictions)
        for i in range(read.networks):
            assert np.isfinite(read.logits(i, 0, read.objects)).all()
    except InputError as error:
        sentence = str(error)
    else:
        return
    assert sentence.isprintable()
