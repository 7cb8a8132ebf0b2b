"""Studies with a trainer that takes no time: what is trained, by whom, and when."""

import contextlib
import os
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ensize import InputError, Store
from ensize.stores import files
from ensize.train.studies import (
    Run,
    Study,
    costs,
    missing,
    train_networks,
    train_study,
)
from ensize.train.studies.leases import Worker
from ensize.train.studies.runs import MOST
from ensize.train.unfinished import checkpoints_in
from fake_training import Trainer, few_objects, install

DECLARED = {
    "name": "few",
    "dataset": "digits",
    "family": "mlp",
    "widths": [4, 8],
    "networks": [6, 3],
    "recipe": {"epochs": 5, "learning_rate": 0.1, "weight_decay": 0.0},
}
STUDY = Study.of(DECLARED)
EVERYTHING = {"mlp-w4": range(6), "mlp-w8": range(3)}
# A process that was forked is quick to begin; what PyTorch does in threads, it lacks.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture
def trainer(monkeypatch):
    return install(monkeypatch, Trainer())


@pytest.fixture
def alone(trainer):
    """Begin processes that train the study."""
    begun = []

    def begin(store, **how):
        child = os.fork()
        if not child:
            try:
                train_study(STUDY, store, **how)
            finally:
                os._exit(0)
        begun.append(child)
        return child

    yield begin
    for child in begun:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def until_begun(store):
    """Wait until some process trains in a store."""
    end = time.monotonic() + 20
    while not (store / "unfinished" / "mlp-w4").exists() and time.monotonic() < end:
        time.sleep(0.01)


def logits(path):
    """Read all that a store holds: {network: logits}."""
    store, found = Store(path), {}
    for pool in store.pools():
        read = store.read(pool.name)
        for i, label in enumerate(read.labels):
            found[label] = read.logits(i, 0, read.objects).copy()
    return found


def assert_same(path, other):
    one, two = logits(path), logits(other)
    assert set(one) == set(two)
    for label, values in one.items():
        assert np.array_equal(values, two[label]), label
    assert Store(path).verify() == ()


def seeds_in(path):
    store = Store(path)
    return {pool.name: list(store.seeds(pool.name)) for pool in store.pools()}


def whole(path):
    return seeds_in(path) == {pool: list(each) for pool, each in EVERYTHING.items()}


def after(epochs):
    """Make an order to stop that comes after so many looks."""
    looks = iter(range(epochs))

    def stop(_):
        return next(looks, None) is None

    return stop


@pytest.fixture
def reference(tmp_path, trainer):
    """The store of a study that nothing disturbed."""
    train_study(STUDY, tmp_path / "reference")
    trainer.asked.clear()
    return tmp_path / "reference"


def test_a_study_is_trained_once(tmp_path, trainer):
    told = []
    result = train_study(STUDY, tmp_path, progress=lambda *each: told.append(each))
    assert (result.runs, result.done, result.trained, result.failed) == (9, 9, 9, 0)
    assert (result.stopped, result.warnings, result.given_up) == (None, (), 0)
    assert whole(tmp_path)
    assert trainer.asked == [
        (4, [0, 1, 2, 3], 0),
        (4, [4, 5], 0),
        (8, [0, 1, 2], 0),
    ]
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    assert not (tmp_path / "unfinished").exists()
    again = train_study(STUDY, tmp_path)
    assert (again.done, again.trained, len(trainer.asked)) == (9, 0, 3)


def test_a_network_says_where_it_came_from(tmp_path, trainer):
    train_study(STUDY, tmp_path)
    said = Store(tmp_path).metadata("mlp-w8", 2)
    assert (said["family"], said["width"], said["size"]) == ("mlp", "8.0", "139")
    assert said["multiply_adds"] == str(4 * 8 + 8 * 8 + 8 * 3)
    assert said["recipe"].startswith(f"few: few {few_objects().fingerprint[:12]}, ")
    assert "learning_rate 0.1" in said["recipe"]
    extra = {k.removeprefix("extra.") for k in said if k.startswith("extra.")}
    assert extra == {
        *("study", "seconds", "prediction_seconds", "together"),
        *("device", "precision", "torch"),
    }


def test_a_study_that_grows_trains_only_what_is_new(tmp_path, trainer):
    train_study(STUDY, tmp_path)
    trainer.asked.clear()
    more = Study.of({**DECLARED, "widths": [4, 8, 16], "networks": [7, 3, 1]})
    assert train_study(more, tmp_path).trained == 2
    assert trainer.asked == [(4, [6], 0), (16, [0], 0)]


