"""Damaged files are moved aside, whatever they are; and what is whole stays."""

import errno
import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from ensize import InputError, Store
from ensize.cli import main
from ensize.stores.seals import check_seal, sealed_arrays, sealed_json, sealed_toml

OBJECTS, CLASSES = 30, 5
KNOWN = {"size": 1000, "width": 8, "recipe": "r1"}


def make(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(0, 3, (OBJECTS, CLASSES)), np.arange(OBJECTS) % CLASSES


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "store")
    for seed in range(4):
        store.add("vgg", seed, *make(seed), **KNOWN)
    (store.path / "study.toml").write_bytes(sealed_toml('name = "few"\n'))
    for path in ("tuning/vgg.json", "failures/vgg/7.json"):
        (store.path / path).parent.mkdir(parents=True)
        (store.path / path).write_bytes(sealed_json({"reason": "it diverged"}))
    weights = store.path / "weights/vgg/0.safetensors"
    weights.parent.mkdir(parents=True)
    weights.write_bytes(
        sealed_arrays({"w": make(0)[0], "b": make(1)[0]}, {"seed": "0"})
    )
    return store


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def flip(path, at=-5):
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def cut(path):
    path.write_bytes(path.read_bytes()[:-10])


def lead_out(path):
    outside = path.parents[4] / "elsewhere"
    shutil.copy(path, outside)
    path.unlink()
    path.symlink_to(outside)


def make_folder(path):
    path.unlink()
    path.mkdir()


DAMAGE = [
    ("pools/vgg/1.safetensors", flip),
    ("pools/vgg/1.safetensors", cut),
    ("pools/vgg/1.safetensors", lead_out),
    ("pools/vgg/1.safetensors", make_folder),
    ("pools/vgg/pool.json", flip),
    ("targets.npy", flip),
    ("targets.npy", cut),
    ("study.toml", cut),
    ("study.toml", flip),
    ("tuning/vgg.json", cut),
    ("tuning/vgg.json", flip),
    ("failures/vgg/7.json", cut),
    ("weights/vgg/0.safetensors", cut),
    ("weights/vgg/0.safetensors", flip),
    ("failures/vgg/7.json", flip),
]


@pytest.mark.parametrize(("name", "harm"), DAMAGE)
def test_a_damaged_file_is_moved_aside_and_can_be_made_again(store, name, harm):
    whole = contents(store.path)
    harm(store.path / name)
    left = contents(store.path)
    (damage,) = store.verify(repair=True)
    assert (damage.path, damage.moved) == (name, f"damaged/1/{name}")
    now = contents(store.path)
    # Nothing is deleted, and nothing else is touched.
    reasons = json.loads(now.pop("damaged/1/reasons.json"))
    assert reasons == {name: damage.reason}
    if not (store.path / damage.moved).is_dir():
        assert now.pop(damage.moved) == left.pop(name)
    assert now == left
    # What is lacking comes back the way it came in.
    assert store.add("vgg", 1, *make(1), **KNOWN) is name.endswith("1.safetensors")
    assert store.verify() == ()
    assert store.read().networks == 4
    again = contents(store.path)
    if name == "targets.npy":
        assert again[name] == whole[name]


def test_each_repair_has_a_folder_of_its_own(store):
    for number in (1, 2, 3):
        flip(store.path / "pools/vgg/2.safetensors")
        (damage,) = store.verify(repair=True)
        assert damage.moved == f"damaged/{number}/pools/vgg/2.safetensors"
        assert store.add("vgg", 2, *make(2), **KNOWN)
    assert store.verify(repair=True) == ()
    assert len(list((store.path / "damaged").iterdir())) == 3


def test_networks_of_another_recipe_go_and_the_many_stay(store, tmp_path):
    other = Store(tmp_path / "other")
    other.add("vgg", 9, *make(9), **{**KNOWN, "recipe": "r2"})
    name = "pools/vgg/9.safetensors"
    shutil.copy(other.path / name, store.path / name)
    (damage,) = store.verify(repair=True)
    assert "its recipe is 'r2', and the pool's 'r1'" in damage.reason
    assert store.seeds("vgg") == (0, 1, 2, 3)


