"""Hostile and mistaken input: a sentence, and never a traceback, a hang or a flood.

`benchmarks/fuzz.py` does the same with as many inputs as one likes.
"""

import ast
import contextlib
import errno
import json
import os
import re
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ensize
from ensize import InputError
from ensize.reading.columns import read_columns
from ensize.stores import Store
from ensize.stores.networks import as_json, checksum
from hostile import judging, mutations
from hostile.readers import HEX, READERS, arrays, npy_bytes, terminal

FEW = {"terminal": 30, "store": 40, "toml": 100}


@pytest.mark.parametrize("name", READERS)
def test_spoiled_input_is_taken_or_refused_with_a_sentence(name):
    """A run of another seed every day would find more, and fail on the innocent."""
    if name in ("toml", "store", "terminal"):
        pytest.importorskip("torch")
    with judging.prepared(name) as reader:
        found = [
            judging.judge(reader, judging.number(0, name, index))
            for index in range(FEW.get(name, 200))
        ]
    assert [why for _, why in found if why] == []
    assert {"accepted", "refused"} == {outcome for outcome, _ in found}


def test_the_judge_sees_faults(monkeypatch):
    """A harness that finds nothing must be able to find something."""
    monkeypatch.setattr(judging, "SECONDS", 0.05)
    with judging.prepared("csv") as reader:
        for read, outcome in (
            (lambda: 1 / 0, "traceback"),
            (lambda: np.float64(1) / np.float64(0), "traceback"),  # a warning
            (lambda: [None for _ in iter(int, 1)], "hang"),
        ):
            reader.read = read
            assert judging.judge(reader, judging.number(0, "csv", 0))[0] == outcome


@pytest.mark.parametrize("form", ["npy", "npz", "safetensors", "csv", "txt"])
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(content=st.binary(max_size=300))
def test_any_bytes_are_taken_or_refused(form, content, tmp_path):
    """Neither do bytes that nobody designed."""
    path = tmp_path / f"p.{form}"
    path.write_bytes(content)
    with contextlib.suppress(InputError):
        if form == "csv":
            read_columns(path)
        elif form == "txt":
            ensize.load(arrays()[0], targets=path)
        else:
            ensize.load(path, targets=[0])


ROOT = Path(__file__).parent.parent
MODULES = {"pickle", "marshal", "shelve", "subprocess", "yaml", "joblib", "dill"}
CALLS = {"eval", "exec", "compile", "__import__", "torch.load", "np.load", "os.system"}


def test_no_room_can_run_what_a_file_says():
    """Neither a module that unpickles or starts programs, nor a call that does."""
    found = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {each.name.split(".")[0] for each in node.names} & MODULES
            elif isinstance(node, ast.ImportFrom):
                found |= {(node.module or "").split(".")[0]} & MODULES
            elif isinstance(node, ast.Call):
                found |= {ast.unparse(node.func)} & CALLS
    assert found == set()


def test_the_page_on_security_names_tests_that_there_are():
    page = (ROOT / "docs/security.md").read_text("utf-8")
    named = set(re.findall(r"`(test_\w+)`", page))
    files = (ROOT / "tests").rglob("test_*.py")
    there = set(re.findall(r"def (test_\w+)", "".join(map(Path.read_text, files))))
    assert len(named) > 20
    assert named <= there


# What announces more than it has.

HUGE = 10**18


def npy_of(shape):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}"
    start = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little")
    return start + header.ljust(118).encode() + bytes(64)


def announcing(path, form):
    """Write a file of a few bytes that says it has 10^18 numbers."""
    if form == "npy":
        path.write_bytes(npy_of((HUGE, 10)))
    elif form == "safetensors":
        tensor = {"dtype": "F32", "shape": [HUGE, 10], "data_offsets": [0, 40 * HUGE]}
        header = json.dumps({"logits": tensor}).encode()
        path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(64))
    elif form == "header":
        path.write_bytes((2**63).to_bytes(8, "little") + b"{}" + bytes(64))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("logits.npy", npy_of((HUGE, 10)))


