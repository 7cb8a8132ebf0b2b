"""Clusters: with something in Ray's place, and, where that is asked for, with Ray."""

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from ensize import InputError, Store
from ensize.cli.clustering import executing
from ensize.train import benches, clusters
from ensize.train.benches import Bench
from ensize.train.clusters import Cluster
from ensize.train.loop import Interrupted
from ensize.train.studies import Study, train_networks, train_study
from fake_training import Trainer, install

DECLARED = {
    "name": "few",
    "dataset": "few-digits",
    "family": "mlp",
    "widths": [2, 4, 6],
    "networks": 4,
    "recipe": {"epochs": 5, "learning_rate": 0.1, "weight_decay": 0.0},
}
STUDY = Study.of(DECLARED)


class DiedError(Exception):
    """What Ray raises when an actor is gone."""


class Ray:
    """Stands in for the library: actors are objects here, and die when told to."""

    def __init__(self, resources, dies=lambda: False):
        self.exceptions = SimpleNamespace(RayError=DiedError)
        self.resources, self.dies = resources, dies
        self.made, self.killed, self.options = [], [], []

    def shutdown(self):
        self.killed.append("all")

    def nodes(self):
        return [{"Alive": True, "Resources": each} for each in self.resources]

    def put(self, value):
        return value

    def get(self, value):
        if isinstance(value, DiedError):
            raise value
        return value

    def wait(self, values, timeout):
        return values, []

    def kill(self, actor):
        self.killed.append(actor)

    def remote(self, kind):
        def options(**given):
            self.options.append(given)
            return SimpleNamespace(remote=lambda *args: self._actor(kind(*args)))

        return SimpleNamespace(options=options)

    def _actor(self, real):
        self.made.append(real)

        def method(name):
            def call(*args, **how):
                if name == "news" and self.dies():
                    return DiedError("it died.\nThe node was lost.")
                return getattr(real, name)(*args, **how)

            return SimpleNamespace(remote=call)

        names = ("where", "plan", "train", "news")
        return SimpleNamespace(**{name: method(name) for name in names})


@pytest.fixture
def trainer(monkeypatch):
    """Let benches train at once, and say what they are asked for."""
    trainer = install(monkeypatch, Trainer())

    def train(*args, device, **how):
        return trainer.train(*args, **how)

    monkeypatch.setattr(benches, "train", train)
    monkeypatch.setattr(benches, "plan", trainer.plan)
    return trainer


def cluster(monkeypatch, ray, device=None, **how):
    monkeypatch.setattr(clusters, "_connected", lambda _: (ray, True))
    return Cluster(device, **how)


def times(count):
    """Say yes so many times."""
    left = iter(range(count))
    return lambda: next(left, None) is not None


def test_a_committee_takes_its_share_of_a_node(monkeypatch):
    nodes = [{"CPU": 8.0, "GPU": 2.0}, {"CPU": 2.0, "GPU": 4.0}, {"CPU": 16.0}]

    def devices(**how):
        return cluster(monkeypatch, Ray(nodes), **how).devices

    assert devices() == (None,) * 4
    assert devices(gpus=0.5) == (None,) * 6
    # Three of 0.3 fit on one GPU, and nothing lies across two.
    assert devices(gpus=0.3, cpus=0.1) == (None,) * 18
    assert devices(device="cpu", cpus=4) == ("cpu",) * 6
    assert devices(gpus=2, cpus=2, committees=50) == (None,) * 50
    with pytest.raises(InputError, match="no node of the Ray cluster has 3 GPUs and 9"):
        devices(gpus=3, cpus=9)
    with pytest.raises(InputError, match="Ray chooses among GPUs by itself"):
        devices(device="cuda:1")


@pytest.mark.parametrize("stream", [False, True])
def test_the_store_is_that_of_the_local_executor(
    monkeypatch, tmp_path, trainer, stream
):
    train_study(STUDY, tmp_path / "here")
    ray = Ray([{"CPU": 3.0}])
    executor = cluster(monkeypatch, ray, stream=stream)
    done = train_study(STUDY, tmp_path / "there", executor=executor)
    assert (done.done, done.trained, done.warnings) == (12, 12, ())
    assert_same(tmp_path / "there", tmp_path / "here")
    # Every bench was given back.
    assert 1 <= len(ray.made) == len(ray.killed) <= 3
    assert ray.options[0]["num_cpus"] == 1.0
    assert executor.under_way == {}


