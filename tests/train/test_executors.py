import os
import signal
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from ensize import InputError
from ensize.train.executors import (
    EXECUTORS,
    Here,
    Processes,
    devices_of,
    executor_of,
)


def fragile(task):
    if task == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if task == "fails":
        raise InputError("as it should")
    ignored = [
        signal.getsignal(number) == signal.SIG_IGN
        for number in (signal.SIGINT, signal.SIGTERM)
    ]
    return os.getpid(), ignored


def test_here_does_a_task_when_its_result_is_asked_for():
    begun = []
    results = Here("cpu").map(begun.append, [1, 2])
    assert begun == []
    next(results)
    assert begun == [1]


def test_what_dies_or_fails_in_a_process_takes_only_its_own_task():
    executor = Processes(["cpu"] * 3)
    results = list(executor.map(fragile, ["dies", "fails", "works"]))
    assert len(results) == 3
    assert any(isinstance(each, BrokenExecutor) for each in results)
    assert any(isinstance(each, InputError) for each in results)
    ((process, ignored),) = (each for each in results if isinstance(each, tuple))
    assert process != os.getpid()
    # Signals are left to the process that began the others.
    assert ignored == [True, True]


def test_an_executor_is_known_by_its_name():
    assert isinstance(executor_of("here", "cpu"), Here)
    assert executor_of("processes", "cpu").devices[0] == "cpu"
    with pytest.raises(InputError, match="did you mean 'processes'"):
        executor_of("process")
    with pytest.raises(InputError, match="which has no map"):
        executor_of(SimpleNamespace())
    with ThreadPoolExecutor(2) as mine:
        assert executor_of(mine) is mine
        assert devices_of(mine, "cpu") == ("cpu", "cpu")
    assert devices_of(SimpleNamespace(workers=3), None) == (None,) * 3
    assert "here" in EXECUTORS


def test_a_device_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    with pytest.raises(InputError, match="there is no GPU here; give --device cpu"):
        Processes.on("cuda")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert Processes.on("cuda").devices == ("cuda:0", "cuda:1")
    assert Processes.on("cuda:1").devices == ("cuda:1",)
    assert Processes.on(None).devices == ("cuda:0", "cuda:1")
