"""Committees against networks that are trained alone, by hand, from the same seeds."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from ensize.train import loop
from ensize.train.batches import Batches
from ensize.train.committees import Way
from ensize.train.descent import Descent
from ensize.train.images import Data, load_data
from ensize.train.loop import Interrupted, Recipe, plan, schedule, train
from ensize.train.networks import layers_of, module
from ensize.train.seeds import Seed, draw

PRODUCTS = Way("products", 8, shared=True)
VGG_WAYS = (
    Way("products", 3),
    Way("convolutions", 3, 16, channels_last=True, shared=True),
    Way("convolutions", 2),
    Way("convolutions", 1, 1, channels_last=True),
)


def pictures(objects=20):
    random = np.random.default_rng(0)
    x = random.integers(0, 256, (objects + 6, 3, 32, 32), np.uint8)
    y = np.arange(objects + 6) % 3
    parts = x[:objects], y[:objects], x[objects:], y[objects:]
    return Data("pictures", *parts, 3, (3, 32, 32))


@pytest.fixture(scope="module")
def digits():
    return load_data("few-digits")


def alone(data, family, width, number, recipe, study):
    """Train one network in a plain loop, with PyTorch's own module and optimizer."""
    where = {"shape": data.shape, "classes": data.classes}
    network = module(family, width, dropout=0.0, **where)
    seed = Seed(study, width, number)
    drawn = seed.weights(layers_of(family, width, **where))
    network.load_state_dict({n: torch.from_numpy(w) for n, w in drawn.items()})
    batches = Batches(data, family, torch.device("cpu"))
    descent = torch.optim.SGD(
        network.parameters(),
        recipe.learning_rate,
        recipe.momentum,
        weight_decay=recipe.weight_decay,
    )
    objects, crop = len(data.y_train), recipe.augment and data.pictures
    for epoch in range(recipe.epochs):
        rate = recipe.learning_rate * schedule(epoch / recipe.epochs)
        descent.param_groups[0]["lr"] = rate
        _, orders, crops = batches.epoch([draw([seed], epoch, objects, crops=crop)])
        for start in range(0, objects, recipe.batch):
            some = slice(start, start + recipe.batch)
            x = batches.take(orders[:, some], crops[:, some] if crop else None)[0]
            y = batches.classes(orders[:, some])[0]
            loss = functional.cross_entropy(network.train()(x), y)
            descent.zero_grad()
            loss.backward()
            descent.step()
    with torch.no_grad():
        logits = torch.cat([network.eval()(x) for x in batches.test(100)])
    return network.state_dict(), logits.numpy()


def close(trained, expected, within=1e-5):
    """Weights and logits are the same, up to rounding in proportion to the largest."""
    state, logits = expected
    for name, each in trained.weights.items():
        wanted = state[name].numpy()
        scale = max(1.0, np.abs(wanted).max())
        assert np.abs(each - wanted).max() < within * scale, name
    scale = max(1.0, np.abs(logits).max())
    assert np.abs(trained.logits - logits).max() < 10 * within * scale


@pytest.mark.parametrize("way", VGG_WAYS, ids=lambda way: f"{way} {way.fill}")
def test_first_steps_of_a_committee_are_those_of_networks_alone(way):
    """Four steps of three batches and a part, with crops, mirrors and decay."""
    data, recipe = pictures(), Recipe(1, 0.01, 1e-2, batch=6)
    together = train(data, "vgg16", 2, [4, 0, 9], recipe, study="s", way=way)
    assert [each.seed for each in together] == [4, 0, 9]
    for each in together:
        close(each, alone(data, "vgg16", 2, each.seed, recipe, "s"), 2e-4)


@pytest.mark.parametrize("networks", [1, 2, 8])
def test_perceptrons_are_the_same_in_whichever_pass(digits, networks):
    recipe = Recipe(6, 0.05, 1e-3, batch=50)
    way = Way("products", networks)
    together = train(digits, "mlp", 5, range(5), recipe, study="s", way=way)
    for each in together:
        close(each, alone(digits, "mlp", 5, each.seed, recipe, "s"))
        assert each.failure is None
        assert each.seconds > 0
        assert each.prediction_seconds > 0


def test_each_network_has_its_own_recipe(digits):
    recipes = [
        Recipe(3, 0.1, 0.0, batch=50),
        Recipe(3, 0.1, 0.0, batch=50),
        Recipe(3, 0.02, 1e-2, batch=50),
    ]
    found = train(digits, "mlp", 4, [0, 1, 0], recipes, study="s", way=PRODUCTS)
    for each, recipe in zip(found, recipes, strict=True):
        close(each, alone(digits, "mlp", 4, each.seed, recipe, "s"))


def test_dropout_is_a_networks_own(digits):
    """The same beside others, another for another rate, and none when it predicts."""
    dropped = Recipe(2, 0.05, 0.0, dropout=0.3, batch=50)
    plain = Recipe(2, 0.05, 0.0, batch=50)
    both = [dropped, plain, dropped]
    where = {"study": "s", "way": PRODUCTS}
    found = train(digits, "mlp", 20, [0, 0, 1], both, **where)
    single = train(digits, "mlp", 20, [1], dropped, **where)[0]
    assert np.abs(found[2].logits - single.logits).max() < 1e-4
    assert np.abs(found[0].logits - found[1].logits).max() > 1e-2
    close(found[1], alone(digits, "mlp", 20, 0, plain, "s"))