@pytest.mark.parametrize("form", ["npy", "npz", "safetensors", "header"])
def test_nothing_is_allocated_because_a_header_announces_it(form, tmp_path):
    path = tmp_path / f"p.{'safetensors' if form == 'header' else form}"
    announcing(path, form)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"truncated|damaged"):
            ensize.load(path, targets=[0])
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_a_zip_bomb_stays_packed(tmp_path):
    """128 MiB of zeros in 128 KiB; even the threads' memory is below what it says."""
    path = tmp_path / "bomb.npz"
    header = npy_of((2**25 // 1000, 1000))[:128]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("logits.npy", header + bytes(2**27))
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="would become"):
            ensize.load(path, targets=[0])
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


# What was found, and is no more.


def test_an_npy_header_that_is_an_expression(tmp_path):
    """Found: 'malformed node … <ast.Compare object at 0x7f76d9b652a0>'."""
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1 < 2, 3)}"
    path = tmp_path / "p.npy"
    start = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
    path.write_bytes(start + header)
    with pytest.raises(InputError, match="malformed node") as refused:
        ensize.load(path, targets=[0])
    assert "0x" not in str(refused.value)


@pytest.fixture
def store(tmp_path):
    logits, targets = arrays()
    made = Store(tmp_path / "store")
    for seed in range(3):
        made.add("p", seed, logits[seed], targets, size=10)
    return made


@pytest.mark.parametrize("name", ["pools/p/1.safetensors", "pool.json", "targets.npy"])
@pytest.mark.parametrize("kind", ["pipe", "zeros"])
def test_a_pipe_or_a_device_in_a_store_holds_nobody_up(store, name, kind):
    """Found: opening a pipe waits for its writer, and /dev/zero has no end."""
    path = store.path / name
    path = store.path / "pools/p/pool.json" if name == "pool.json" else path
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    (damage,) = store.verify(repair=True)
    assert damage.moved is not None
    assert "no ordinary file" in damage.reason or "link" in damage.reason
    store.add("p", 1, arrays()[0][1], arrays()[1], size=10)
    assert store.verify() == ()
    assert store.read().networks == 3


def test_a_sealed_claim_that_names_no_pool(store):
    """Found: KeyError 'pool', where the checksum fits what is left."""
    path = store.path / "pools/p/pool.json"
    claim = json.loads(path.read_bytes())
    del claim["pool"]
    path.write_bytes(as_json({**claim, "checksum": checksum(claim)}))
    assert [each.name for each in store.pools()] == ["p"]
    assert [each.path for each in store.verify()] == ["pools/p/pool.json"]


@pytest.mark.parametrize(
    ("m", "y"),
    [
        ([1, 2, 4, 8], [1e300, 1e300, 1, 0.5]),
        ([1e-320, 2, 4, 8], [4, 3, 2, 1]),
        ([1, 2, 4, 8], [4, 3, 2, 1e-320]),
        ([1, 2, 4, 1e308], [4, 3, 2, 1]),
    ],
)
@pytest.mark.parametrize("method", ["robust", "paper"])
def test_points_whose_squares_are_beyond_float64(m, y, method):
    """Found: overflow encountered in divide, and in square."""
    with pytest.raises(InputError, match="beyond float64"):
        ensize.fit(m, y, method=method)


@pytest.mark.parametrize(
    "number",
    [10**400, 10**5000, -(10**5000), "9" * 5000],
    ids=["400 digits", "5000", "negative", "text"],
)
def test_numbers_beyond_float64_are_refused_in_a_short_sentence(number):
    """Found: OverflowError, and ValueError where the number was to be quoted."""
    from ensize.checks import positive, whole

    for check in (positive, lambda name, value: whole(name, value, 1, 10)):
        with pytest.raises(InputError, match="size is") as refused:
            check("size", number)
        assert len(str(refused.value)) < 150


@pytest.mark.parametrize(
    "text",
    [
        "name = " + "[" * 3000,
        "\x00",
        'name = "\\u001b[31m"',
        "name = 7",
    ],
    ids=["deep", "NUL", "escape", "number"],
)
def test_what_a_stores_study_calls_itself(text, store):
    """Found: RecursionError, and UnicodeDecodeError."""
    (store.path / "study.toml").write_text(text)
    code, out, err = terminal("claims", str(store.path))
    assert "\x1b" not in out + err
    assert code == (2 if text[-1] in "[\x00" else 0)


def test_a_name_is_no_formula(tmp_path):
    """Found: a drawing failed at it; so it did where all curves have one n, no 2^k."""
    pytest.importorskip("matplotlib")
    draw, targets = np.random.default_rng(0), np.arange(600) % 3
    for store in (Store(tmp_path / "one"), Store(tmp_path / "other")):
        for width in (2, 4, 8):
            for seed in range(6):
                logits = draw.normal(0, 3, (600, 3)) + 2 * np.eye(3)[targets]
                store.add(f"p{width}", seed, logits, targets, size=10 * width)
        (store.path / "study.toml").write_text("name = 'a $\\frac{1}$'")
    some = ["--only", "temperatures,errors-of-all", "-o", str(tmp_path / "figures")]
    stores = [str(tmp_path / each) for each in ("one", "other")]
    code, _, err = terminal("figures", *stores, *some)
    assert (code, err) == (0, "")