def test_weights_are_kept_where_they_are_asked_for(tmp_path, trainer):
    train_study(STUDY, tmp_path / "with", keep_weights=True)
    train_study(STUDY, tmp_path / "without")
    kept = (tmp_path / "with" / "weights").rglob("*.safetensors")
    assert len(list(kept)) == 9
    assert not (tmp_path / "without" / "weights").exists()


def test_exactly_these_networks_are_trained(tmp_path, trainer):
    result = train_networks(STUDY, tmp_path, 5, [3, 1])
    assert (result.runs, result.done) == (2, 2)
    assert seeds_in(tmp_path) == {"mlp-w5": [1, 3]}
    assert train_networks(STUDY, tmp_path, 5, [1, 2]).trained == 1
    with pytest.raises(InputError, match="width is 0"):
        train_networks(STUDY, tmp_path, 0, [1])
    with pytest.raises(InputError, match="seed is -1"):
        train_networks(STUDY, tmp_path, 4, [-1])


@pytest.mark.parametrize("looks", [0, 1, 3, 6, 8, 14])
def test_what_is_stopped_goes_on_and_ends_as_if_it_had_not_been(
    tmp_path, trainer, reference, looks, monkeypatch
):
    with monkeypatch.context() as halted:
        halted.setattr("ensize.train.studies.Stop.__call__", after(looks))
        first = train_study(STUDY, tmp_path / "store")
    assert first.done < 9
    left = missing(STUDY, Store(tmp_path / "store"))
    assert len(left) == 9 - first.done
    trainer.asked.clear()
    second = train_study(STUDY, tmp_path / "store")
    assert first.trained + second.trained == second.done == 9
    if looks in (3, 8):  # in the midst of a committee
        assert trainer.asked[0][2] > 0
    assert_same(tmp_path / "store", reference)
    assert not (tmp_path / "store" / "unfinished").exists()


def test_minutes_are_kept_to(tmp_path, trainer):
    trainer.seconds = 0.02
    result = train_study(STUDY, tmp_path, minutes=0.0005)
    assert result.stopped == "time"
    assert result.seconds < 3
    assert result.done < 9
    assert train_study(STUDY, tmp_path).stopped is None
    assert whole(tmp_path)
    with pytest.raises(InputError, match="minutes is 0"):
        train_study(STUDY, tmp_path, minutes=0)


def test_parts_train_different_networks_and_together_all(tmp_path, trainer, reference):
    for part in ("2/3", "1/3", "3/3"):
        result = train_study(STUDY, tmp_path / "store", part=part)
        assert (result.runs, result.trained) == (3, 3)
    asked = [(width, seed) for width, seeds, _ in trainer.asked for seed in seeds]
    assert len(asked) == len(set(asked)) == 9
    assert_same(tmp_path / "store", reference)


def test_a_part_that_is_at_work_is_left_alone(tmp_path, trainer):
    with Worker(tmp_path / "unfinished") as other:
        assert other.take("mlp-w4", [0, 2]) == [0, 2]
        result = train_study(STUDY, tmp_path)
    assert (result.done, result.trained) == (7, 7)
    assert seeds_in(tmp_path)["mlp-w4"] == [1, 3, 4, 5]
    (warning,) = result.warnings
    assert warning.startswith("2 networks are being trained by other processes")
    assert train_study(STUDY, tmp_path).trained == 2


def test_workers_of_any_executor_share_the_work(tmp_path, trainer, reference):
    trainer.seconds = 0.01
    with ThreadPoolExecutor(3) as executor:
        result = train_study(STUDY, tmp_path / "store", executor=executor)
    assert (result.done, result.trained) == (9, 9)
    asked = [(width, seed) for width, seeds, _ in trainer.asked for seed in seeds]
    assert len(asked) == len(set(asked)) == 9
    assert_same(tmp_path / "store", reference)


def test_an_error_of_one_worker_stops_the_others_and_is_told(tmp_path, trainer):
    trainer.raises = lambda width, seeds: InputError("no") if 0 in seeds else None
    with (
        ThreadPoolExecutor(2) as executor,
        pytest.raises(InputError, match=r"^no$"),
    ):
        train_study(STUDY, tmp_path, executor=executor)
    assert Store(tmp_path).verify() == ()


