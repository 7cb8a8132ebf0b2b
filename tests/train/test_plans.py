import pytest
import torch

from ensize import InputError
from ensize.train import plans
from ensize.train.committees import Way
from ensize.train.networks import layers_of
from ensize.train.plans import (
    device_of,
    for_want_of_memory,
    measured_plan,
    one_core_each,
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
    monkeypatch.setattr(
        plans,
        "_measure",
        lambda *of: (of[4].networks * (0.5 if of[4] == quickest else 1.0), 2000),
    )
    plans.measured_plan.cache_clear()
    found = measured_plan(layers, shape, 8, CPU, "float32", 2)
    plans.measured_plan.cache_clear()
    assert found.way == quickest
    assert found.together == 2 * quickest.networks  # a pass for each core
    assert found.seconds == pytest.approx(quickest.networks * 0.5)
    assert found.bytes == 2000


def test_a_way_that_fails_is_not_chosen(monkeypatch):
    layers = layers_of("mlp", 2, shape=(12,), classes=3)
    last = plans._FLAT[-1]

    def measure(*of):
        if of[4] != last:
            raise RuntimeError("no room for this")
        return 1.0, 10

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
    seconds, taken = plans._measure(layers, (200,), 64, CPU, Way("products", 4), 1)
    assert seconds > 0
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
    before, threads = matmul.allow_tf32, torch.get_num_threads()
    with precisely("tf32"), one_core_each(CPU) as cores:
        assert matmul.allow_tf32
        assert torch.get_num_threads() == 1
        assert cores == threads
    assert (matmul.allow_tf32, torch.get_num_threads()) == (before, threads)
    with pytest.raises(InputError, match="precision"), precisely("float8"):
        pass


def test_want_of_memory_is_told_from_other_errors():
    assert for_want_of_memory(MemoryError())
    assert for_want_of_memory(RuntimeError("CUDA error: out of memory"))
    assert for_want_of_memory(RuntimeError("can't allocate memory: you tried to"))
    assert not for_want_of_memory(RuntimeError("shapes do not fit"))