def test_a_file_that_may_not_be_read_stays(store, monkeypatch):
    """Want of permission, or of file descriptors, is no damage."""
    kept, lost = (store.path / f"pools/vgg/{seed}.safetensors" for seed in (1, 2))
    real, codes = Path.open, {kept: errno.EACCES, lost: errno.EIO}

    def failing(path, *arguments, **options):
        if path in codes:
            raise OSError(codes[path], os.strerror(codes[path]))
        return real(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", failing)
    damage = store.verify(repair=True)
    assert [each.read for each in damage] == [False, True]
    assert damage[0].moved is None
    assert kept.exists()
    assert not lost.exists()


def test_what_a_link_leads_to_is_not_moved(store, tmp_path):
    """A store from elsewhere cannot have us move files that are not in it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine.json").write_text("no JSON")
    shutil.rmtree(store.path / "tuning")
    (store.path / "tuning").symlink_to(outside)
    (damage,) = store.verify(repair=True)
    assert (damage.path, damage.moved) == ("tuning/mine.json", None)
    assert (outside / "mine.json").read_text() == "no JSON"
    assert not (store.path / "damaged").exists()


def test_damaged_is_no_link_that_leads_out(store, tmp_path):
    (tmp_path / "outside").mkdir()
    (store.path / "damaged").symlink_to(tmp_path / "outside")
    flip(store.path / "pools/vgg/2.safetensors")
    with pytest.raises(InputError, match=r"damaged is not as .* it is a link"):
        store.verify(repair=True)
    assert (store.path / "pools/vgg/2.safetensors").exists()


def verified(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["ensize", "verify", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr()
    return ended.value.code or 0, told.out, told.err


def test_the_terminal_repairs_when_asked_alone(store, monkeypatch, capsys):
    path = store.path / "pools/vgg/1.safetensors"
    flip(path)
    code, out, _ = verified(monkeypatch, capsys, store.path)
    assert code == 1
    assert "damaged: pools/vgg/1.safetensors: " in out
    assert path.exists()
    code, out, err = verified(monkeypatch, capsys, store.path, "--repair")
    assert code == 0
    assert "moved to damaged/1/pools/vgg/1.safetensors" in out
    assert "record what is missing again" in err
    flip(store.path / "pools/vgg/2.safetensors")
    code, out, _ = verified(monkeypatch, capsys, store.path, "--repair", "--json")
    (said,) = json.loads(out)["damaged"]
    assert (code, said["moved"]) == (0, "damaged/2/pools/vgg/2.safetensors")
    assert json.loads(out)["pools"][0]["networks"] == 2
    code, out, _ = verified(monkeypatch, capsys, store.path)
    assert (code, "Every file is as it was written." in out) == (0, True)


@pytest.mark.parametrize(
    "name",
    [
        "study.toml",
        "tuning/vgg.json",
        "failures/vgg/7.json",
        "weights/vgg/0.safetensors",
    ],
)
def test_no_bit_changes_unseen(store, name):
    """Found: a digit of what tuning chose, and a weight, could be another."""
    path = store.path / name
    whole = path.read_bytes()
    check_seal(path)
    for at in range(0, len(whole), 5):
        flip(path, at)
        with pytest.raises(InputError, match=path.name):
            check_seal(path)
        path.write_bytes(whole)
    for length in range(0, len(whole), 3):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=path.name):
            check_seal(path)


def test_without_a_seal_the_form_is_checked(store):
    """Stores that were made before there were seals are whole."""
    (store.path / "tuning/vgg.json").write_text('{"chosen": {}}')
    (store.path / "study.toml").write_text('name = "few"')
    save_file(
        {"w": np.ones(3)}, store.path / "weights/vgg/0.safetensors", {"seed": "0"}
    )
    assert store.verify() == ()
