"""What becomes of an input: taken, refused with a sentence, or a fault of ours."""

import contextlib
import os
import resource
import signal
import tempfile
import traceback
import warnings
from pathlib import Path
from random import Random

from ensize import InputError
from hostile.readers import READERS

SECONDS = 10
_DUMPS = ("Traceback", "object at 0x")
ROOM = 2**30  # bytes


class HungError(BaseException):
    """The input was not done with in time; nobody may catch this on the way."""


def number(seed, reader, index):
    """Give each input a generator of its own, so that it can be made again alone."""
    return Random(f"{seed} {reader} {index}")


def judge(reader, random):
    """Make an input and have it read: what became of it, and why."""
    reader.spoil(random)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            reader.read()
    except InputError as error:
        signal.setitimer(signal.ITIMER_REAL, 0)
        return ("refused", "") if sentence(str(error)) else ("traceback", repr(error))
    except HungError:
        return "hang", traceback.format_exc(limit=-4)
    except Exception:  # noqa: BLE001 - this is what is looked for
        signal.setitimer(signal.ITIMER_REAL, 0)
        return "traceback", traceback.format_exc(limit=-6)
    signal.setitimer(signal.ITIMER_REAL, 0)
    return "accepted", ""


def sentence(text):
    """Tell whether people can read it: words, and no dump of an exception."""
    return (
        len(text.split()) > 2 and "Traceback" not in text and "object at 0x" not in text
    )


@contextlib.contextmanager
def prepared(name):
    """Stand in a folder of its own with a reader's valid files."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        old = signal.signal(signal.SIGALRM, _ring)
        try:
            yield READERS[name]()
        finally:
            signal.signal(signal.SIGALRM, old)
            os.chdir(before)


def bound_memory():
    """Let this process have so much more memory, and no more."""
    held = _memory("VmSize")
    resource.setrlimit(resource.RLIMIT_AS, (held + ROOM, held + ROOM))


def forget_peak():
    """Measure the peak of this process's memory from now on; say what it holds."""
    Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmRSS")


def peak():
    """Say how much memory this process held at most."""
    return _memory("VmHWM")


def _memory(key):
    lines = Path("/proc/self/status").read_text().splitlines()
    said = dict(line.split(":", 1) for line in lines)
    return int(said[key].split()[0]) * 1024


def _ring(*_):
    raise HungError
