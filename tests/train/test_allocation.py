"""What is freed stays, so that a step meets no new pages."""

import resource
import subprocess
import sys

import pytest

from ensize.train import allocation

FAULTS = """
import resource, torch
from ensize.train.allocation import keep_memory
if {keep}:
    assert keep_memory()
for _ in range(3):
    torch.ones(2_000_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    a = [torch.ones(2_000_000) for _ in range(3)]
    del a
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(*, keep):
    code = FAULTS.format(keep=keep)
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc is asked")
def test_steps_meet_no_new_pages():
    pages = 3 * 8_000_000 // resource.getpagesize()
    assert faults(keep=True) < 3 * pages  # those of the first of 50 steps


@pytest.mark.parametrize("missing", ["platform", "mallopt"])
def test_other_c_libraries_are_left_alone(monkeypatch, missing):
    if missing == "platform":
        monkeypatch.setattr(sys, "platform", "darwin")
    else:
        monkeypatch.setattr(allocation.ctypes, "CDLL", lambda _: object())
    allocation.keep_memory.cache_clear()
    assert allocation.keep_memory() is False
    allocation.keep_memory.cache_clear()


def test_an_older_glibc_keeps_what_it_can(monkeypatch):
    asked = []

    class Old:
        @staticmethod
        def mallopt(what, value):
            asked.append((what, value))
            return int(what == -1 or value <= 1 << 25)

    monkeypatch.setattr(allocation.ctypes, "CDLL", lambda _: Old)
    monkeypatch.setattr(sys, "platform", "linux")
    allocation.keep_memory.cache_clear()
    assert allocation.keep_memory() is True
    allocation.keep_memory.cache_clear()
    assert asked == [(-3, 1 << 30), (-3, 1 << 25), (-1, 1 << 30)]