def test_seconds_of_networks_that_are_no_numbers(store):
    """Found: ValueError, where a network says that it took 'long' or 'inf'."""
    logits, targets = arrays()
    for seed, said in enumerate(["1.5", "long", "inf"], 10):
        known = {"size": 20 + seed, "extra": {"prediction_seconds": said}}
        for network in range(3):
            store.add(f"q{seed}", network, logits[network], targets, **known)
    found = [store.average(f"q{seed}", "prediction_seconds") for seed in (10, 11, 12)]
    assert found[0] == 1.5
    assert np.isnan(found[1:]).all()
    assert terminal("claims", str(store.path))[0] == 0


# Studies.

RECIPE = {"epochs": 1, "learning_rate": 0.1, "weight_decay": 0}
SOUND = """
name = "a"
dataset = "digits"
family = "mlp"
widths = [2, 4]
networks = 3
[recipe]
epochs = 1
learning_rate = 0.1
weight_decay = 0
"""


def test_half_precision_targets_that_are_no_numbers():
    """Found: a warning of NumPy, about a NaN whose first bit of payload is 0."""
    odd = np.array([0x7D01], "<u2").view("<f2")
    with pytest.raises(InputError, match="targets holds numbers of type float16"):
        ensize.load(arrays()[0], targets=odd)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SOUND.replace("[recipe]", f"keep = {HEX}\n[recipe]"), "keep is an integer"),
        (SOUND + "dropout = " + "[" * 3000, "no TOML"),
        (SOUND + "dropout = " + "{a=" * 3000, "no TOML"),
        (SOUND.replace("epochs = 1", f"epochs = {HEX}"), "epochs of .recipe. is"),
        (SOUND.replace("0.1", HEX), "learning_rate of .recipe. is"),
        (SOUND.replace("0.1", "1" + "0" * 400), "learning_rate of .recipe. is"),
        (SOUND.replace("decay = 0", "decay = 1" + "0" * 400), "weight_decay of"),
        (SOUND.replace("networks = 3", "networks = 1_000_000"), "of all widths"),
        (
            SOUND
            + "[tuning]\nlearning_rate = [0.1, 0.2]\nweight_decay = [0.0]\n"
            + "networks = 50_001",
            "asks for 100002 networks",
        ),
    ],
    ids=[
        "keep",
        "deep",
        "deep-tables",
        "hex",
        "hex-rate",
        "rate",
        "decay",
        "many",
        "grid",
    ],
)
def test_study_files_that_ask_for_too_much(text, words, tmp_path):
    """Found: RecursionError, OverflowError, and grids that fill the memory."""
    pytest.importorskip("torch")
    from ensize.train.studies.declarations import Study

    path = tmp_path / "study.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=words) as refused:
        Study.read(path)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("kind", ["/dev/zero", "pipe", "large"])
def test_study_files_that_have_no_end(kind, tmp_path):
    pytest.importorskip("torch")
    from ensize.train.studies.declarations import Study

    path = tmp_path / "study.toml"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "large":
        with path.open("wb") as file:
            file.truncate(2**34)
    else:
        path.symlink_to(kind)
    with pytest.raises(InputError, match=r"no ordinary file|more than"):
        Study.read(path)


@pytest.mark.parametrize(
    "chosen",
    [
        b"[" * 100_000,
        b'{"chosen": {"epochs": 3}}',
        b'{"chosen": {"learning_rate": NaN}}',
        b'{"chosen": {"learning_rate": 1' + b"0" * 400 + b"}}",
        b'{"chosen": 7}',
    ],
)
def test_what_tuning_chose_is_checked_when_it_is_read(chosen, tmp_path):
    """Found: whatever stood there was taken for a learning rate."""
    pytest.importorskip("torch")
    from ensize.train.studies import runs

    (tmp_path / "tuning").mkdir()
    (tmp_path / "tuning/mlp-w2.json").write_bytes(chosen)
    with pytest.raises(InputError):
        runs.chosen(Store(tmp_path), "mlp-w2")