def test_two_processes_train_one_study(tmp_path, trainer, alone, reference):
    store, trainer.seconds = tmp_path / "store", 0.02
    log = tmp_path / "log"

    def note(width, seeds):
        with log.open("a") as file:
            file.writelines(f"{os.getpid()} {width} {seed}\n" for seed in seeds)

    trainer.raises = note
    running = [alone(store) for _ in range(2)]
    for child in running:
        os.waitpid(child, 0)
    lines = [line.split() for line in log.read_text().splitlines()]
    assert len(lines) == len({(width, seed) for _, width, seed in lines}) == 9
    assert {int(process) for process, _, _ in lines} <= set(running)
    assert_same(store, reference)


def test_what_a_killed_process_had_begun_is_taken_over(
    tmp_path, trainer, alone, reference
):
    store, trainer.seconds = tmp_path / "store", 0.5
    child = alone(store)
    until_begun(store)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert list((store / "unfinished" / "mlp-w4").iterdir())
    trainer.seconds = 0
    assert train_study(STUDY, store).trained == 9
    assert_same(store, reference)
    assert not (store / "unfinished").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_good_order(tmp_path, trainer, alone, reference, number):
    store, trainer.seconds = tmp_path / "store", 0.3
    child = alone(store)
    until_begun(store)
    time.sleep(0.4)
    os.kill(child, number)
    assert os.waitpid(child, 0)[1] == 0
    ((seeds, _),) = checkpoints_in(store / "unfinished" / "mlp-w4")
    assert seeds == [0, 1, 2, 3]
    assert not list((store / "unfinished").glob("*.worker"))
    trainer.seconds = 0
    assert train_study(STUDY, store).trained == 9
    assert trainer.asked[0][2] > 0
    assert_same(store, reference)


def test_a_signal_is_told(tmp_path, trainer):
    trainer.raises = lambda *_: os.kill(os.getpid(), signal.SIGINT)
    result = train_study(STUDY, tmp_path)
    assert result.stopped == signal.SIGINT
    assert result.done < 9


def test_killed_at_random_moments_a_study_still_ends_whole(
    tmp_path, trainer, alone, reference
):
    """Twenty kills: no damaged file, and nothing trained that was there already."""
    store, chance, log = tmp_path / "store", random.Random(0), tmp_path / "log"
    trainer.seconds = 0.06  # long enough to be killed in, on a quick machine too

    def check(width, seeds):
        there = Store(store).seeds(f"mlp-w{width}")
        with log.open("a") as file:
            file.write(f"{all(seed in there for seed in seeds)}\n")

    trainer.raises = check
    for _ in range(20):
        child = alone(store, every=0.01)
        time.sleep(chance.uniform(0, 0.3))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert Store(store).verify() == ()
    train_study(STUDY, store, every=0.01)
    assert "True" not in log.read_text()
    assert log.read_text().count("\n") > 4
    assert_same(store, reference)


def test_a_network_that_diverges_is_replaced_once(tmp_path, trainer):
    trainer.diverges = lambda width, seed: (width, seed) == (4, 2)
    result = train_study(STUDY, tmp_path)
    assert (result.done, result.failed, result.warnings) == (9, 0, ())
    assert seeds_in(tmp_path)["mlp-w4"] == [0, 1, 3, 4, 5, MOST + 2]
    assert (tmp_path / "failures" / "mlp-w4" / "2.json").exists()
    assert train_study(STUDY, tmp_path).trained == 0


def test_a_network_that_diverges_twice_is_left_out_and_named(tmp_path, trainer):
    trainer.diverges = lambda width, seed: width == 4 and seed % MOST == 2
    for _ in range(2):
        result = train_study(STUDY, tmp_path)
        assert (result.done, result.failed) == (8, 1)
        assert result.failures[0].reason == "its loss is not finite"
        (warning,) = result.warnings
        assert warning.startswith(
            "mlp-w4/1000002 is left out: its loss is not finite; the ensembles"
        )
    tried = [seeds for _, seeds, _ in trainer.asked if MOST + 2 in seeds]
    assert tried == [[4, 5, MOST + 2]]


def test_without_a_retry_a_failure_is_left_out_at_once(tmp_path, trainer):
    trainer.diverges = lambda width, seed: (width, seed) == (4, 2)
    result = train_study(STUDY, tmp_path, retry=False)
    assert (result.done, result.failed, result.failures[0].seed) == (8, 1, 2)