def test_what_is_lost_is_tried_again_and_said(monkeypatch, tmp_path, trainer):
    ray = Ray([{"CPU": 1.0}], dies=times(3))
    executor = cluster(monkeypatch, ray)
    done = train_networks(STUDY, tmp_path, 4, range(4), executor=executor)
    assert (done.done, done.given_up) == (4, 0)
    assert len(ray.made) == len(ray.killed) == 4
    # The three losses were in one process, which is said once.
    (warning,) = done.warnings
    assert warning.endswith("(The node was lost), and was tried again")


def test_what_is_lost_too_often_is_given_up_and_said(monkeypatch, tmp_path, trainer):
    # The first time is a measurement, without which there is no committee.
    executor = cluster(monkeypatch, Ray([{"CPU": 1.0}], dies=times(2)), retries=1)
    done = train_networks(STUDY, tmp_path, 4, range(4), executor=executor)
    assert (done.done, done.given_up) == (0, 1)
    assert "2 tries in all; the same command tries again" in done.warnings[0]
    # Then a committee, after its measurement has gone well.
    losses = iter([False, True, True])
    ray = Ray([{"CPU": 1.0}], dies=lambda: next(losses, False))
    executor = cluster(monkeypatch, ray, retries=1)
    done = train_networks(STUDY, tmp_path, 4, range(4), executor=executor)
    assert (done.done, done.given_up) == (0, 4)
    assert "4 networks of mlp-w4 could not be trained" in done.warnings[0]
    assert len(ray.made) == len(ray.killed) == 2


def test_a_checkpoint_that_was_sent_back_is_gone_on_with(
    monkeypatch, tmp_path, trainer
):
    trainer.seconds = 0.1
    sent, once = tmp_path / "there/unfinished/mlp-w4/0-1.checkpoint", times(1)
    ray = Ray([{"CPU": 1.0}], dies=lambda: sent.exists() and once())
    executor = cluster(monkeypatch, ray, stream=True)
    monkeypatch.setattr(benches, "_LOOK", 0.01)
    done = train_networks(
        STUDY, tmp_path / "there", 4, [0, 1], executor=executor, every=0.01
    )
    assert done.done == 2
    assert len(done.warnings) == 1
    (_, _, first), (_, _, second) = trainer.asked
    assert (first, second > 0) == (0, True)
    monkeypatch.setattr(trainer, "seconds", 0.0)
    train_networks(STUDY, tmp_path / "here", 4, [0, 1])
    assert_same(tmp_path / "there", tmp_path / "here")


def test_errors_and_orders_to_stop_come_back(monkeypatch, tmp_path, trainer):
    trainer.raises = lambda width, seeds: RuntimeError("out of memory")
    executor = cluster(monkeypatch, Ray([{"CPU": 1.0}]))
    done = train_networks(STUDY, tmp_path, 4, [0], executor=executor)
    assert done.given_up == 1
    assert "(out of memory)" in done.warnings[0]
    trainer.raises, trainer.seconds = None, 0.2
    monkeypatch.setattr(benches, "_LOOK", 0.05)
    done = train_networks(STUDY, tmp_path, 4, [0], executor=executor, minutes=0.005)
    assert (done.done, done.stopped) == (0, "time")
    assert list((tmp_path / "unfinished" / "mlp-w4").glob("0.checkpoint"))
    trainer.raises = lambda width, seeds: KeyError("seven")
    done = train_networks(STUDY, tmp_path, 4, [0], executor=executor)
    assert "KeyError: 'seven'" in done.warnings[0]


def test_waiting_for_room_ends_when_asked(monkeypatch, tmp_path):
    ray = Ray([{"CPU": 1.0}])
    monkeypatch.setattr(ray, "wait", lambda values, timeout: ([], values))
    place = cluster(monkeypatch, ray).place(tmp_path)
    with pytest.raises(Interrupted):
        place.plan(None, "mlp", 4, None, stop=lambda: True)
    assert len(ray.killed) == 1


def test_only_the_cluster_that_was_joined_is_left(monkeypatch):
    ray = Ray([{"CPU": 1.0}])
    cluster(monkeypatch, ray).close()
    assert ray.killed == ["all"]
    monkeypatch.setattr(clusters, "_connected", lambda _: (ray, False))
    Cluster().close()
    assert ray.killed == ["all"]