@pytest.mark.parametrize("family", ["mlp", "vgg16"])
def test_resumed_equals_uninterrupted_to_the_bit(digits, family, tmp_path):
    data = pictures() if family == "vgg16" else digits
    recipe = Recipe(2, 0.02, 1e-3, dropout=0.2, batch=7 if family == "vgg16" else 50)
    way = Way("convolutions", 2, 16) if family == "vgg16" else PRODUCTS
    given = (data, family, 2, [0, 1, 2], recipe)
    where = {"study": "s", "way": way}
    whole = train(*given, **where)
    path = tmp_path / "0-2.checkpoint"

    def sitting():
        looks = iter([False, False])  # two steps
        stop = lambda: next(looks, True)  # noqa: E731
        return train(*given, checkpoint=path, stop=stop, **where)

    for _ in range(2):
        with pytest.raises(Interrupted):
            sitting()
        assert path.exists()
    parts = sitting()
    for one, other in zip(whole, parts, strict=True):
        assert np.array_equal(one.logits, other.logits)
        for name, each in one.weights.items():
            assert np.array_equal(each, other.weights[name]), name


def test_a_checkpoint_is_written_now_and_then(digits, tmp_path, monkeypatch):
    written = []
    write = loop.Checkpoint.write
    monkeypatch.setattr(
        loop.Checkpoint, "write", lambda *of: (written.append(1), write(*of))
    )
    path, recipe = tmp_path / "0.checkpoint", Recipe(2, 0.02, 0.0, batch=50)
    where = {"study": "s", "way": PRODUCTS, "checkpoint": path}
    train(digits, "mlp", 2, [0], recipe, every=0.0, **where)
    assert len(written) == 2 * 3 + 1  # before each step, and what is ready


def test_where_memory_does_not_do_fewer_go_on(digits, monkeypatch):
    """Each network takes every step once, in passes that become smaller."""
    steps, real = [], loop.slopes
    step = Descent.step

    def scarce(layers, weights, x, *others):
        if len(x) > 2:
            raise RuntimeError("[enforce fail] can't allocate memory: 1 byte")
        return real(layers, weights, x, *others)

    def counted(self, some, *others):
        steps.extend(range(some.start, some.stop))
        return step(self, some, *others)

    recipe = Recipe(2, 0.05, 0.0, batch=50)
    where = {"study": "s", "way": Way("products", 16)}
    plenty = train(digits, "mlp", 3, range(11), recipe, **where)
    monkeypatch.setattr(loop, "slopes", scarce)
    monkeypatch.setattr(Descent, "step", counted)
    found = train(digits, "mlp", 3, range(11), recipe, **where)
    assert np.bincount(steps).tolist() == [2 * 3] * 11
    for one, other in zip(plenty, found, strict=True):
        assert np.abs(one.logits - other.logits).max() < 1e-4


@pytest.mark.parametrize("message", ["out of memory", "something else"])
def test_what_fails_for_one_network_fails(digits, monkeypatch, message):
    def fail(*_):
        raise RuntimeError(message)

    monkeypatch.setattr(loop, "slopes", fail)
    recipe = Recipe(1, 0.05, 0.0)
    with pytest.raises(RuntimeError, match=message):
        train(digits, "mlp", 3, range(4), recipe, study="s", way=PRODUCTS)


def test_a_network_that_diverges_is_named_and_the_others_go_on(digits):
    tame, wild = Recipe(3, 0.05, 0.0, batch=50), Recipe(3, 1e30, 0.0, batch=50)
    found = train(
        digits, "mlp", 4, range(3), [tame, wild, tame], study="s", way=PRODUCTS
    )
    assert [each.failure for each in found] == [
        None,
        "its loss is not finite in epoch 1",
        None,
    ]
    for each in (found[0], found[2]):
        close(each, alone(digits, "mlp", 4, each.seed, tame, "s"))


def test_it_ends_where_all_have_diverged(digits):
    told = []
    train(
        *(digits, "mlp", 4, range(2), Recipe(10_000, 1e30, 0.0)),
        study="s",
        way=PRODUCTS,
        progress=lambda _, share: told.append(share),
    )
    assert max(told, default=0) < 0.5


def test_progress_rises(digits, monkeypatch):
    monkeypatch.setattr(loop, "_TELL", -1.0)
    told = []
    train(
        *(digits, "mlp", 4, range(2), Recipe(3, 0.1, 0.0, batch=50)),
        study="s",
        way=PRODUCTS,
        progress=lambda what, share: told.append((what, share)),
    )
    assert [what for what, _ in told] == ["training"] * 9
    shares = [share for _, share in told]
    assert shares == pytest.approx(np.arange(1, 10) / 9)


def test_the_schedule_is_that_of_the_papers_code():
    """Constant for half of the epochs, then along a line to 1 % at 90 %."""
    for epoch in range(200):
        share = epoch / 200
        if share <= 0.5:
            expected = 1.0
        elif share <= 0.9:
            expected = 1.0 - (1.0 - 0.01) * (share - 0.5) / 0.4
        else:
            expected = 0.01
        assert schedule(share) == pytest.approx(expected, abs=1e-9)


def test_networks_learn(digits):
    """Eight perceptrons on 128 digits: far above chance, and alike in committees."""
    recipe = Recipe(60, 0.1, 1e-3, batch=32)
    way = plan(digits, "mlp", 16, recipe, device="cpu").way
    found = train(digits, "mlp", 16, range(8), recipe, study="s", way=way)
    accuracy = [(each.logits.argmax(1) == digits.y_test).mean() for each in found]
    assert min(accuracy) > 0.75
    assert np.std([each.logits for each in found], axis=0).max() > 0.1