def test_logits_that_are_not_finite_are_a_failure(tmp_path, trainer, monkeypatch):
    step = trainer._step

    def overflow(study, width, seed, recipe, epoch, data):
        good = step(study, width, seed, recipe, epoch, data)
        return good * (np.nan if seed == 1 else 1)

    monkeypatch.setattr(trainer, "_step", overflow)
    result = train_study(STUDY, tmp_path)
    assert seeds_in(tmp_path)["mlp-w4"] == [0, 2, 3, 4, 5, MOST + 1]
    assert result.failed == 0


def test_want_of_memory_sinks_only_its_committee(tmp_path, trainer):
    def raises(width, seeds):
        return RuntimeError("out of memory\nlong story") if width == 8 else None

    trainer.raises = raises
    result = train_study(STUDY, tmp_path)
    assert (result.done, result.given_up, result.failed) == (6, 3, 0)
    (warning,) = result.warnings
    assert warning == (
        "3 networks of mlp-w8 could not be trained (out of memory); the same command"
        " tries them again"
    )
    assert len(trainer.asked) == 3
    trainer.raises = None
    assert train_study(STUDY, tmp_path).trained == 3
    assert whole(tmp_path)


def test_a_full_disk_is_named_and_the_store_stays_whole(
    tmp_path, trainer, reference, monkeypatch
):
    store, written = tmp_path / "store", iter(range(16))

    def fsync(_):
        if next(written, None) is None:
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(files.os, "fsync", fsync)
        with pytest.raises(InputError, match="No space left on device"):
            train_study(STUDY, store)
    assert 0 < len(logits(store)) < 9
    assert Store(store).verify() == ()
    assert Store(store).partials() == ()
    train_study(STUDY, store)
    assert_same(store, reference)


def test_the_store_of_other_objects_is_refused(tmp_path, trainer):
    Store(tmp_path).add("mine", 0, [[2.0, 0.0], [0.0, 2.0]], [0, 1])
    with pytest.raises(InputError, match=r"targets\.npy is not of the test set of few"):
        train_study(STUDY, tmp_path)
    assert trainer.asked == []
    assert not (tmp_path / "study.toml").exists()


def test_a_pool_of_another_recipe_is_refused_before_anything_is_trained(
    tmp_path, trainer
):
    train_networks(STUDY, tmp_path, 4, [0])
    (tmp_path / "study.toml").unlink()
    other = Study.of({**DECLARED, "recipe": {**DECLARED["recipe"], "epochs": 6}})
    trainer.asked.clear()
    with pytest.raises(InputError, match="its recipe is"):
        train_study(other, tmp_path)
    assert trainer.asked == []


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"executor": "procesess"}, "did you mean 'processes'"),
        ({"executor": 3}, "executor is 3, which has no map"),
        ({"part": "3/2"}, "give K/N"),
        ({"every": 0}, "every is 0"),
    ],
)
def test_a_mistake_leaves_no_store(tmp_path, trainer, how, sentence):
    with pytest.raises(InputError, match=sentence):
        train_study(STUDY, tmp_path / "store", **how)
    assert not (tmp_path / "store").exists()


def test_a_thread_may_train_a_study(tmp_path, trainer):
    """Signals belong to the main thread, and are left to it."""
    before, found = signal.getsignal(signal.SIGINT), []
    thread = threading.Thread(
        target=lambda: found.append(train_study(STUDY, tmp_path).done)
    )
    thread.start()
    thread.join()
    assert found == [9]
    assert signal.getsignal(signal.SIGINT) is before


def test_costs_are_told_before_anything_is_trained(tmp_path, trainer):
    found = costs(STUDY, tmp_path / "store")
    assert [(each.pool, each.runs, each.missing) for each in found] == [
        ("mlp-w4", 6, 6),
        ("mlp-w8", 3, 3),
    ]
    # 1 step of 40 objects in an epoch; 5 epochs; 2 and 1 committees.
    assert [each.seconds for each in found] == pytest.approx([0.01, 0.005])
    assert [each.together for each in found] == [4, 3]
    assert [each.size for each in found] == [55, 139]
    assert not (tmp_path / "store").exists()
    assert trainer.asked == []
    train_networks(STUDY, tmp_path / "store", 4, range(5))
    first, _ = costs(STUDY, tmp_path / "store")
    assert (first.missing, first.together) == (1, 1)
    assert missing(STUDY, Store(tmp_path / "store"))[0] == Run("mlp-w4", 4, 5)