def test_the_name_of_a_checkpoint_is_no_promise(tmp_path):
    """Found: 0-999999999999999999.checkpoint filled the memory with numbers."""
    pytest.importorskip("torch")
    from ensize.train.unfinished import checkpoints_in

    for name in (f"0-{HUGE}", "3-5+7", "9-1", f"0-{HUGE}+{HUGE}-1"):
        (tmp_path / f"{name}.checkpoint").touch()
    found = {path.name: numbers for numbers, path in checkpoints_in(tmp_path)}
    assert found.pop("3-5+7.checkpoint") == [3, 4, 5, 7]
    assert not any(found.values())


@pytest.mark.parametrize("content", [b"[" * 100_000, b"7", b"\xff", b""])
def test_a_workers_file_that_no_worker_wrote(content, tmp_path):
    """Found: RecursionError, when its lease was looked at."""
    pytest.importorskip("torch")
    from ensize.train.studies.leases import Worker

    (tmp_path / "p").mkdir()
    (tmp_path / "p/0.0").write_bytes(content)
    (tmp_path / "x.worker").write_bytes(content)
    with Worker(tmp_path) as worker:
        assert worker.take("p", [0, 1]) == [0, 1]


# The terminal.


def test_names_cannot_steer_a_terminal(tmp_path, monkeypatch):
    """Found: escape sequences of a file's and of a column's name were printed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.csv").write_text("\x1b[31mn,[/x]\n1,2\n2,1.5\n4,1.2\n8,1.1\n")
    code, out, err = terminal("fit", "c.csv")
    assert (code, err) == (0, "")
    assert "\\x1b[31mn" in out
    assert "[/x] = limit" in out
    code, out, err = terminal("fit", "\x1b]0;title\x07\n.csv")
    assert (code, out) == (2, "")
    assert "\x1b" not in err
    assert err.count("\n") == 1


def test_markup_in_a_store_is_text(store, monkeypatch):
    """A claim may say anything, with a checksum that fits."""
    path = store.path / "pools/p/pool.json"
    claim = {**json.loads(path.read_bytes()), "form": "[/x]\x1b[2J"}
    path.write_bytes(as_json({**claim, "checksum": checksum(claim)}))
    code, out, _ = terminal("status", str(store.path))
    assert code == 0
    assert "[/x]\\x1b[2J" in out


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("split STORE --budget 1e300", "budget is 1e300; nobody has more"),
        ("split STORE --budget 1e12T", "budget is 1e12T; nobody has more"),
        ("fit STORE", "is no ordinary file; give a CSV file"),
        ("demo -o c.csv", "c.csv is a file, where a folder is to be made"),
        ("study s.toml --store c.csv", "c.csv is a file, where a folder is to be"),
        ("search s.toml --budget 8k --store c.csv", "c.csv is a file, where a folder"),
        ("study s.toml --store new --device tpu", "device is 'tpu'; give cpu"),
        ("study s.toml --store new --precision float8", "precision is 'float8'"),
        ("search s.toml --budget 1e300 --store new", "budget is 1e300; nobody"),
        (f"search {'1' * 400} --budget 1M --store new", "File name too long"),
        (f"study {'1' * 400} --store new", "File name too long"),
        (f"score {'1' * 400}", "File name too long"),
        (f"forecast {'1' * 400}", "File name too long"),
        (f"figures STORE -o {'1' * 400}", "File name too long"),
        (f"report STORE -o {'1' * 400}.html", "File name too long"),
        ("demo -o new --networks 1000000000000000000", "a whole number from 1 to"),
    ],
)
def test_mistakes_on_the_terminal(line, words, store, tmp_path, monkeypatch):
    """Found: a sentence about something else, or a store begun in spite of it."""
    if line.startswith(("study", "search", "demo")):
        pytest.importorskip("torch")
    if line.startswith(("figures", "report")):
        pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.csv").write_text("1,2\n")
    (tmp_path / "s.toml").write_text(SOUND)
    code, out, err = terminal(*line.replace("STORE", "store").split())
    assert (code, err.count("\n")) == (2, 1)
    assert not out or line.startswith("demo")  # which says what it is about to do
    assert words in err
    assert not (tmp_path / "new").exists()


def test_a_full_disk_is_a_sentence(store, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    logits, targets = arrays()
    with pytest.raises(InputError, match="No space left on device"):
        store.add("p", 9, logits[0], targets, size=10)
    assert store.partials() == ()
    assert store.seeds("p") == (0, 1, 2)


def test_mutations_are_made_again_from_their_number():
    made = [
        [
            mutations.spoil(npy_bytes(arrays()[0]), judging.number(seed, "npy", 3)),
            mutations.archive(judging.number(seed, "npz", 3), {"a": b"b" * 100}),
        ]
        for seed in (0, 0, 1)
    ]
    assert made[0] == made[1] != made[2]
