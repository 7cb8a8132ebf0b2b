import pytest
import torch

from ensize import InputError
from ensize.train import plans
from ensize.train.committees import Way
from ensize.train.cores import at_work
from ensize.train.networks import layers_of
from ensize.train.plans import (
    Plan,
    device_of,
    for_want_of_memory,
    measured_plan,
    passes,
    precisely,
)

CPU = torch.device("cpu")


@pytest.mark.parametrize("networks", [1, 2, 7, 12, 100])
@pytest.mark.parametrize("most", [1, 3, 8, 128])
@pytest.mark.parametrize("cores", [1, 2, 5])
def test_passes_take_every_network_once(networks, most, cores):
    cut = passes(slice(10, 10 + networks), Way("products", most), cores)
    taken = [i for each in cut for i in range(each.start, each.stop)]
    assert taken == list(range(10, 10 + networks))
    sizes = {each.stop - each.start for each in cut}
    assert max(sizes) <= most
    assert max(sizes) - min(sizes) <= 1
    assert len(cut) >= min(cores, networks)


@pytest.mark.parametrize(
    ("family", "shape"), [("mlp", (12,)), ("vgg16", (3, 32, 32))], ids=str
)
def test_a_plan_is_the_quickest_that_was_measured(monkeypatch, family, shape):
    layers = layers_of(family, 2, shape=shape, classes=3)
    ways = plans._FLAT if family == "mlp" else plans._CPU
    quickest = ways[1]

    def measure(layers, shape, batch, device, way, cores):
        networks = way.networks * cores.side_by_side
        return Plan(networks, way, networks * (1 - (way == quickest) / 2), 2000)

    monkeypatch.setattr(plans, "_measure", measure)
    plans.measured_plan.cache_clear()
    threads = torch.get_num_threads()
    found = measured_plan(layers, shape, 8, CPU, "float32", threads)
    plans.measured_plan.cache_clear()
    assert found.way == quickest
    side_by_side = 1 if quickest.shared else threads
    assert found.together == side_by_side * quickest.networks
    assert found.seconds == pytest.approx(found.together / 2)
    assert found.bytes == 2000


def test_where_memory_does_not_do_there_are_fewer_passes(monkeypatch):
    way = Way("convolutions", 4)
    free = {"SC_AVPHYS_PAGES": 70, "SC_PAGE_SIZE": 1}
    monkeypatch.setattr(plans.os, "sysconf", free.get)
    many = Plan(16, way, 1.0, 80)
    assert plans._together(many, CPU) == 8
    assert plans._together(Plan(16, way, 1.0, 8_000), CPU) == 4
    assert plans._together(Plan(16, way, 1.0, 8), CPU) == 16


def test_a_way_that_fails_is_not_chosen(monkeypatch):
    layers = layers_of("mlp", 2, shape=(12,), classes=3)
    last = plans._FLAT[-1]

    def measure(*of):
        if of[4] != last:
            raise RuntimeError("no room for this")
        return Plan(4, last, 1.0, 10)

    monkeypatch.setattr(plans, "_measure", measure)
    plans.measured_plan.cache_clear()
    assert measured_plan(layers, (12,), 8, CPU, "float32", 1).way == last
    plans.measured_plan.cache_clear()
    monkeypatch.setattr(plans, "_FLAT", plans._FLAT[:1])
    with pytest.raises(RuntimeError, match="no room for this"):
        measured_plan(layers, (12,), 8, CPU, "float32", 1)
    plans.measured_plan.cache_clear()


def test_memory_is_counted():
    """At least weights, velocities, objects and what is kept for going back."""
    layers = layers_of("mlp", 50, shape=(200,), classes=3)
    way = Way("products", 4, shared=True)
    with at_work(CPU, way) as cores:
        found = plans._measure(layers, (200,), 64, CPU, way, cores)
    assert (found.together, found.way) == (4, way)
    assert found.seconds > 0
    taken = found.bytes
    assert 4 * 4 * 64 * (200 + 50) < taken < 100 * 4 * 4 * 64 * (200 + 50)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("gpu", "device is 'gpu'; give cpu, cuda, or cuda:K for one of several GPUs"),
        ("meta", "device is 'meta'; give cpu or cuda"),
    ],
)
def test_what_is_no_device_gets_a_sentence(name, sentence):
    with pytest.raises(InputError) as said:
        device_of(name)
    assert str(said.value) == sentence


def test_gpus_are_asked_for(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device_of(None) == CPU
    with pytest.raises(InputError, match="and there is no GPU here; give cpu"):
        device_of("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert device_of(None) == torch.device("cuda")
    assert device_of("cuda:1") == torch.device("cuda:1")
    with pytest.raises(InputError, match="GPUs here are numbered up to 1"):
        device_of("cuda:2")


def test_settings_are_left_as_they_were():
    matmul = torch.backends.cuda.matmul
    before = matmul.allow_tf32
    with precisely("tf32"):
        assert matmul.allow_tf32
    assert matmul.allow_tf32 == before
    with pytest.raises(InputError, match="precision"), precisely("float8"):
        pass


def test_want_of_memory_is_told_from_other_errors():
    assert for_want_of_memory(MemoryError())
    assert for_want_of_memory(RuntimeError("CUDA error: out of memory"))
    assert for_want_of_memory(RuntimeError("can't allocate memory: you tried to"))
    assert not for_want_of_memory(RuntimeError("shapes do not fit"))