def test_options_of_ray_are_for_ray():
    with (
        pytest.raises(InputError, match=r"--retries is for a Ray cluster"),
        executing("processes", None, retries=2, stream=False),
    ):
        pass
    with executing("processes", None, retries=None, stream=False) as name:
        assert name == "processes"


def test_a_bench_says_where_it_is(tmp_path):
    order = tmp_path / "order"
    assert not Bench(str(order), "cpu", 1).where().sees_store
    order.touch()
    where = Bench(str(order), "cpu", 1).where()
    assert where.sees_store
    assert where.device == "cpu"
    assert str(os.getpid()) in where.node


def test_a_cluster_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r'pip install "ensize\[ray\]"'):
        Cluster()
    ray = SimpleNamespace(is_initialized=lambda: False)
    monkeypatch.setitem(sys.modules, "ray", ray)
    with pytest.raises(InputError, match=r"no Ray cluster answers at localhost:1 \("):
        Cluster(address="localhost:1")


def assert_same(path, other):
    one, two = Store(path), Store(other)
    assert one.verify() == ()
    assert [p.name for p in one.pools()] == [p.name for p in two.pools()]
    for pool in one.pools():
        mine, theirs = one.read(pool.name), two.read(pool.name)
        assert mine.labels == theirs.labels
        for i in range(len(mine.labels)):
            ours = mine.logits(i, 0, mine.objects)
            assert np.array_equal(ours, theirs.logits(i, 0, mine.objects))


@pytest.fixture(scope="module")
def nodes():
    """Begin a cluster of a head without CPUs, which a test adds nodes to."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip('Ray is not installed: pip install "ensize[ray]"')
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster as Nodes

    nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 0})
    yield nodes
    nodes.shutdown()


@pytest.fixture(scope="module")
def long_study(tmp_path_factory):
    """Declare a study that takes some time, and train it here."""
    folder = tmp_path_factory.mktemp("long")
    recipe = {**DECLARED["recipe"], "epochs": 3000}
    study = Study.of({**DECLARED, "recipe": recipe})
    (folder / "long.toml").write_text(study.toml(), encoding="utf-8")
    train_study(study, folder / "here", device="cpu")
    return folder


@pytest.fixture
def driver(nodes, long_study, tmp_path):
    """Begin to train the study on the cluster, in a process of its own."""
    begun = []

    def begin(*options):
        command = [sys.executable, "-m", "ensize", "study"]
        command += [long_study / "long.toml", "--store", tmp_path / "store"]
        command += ["--executor", "ray", "--ray-address", nodes.address]
        command += ["--every", "0.5", "--device", "cpu", "--json", *options]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        begun.append(subprocess.Popen([*map(str, command)], **pipes))
        return begun[-1]

    yield begin
    for each in begun:
        with contextlib.suppress(ProcessLookupError):
            each.kill()
        each.communicate()


def networks(path):
    return {each: each.stat().st_ino for each in path.glob("pools/*/*.safetensors")}


def until(path, count, process):
    """Wait until a store has some networks, and not all."""
    end = time.monotonic() + 240
    while len(networks(path)) < count and time.monotonic() < end:
        if process.poll() is not None:
            raise AssertionError(process.communicate())
        time.sleep(0.02)
    assert count <= len(networks(path)) < 12


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own
@pytest.mark.parametrize("options", [(), ("--stream",)])
def test_a_node_is_lost_and_the_driver_killed(
    nodes, long_study, driver, tmp_path, options
):
    """Two nodes, one killed; then the driver killed, and begun again."""
    added = [nodes.add_node(num_cpus=1) for _ in range(2)]
    first = driver(*options)
    store = tmp_path / "store"
    until(store, 1, first)
    nodes.remove_node(added[0], allow_graceful=False)
    until(store, 4, first)
    first.send_signal(signal.SIGKILL)
    first.wait()
    before = networks(store)
    out, err = driver(*options).communicate(timeout=280)
    assert out, err
    said = json.loads(out)
    assert (said["done"], said["failed"]) == (12, 0)
    # What was finished is there as it was, and was not trained again.
    assert before.items() <= networks(store).items()
    assert said["trained"] == 12 - len(before)
    assert_same(store, long_study / "here")
    nodes.remove_node(added[1])
