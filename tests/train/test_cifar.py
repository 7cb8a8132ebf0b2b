import functools
import hashlib
import http.server
import io
import tarfile
import threading
from dataclasses import replace

import numpy as np
import pytest

from ensize import InputError
from ensize.train import cifar
from ensize.train.images import load_data

TEN, HUNDRED = ("cifar10", "cifar100")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Let the data sets have twenty objects to a file."""
    for name, layout in cifar.LAYOUTS.items():
        train, test = (dict.fromkeys(each, 20) for each in (layout.train, layout.test))
        monkeypatch.setitem(
            cifar.LAYOUTS, name, replace(layout, train=train, test=test)
        )


def content(name):
    """Make the files of a data set: {file: (records, labels, pictures)}."""
    layout, random = cifar.LAYOUTS[name], np.random.default_rng(1)
    made = {}
    for file in layout.train | layout.test:
        labels = random.integers(0, layout.classes, (20, layout.labels), np.uint8)
        pictures = random.integers(0, 256, (20, 3, 32, 32), np.uint8)
        records = np.hstack([labels, pictures.reshape(20, -1)])
        made[file] = records, labels[:, -1], pictures
    return made


def unpacked(name, folder):
    folder.mkdir(exist_ok=True, parents=True)
    for file, (records, _, _) in content(name).items():
        (folder / file).write_bytes(records.tobytes())
    return folder


def assert_is(data, name):
    made = list(content(name).values())
    for part, files in (("train", made[:-1]), ("test", made[-1:])):
        pictures = np.concatenate([each[2] for each in files])
        labels = np.concatenate([each[1] for each in files])
        assert np.array_equal(getattr(data, f"x_{part}"), pictures)
        assert np.array_equal(getattr(data, f"y_{part}"), labels)
    assert data.classes == cifar.LAYOUTS[name].classes
    assert data.pictures
    assert data.shape == (3, 32, 32)


@pytest.mark.parametrize("name", [TEN, HUNDRED])
def test_a_folder_or_the_one_around_it_is_read(tmp_path, name):
    inner = unpacked(name, tmp_path / cifar.LAYOUTS[name].subfolder)
    assert_is(load_data(name, folder=inner), name)
    assert_is(load_data(name, folder=tmp_path), name)


def test_a_folder_that_is_not_right_gets_a_sentence(tmp_path):
    with pytest.raises(InputError, match=r"is no folder; give the one with train\.bin"):
        load_data(HUNDRED, folder=tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"train\.bin is missing; unpack"):
        load_data(HUNDRED, folder=tmp_path)
    folder = unpacked(HUNDRED, tmp_path / "there")
    path = folder / "test.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"has 61479 bytes, and 61480 are expected"):
        load_data(HUNDRED, folder=folder)
    path.write_bytes(b"\xff" * 61480)
    with pytest.raises(InputError, match=r"test\.bin has the class 255"):
        load_data(HUNDRED, folder=folder)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A server on this machine in place of the official one, and an empty cache."""
    pooch = pytest.importorskip("pooch")
    pooch.get_logger().setLevel("ERROR")
    folder, cache = tmp_path / "site", tmp_path / "cache"
    folder.mkdir()
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        monkeypatch.setattr(cifar, "_SITE", f"http://127.0.0.1:{server.server_port}/")
        monkeypatch.setattr(pooch, "os_cache", lambda _: cache)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield folder
        server.shutdown()


def publish(site, monkeypatch, name=HUNDRED, *, files=None, checksum=None):
    """Put an archive on the site."""
    files = files or {file: made[0] for file, made in content(name).items()}
    layout = cifar.LAYOUTS[name]
    path = site / layout.archive
    with tarfile.open(path, "w:gz") as archive:
        for file, data in (
            files or {k: v[0] for k, v in content(name).items()}
        ).items():
            entry = tarfile.TarInfo(f"{layout.subfolder}/{file}")
            entry.size = data.nbytes
            archive.addfile(entry, io.BytesIO(data.tobytes()))
    true = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
    said = replace(layout, checksum=f"md5:{checksum or true}")
    monkeypatch.setitem(cifar.LAYOUTS, name, said)
    return path


@pytest.mark.parametrize("name", [TEN, HUNDRED])
def test_what_is_not_there_is_downloaded_once(site, monkeypatch, name):
    archive = publish(site, monkeypatch, name)
    assert_is(load_data(name), name)
    archive.unlink()
    assert_is(load_data(name), name)


def test_a_file_that_was_cut_short_is_unpacked_again(site, monkeypatch, tmp_path):
    publish(site, monkeypatch)
    load_data(HUNDRED)
    path = tmp_path / "cache" / "cifar-100-binary" / "train.bin"
    path.write_bytes(b"short")
    assert_is(load_data(HUNDRED), HUNDRED)


def test_a_download_of_another_checksum_is_refused(site, monkeypatch, tmp_path):
    publish(site, monkeypatch, checksum="0" * 32)
    with pytest.raises(InputError, match="cifar100 cannot be downloaded from") as told:
        load_data(HUNDRED)
    assert "give the folder of its files" in str(told.value)
    assert "\n" not in str(told.value)
    assert not (tmp_path / "cache" / "cifar-100-binary").exists()


def test_a_download_that_is_cut_short_is_refused(site, monkeypatch):
    path = publish(site, monkeypatch)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(InputError, match="cannot be downloaded"):
        load_data(HUNDRED)


def test_a_site_that_does_not_answer_is_named(site):
    with pytest.raises(InputError, match=r"cannot be downloaded from http://127"):
        load_data(HUNDRED)


def test_an_archive_of_other_files_is_refused(site, monkeypatch, tmp_path):
    """Even with the right checksum; nothing in it decides where it is written."""
    records = content(HUNDRED)["train.bin"][0]
    publish(site, monkeypatch, files={"../../train.bin": records})
    with pytest.raises(InputError, match=r"test\.bin is missing"):
        load_data(HUNDRED)
    assert {each.name for each in tmp_path.rglob("*.bin")} == {"train.bin"}
    assert (tmp_path / "cache" / "cifar-100-binary" / "train.bin").exists()


def test_an_archive_that_is_none_is_refused(site, monkeypatch):
    path = site / "cifar-100-binary.tar.gz"
    path.write_bytes(b"no archive")
    true = hashlib.md5(b"no archive", usedforsecurity=False).hexdigest()
    said = replace(cifar.LAYOUTS[HUNDRED], checksum=f"md5:{true}")
    monkeypatch.setitem(cifar.LAYOUTS, HUNDRED, said)
    with pytest.raises(InputError, match="cannot be unpacked"):
        load_data(HUNDRED)
