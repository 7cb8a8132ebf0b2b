"""Do to stores what happens to them, and count what becomes of them.

Processes that record, study, search or demonstrate are killed (``kill -9``) at random
moments, and begun again until they end by themselves. After each kill every file of the
store is verified; no network that was there may be missing, or written again; and none
that is there may be trained again. In the end the store holds what one uninterrupted
process leaves. Disks become full and read-only (small filesystems in memory: for root),
files lose their end or one bit, the clock goes back, and many work at once.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import ensize
from ensize import InputError, Store
from ensize.cli import main as terminal
from ensize.stores import FileArray
from ensize.train import loop
from ensize.train.studies import Study, train_study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STUDY = """
name = "few"
dataset = "digits"
family = "mlp"
widths = [4, 8]
networks = [6, 4]
[recipe]
epochs = 6
learning_rate = 0.1
weight_decay = 0.0
"""
# Of 100 kills, those that each verb gets.
KILLS = {"record": 34, "study": 34, "study, two processes": 4, "search": 20, "demo": 8}
LOG = "ENSIZE_FAULTS_LOG"


@dataclass
class Row:
    """One line of the table."""

    fault: str
    times: int
    seen: str
    sound: bool = True


@dataclass
class Tally:
    """What was seen of a verb that was killed."""

    kills: int = 0
    stores: int = 0
    damaged: int = 0
    lost: int = 0
    again: int = 0
    off: float = 0.0
    notes: set[str] = field(default_factory=set)


def watch() -> None:
    """Have this process note each network that it begins to train, or trains again."""
    committee = loop._Committee  # noqa: SLF001 - what it does is looked at
    learn = committee.learn

    def noted(self: Any, kept: Any, *rest: Any) -> None:
        if kept is not None and self.epoch < self.recipe.epochs:
            root = next(each for each in kept.path.parents if each.name == "unfinished")
            pool = root.parent / "pools" / f"{self.family}-w{self.width}"
            with Path(os.environ[LOG]).open("a") as log:
                for seed in self.seeds:
                    there = (pool / f"{seed.number}.safetensors").exists()
                    log.write(f"{pool.name}/{seed.number} {int(there)} {self.epoch}\n")
        learn(self, kept, *rest)

    committee.learn = noted  # type: ignore[method-assign]


if LOG in os.environ:  # in a process that another one of these has begun
    watch()


def forked(work: Callable[[], Any]) -> int:
    """Begin a process, in a group of its own, that has loaded everything already."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        work()
        code = 0
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        os._exit(code)


def ended(child: int) -> int:
    """Wait for a process, and return its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def verb(*line: object) -> Callable[[], None]:
    """Make a verb of the terminal something that a process can do."""

    def work() -> None:
        sys.argv = ["ensize", *map(str, line)]
        terminal()

    return work


def record(folder: Path) -> Callable[[], None]:
    """Record 12 networks, batch by batch, as an evaluation loop does."""

    def work() -> None:
        for seed in range(12):
            draw = np.random.default_rng(seed)
            with Store(folder / "store").record("pool", seed=seed, size=1000) as each:
                for batch in range(20):
                    logits = draw.normal(0, 3, (100, 10)).astype(np.float32)
                    each.update(logits, (np.arange(100) + batch) % 10)
                    time.sleep(0.001)

    return work


def job(name: str, folder: Path) -> Callable[[], None]:
    """Say what a process does, in a folder: its store is store/."""
    store, study = folder / "store", folder.parent / "few.toml"
    study.write_text(STUDY)
    often = ("--every", 0.05)
    if name == "record":
        return record(folder)
    if name == "demo":
        return verb("demo", "-o", folder, "--networks", 14, "--no-report")
    if name == "search":
        budget = ("--budget", "8k", "--patience", 2)
        return verb("search", study, "--store", store, *budget, *often)
    two = ("--executor", "processes") if "two" in name else ()
    return verb("study", study, "--store", store, *often, *two)


def networks(store: Path) -> dict[str, tuple[int, int, int]]:
    """List the networks that are there, and which files they are."""
    found = {}
    for path in store.glob("pools/*/*.safetensors"):
        seen = path.stat()
        name = f"{path.parent.name}/{path.stem}"
        found[name] = seen.st_ino, seen.st_mtime_ns, seen.st_size
    return found


def logits(store: Path) -> dict[str, np.ndarray]:
    """Read all networks of a store."""
    found = {}
    for pool in Store(store).pools():
        read = Store(store).read(pool.name)
        for label, rows in zip(read.labels, read.rows, strict=True):
            found[label] = rows[:].astype(np.float64)
    return found


def difference(one: Path, other: Path) -> float:
    """Return the largest difference of logits; infinite where networks differ."""
    mine, theirs = logits(one), logits(other)
    if set(mine) != set(theirs):
        return float("inf")
    return max(float(np.abs(mine[each] - theirs[each]).max()) for each in mine)


def killed(name: str, kills: int, root: Path, chance: random.Random) -> Row:
    """Kill a verb so many times, at random moments."""
    log, tally = root / "log", Tally()
    os.environ[LOG] = str(log)
    log.write_text("")
    whole = root / "whole"
    began = time.monotonic()
    if code := ended(forked(job(name, whole))):
        raise RuntimeError(f"{name} ended with {code}")
    lasts = time.monotonic() - began
    while tally.kills < kills:
        folder = Path(tempfile.mkdtemp(dir=root))
        before: dict[str, Any] = {}
        while True:
            log.write_text("")
            child = forked(job(name, folder))
            deadline = time.monotonic() + chance.uniform(0, lasts)
            while tally.kills < kills and time.monotonic() < deadline:
                if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                    break
                time.sleep(0.002)
            over = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if not over and tally.kills < kills:
                os.killpg(child, signal.SIGKILL)
                tally.kills += 1
            code = ended(child)
            time.sleep(0.2 if "two" in name else 0)  # its processes die after it
            store, now = folder / "store", networks(folder / "store")
            tally.lost += sum(before[each] != now.get(each) for each in before)
            tally.again += sum(
                line.split()[1] == "1" for line in log.read_text().splitlines()
            )
            if store.exists():
                tally.damaged += bool(Store(store).verify())
            before = now
            if code != -signal.SIGKILL:
                tally.notes |= {f"exit code {code}"} if code else set()
                break
        tally.stores += 1
        tally.off = max(tally.off, difference(folder / "store", whole / "store"))
        left = [each.name for each in (folder / "store").glob("unfinished/**/*")]
        tally.notes |= {f"left in unfinished: {each}" for each in left}
        shutil.rmtree(folder)
    same = "the same bits" if not tally.off else f"within {tally.off:.0e} in the logits"
    seen = (
        f"{tally.stores} stores: {tally.damaged} damaged, {tally.lost} networks lost or"
        f" written again, {tally.again} trained twice; each ends as the uninterrupted"
        f" one, {same}{''.join('; ' + each for each in sorted(tally.notes))}"
    )
    bad = tally.damaged or tally.lost or tally.again or tally.notes or tally.off > 1e-3
    return Row(f"`kill -9` of {name}", tally.kills, seen, not bad)


def many_writers(root: Path) -> list[Row]:
    """Let eight processes record, and eight train, the same networks at once."""
    rows = []
    log = root / "log"
    os.environ[LOG] = str(log)
    for name, what in (("record", "recording"), ("study", "training")):
        log.write_text("")
        one, eight = root / f"{what}-one", root / f"{what}-eight"
        codes = [ended(forked(job(name, one)))]
        log.write_text("")
        children = [forked(job(name, eight)) for _ in range(8)]
        codes += [ended(child) for child in children]
        begun = [line.split()[0] for line in log.read_text().splitlines()]
        twice = len(begun) - len(set(begun))
        off = difference(one / "store", eight / "store")
        damage = len(Store(eight / "store").verify()) + len(
            Store(eight / "store").partials()
        )
        trained = f", {twice} trained twice" if name == "study" else ""
        seen = (
            f"{len(networks(eight / 'store'))} networks, as one writer leaves them"
            f" (logits differ by {off:.0e}){trained}, {damage} files damaged or left"
        )
        sound = not (damage or twice or off > 1e-3 or any(codes))
        rows.append(Row(f"eight processes {what} into one store", 8, seen, sound))
    return rows


@contextlib.contextmanager
def small_disk(root: Path, size: str) -> Iterator[Path]:
    """Mount a small filesystem in memory."""
    place = Path(tempfile.mkdtemp(dir=root))
    how = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(place)]
    subprocess.run(how, check=True, capture_output=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def remount(place: Path, how: str) -> None:
    """Change a mounted filesystem."""
    subprocess.run(["mount", "-o", f"remount,{how}", str(place)], check=True)


def told(*line: object) -> tuple[int, str]:
    """Run a verb as people do; return its exit code, and its last line on stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "ensize", *map(str, line)],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stderr.strip().splitlines()
    return done.returncode, lines[-1] if lines else ""


def disks(root: Path) -> list[Row]:
    """Fill a disk, and make one read-only, while networks come in."""
    rows = []
    root.mkdir(parents=True, exist_ok=True)
    study = root / "few.toml"
    study.write_text(STUDY)
    if os.geteuid():
        return [Row("disk full; folder read-only", 0, "left out: for root alone")]
    with small_disk(root, "300k") as place:
        refusals = 0
        try:
            record(place)()
        except InputError as error:
            refusals += os.strerror(errno.ENOSPC) in str(error)
        store = Store(place / "store")
        there, damage = len(store.seeds("pool")), len(store.verify())
        partial = len(store.partials())
        remount(place, "size=20m")
        record(place)()
        seen = (
            f"refused with a sentence at network {there} of 12; {damage} damaged,"
            f" {partial} partial files; with more room the rest came in:"
            f" {len(store.seeds('pool'))}"
        )
        sound = refusals == 1 and not damage and not partial and 0 < there < 12
        rows.append(Row("disk full while recording", 1, seen, sound))
    with small_disk(root, "150k") as place:
        line = ("study", study, "--store", place / "store", "--every", 0.05)
        code, said = told(*line)
        damage = len(Store(place / "store").verify())
        there = len(networks(place / "store"))
        remount(place, "size=20m")
        after, _ = told(*line)
        seen = (
            f"exit code {code}, “{said.split('(')[-1].split(')')[0]}”; {there} networks"
            f" there, {damage} damaged; with more room the same command ends with"
            f" {after} and {len(networks(place / 'store'))} networks"
        )
        sound = code == 2 and not damage and not after
        rows.append(Row("disk full during a study", 1, seen, sound))
        remount(place, "ro")
        more = study.with_name("more.toml")
        more.write_text(STUDY.replace("[6, 4]", "[7, 4]"))
        code, said = told("study", more, "--store", place / "store")
        reads = [told(each, place / "store")[0] for each in ("status", "verify")]
        seen = (
            f"study: exit code {code}, “{said.split('(')[-1].split(')')[0]}”; `status`"
            f" and `verify` work ({reads[0]}, {reads[1]})"
        )
        rows.append(Row("folder read-only", 3, seen, code == 2 and reads == [0, 0]))
    return rows


def damage(root: Path, flips: int, chance: random.Random) -> list[Row]:
    """Flip bits, cut files; see that each is named, moved aside and trained again."""
    log = root / "log"
    root.mkdir(parents=True, exist_ok=True)
    os.environ[LOG] = str(log)
    log.write_text("")
    study = root / "few.toml"
    grid = "[tuning]\nlearning_rate = [0.1, 0.2]\nweight_decay = [0.0]\n"
    study.write_text(STUDY + grid)
    line = ("study", study, "--store", root / "store", "--keep-weights")
    if code := ended(forked(verb(*line))):
        raise RuntimeError(f"the study ended with {code}")
    store = Store(root / "store")
    files = [each for each in sorted(store.path.rglob("*")) if each.is_file()]
    rows = []
    for what in ("with a flipped bit", "cut short"):
        named = 0
        for _ in range(flips):
            path = chance.choice(files)
            whole = path.read_bytes()
            at = chance.randrange(len(whole))
            spoiled = bytearray(whole)
            spoiled[at] ^= 1 << chance.randrange(8)
            path.write_bytes(spoiled if "bit" in what else whole[:at])
            found = {each.path for each in store.verify()}
            named += found == {str(path.relative_to(store.path))}
            path.write_bytes(whole)
        seen = f"named by `verify`, it and no other: {named} of {flips}"
        rows.append(Row(f"a file {what}", flips, seen, named == flips))
    times, exact = 10, 0
    for _ in range(times):
        chosen = chance.sample(sorted(networks(store.path)), chance.randrange(1, 5))
        for name in chosen:
            path = store.path / f"pools/{name}.safetensors"
            spoiled = bytearray(path.read_bytes())
            spoiled[chance.randrange(len(spoiled))] ^= 1
            path.write_bytes(spoiled)
        moved = [each for each in store.verify(repair=True) if each.moved]
        log.write_text("")
        code = ended(forked(verb(*line)))
        trained = {each.split()[0] for each in log.read_text().splitlines()}
        exact += (
            trained == set(chosen)
            and len(moved) == len(chosen)
            and not (code or store.verify())
        )
    seen = f"trains those that were moved aside, and no other: {exact} of {times}"
    rows.append(Row("`verify --repair` and `study`", times, seen, exact == times))
    return rows


def clock(root: Path) -> Row:
    """Set the clock of a process back by a day, and files to other centuries."""
    root.mkdir(parents=True, exist_ok=True)
    os.environ[LOG] = str(root / "log")
    (root / "log").write_text("")
    whole, back = root / "whole", root / "back"
    ended(forked(job("study", whole)))

    def work() -> None:
        now, begun = time.time, time.monotonic()
        time.time = lambda: (  # type: ignore[assignment]
            now() - (86_400 if time.monotonic() > begun + 0.1 else 0)
        )
        train_study(Study.read(back.parent / "few.toml"), back / "store", every=0.05)

    child = forked(work)
    time.sleep(0.5)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    ended(child)
    files = [each for each in back.rglob("*") if each.is_file()]
    for i, path in enumerate(files):
        at = (0, 4_102_444_800)[i % 2]  # 1970 and 2100
        os.utime(path, (at, at))
    code = ended(forked(work))
    off = difference(back / "store", whole / "store")
    damaged = len(Store(back / "store").verify())
    seen = (
        f"exit code {code}, {damaged} damaged; ends as without it (logits differ by"
        f" {off:.0e})"
    )
    sound = not (code or damaged or off > 1e-3)
    fault = "clock a day back in mid-study; killed; files of 1970 and 2100"
    return Row(fault, 1, seen, sound)


def held() -> int:
    """Say how much anonymous memory this process holds."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise LookupError("RssAnon")


def large(root: Path, objects: int) -> list[Row]:
    """Score a pool of very many objects, and one whose disk is slow."""
    store, classes, count = Store(root / "store"), 10, 8
    targets = np.arange(objects) % classes
    for seed in range(count):
        draw = np.random.default_rng(seed)
        with store.record("large", seed=seed, dtype="float16") as each:
            for start in range(0, objects, 10_000):
                truth = targets[start : start + 10_000]
                each.update(
                    draw.normal(0, 2, (len(truth), classes))
                    + 3 * np.eye(classes)[truth],
                    truth,
                )
    size = sum(each.stat().st_size for each in store.path.rglob("*.safetensors"))
    rows = []
    for slow in (False, True):
        peak, gaps, words, longest = measured_score(store, slow=slow)
        fault = f"a pool of {count} networks and {objects:,} objects"
        if slow:
            fault += "; 50 ms before each read, 100 MB/s"
        seen = (
            f"{size / 2**20:.0f} MiB on the disk; {peak / 2**20:.0f} MiB of memory at"
            f" most; progress told {words} times, every {longest:.1f} s or more often"
        )
        rows.append(Row(fault, 1, seen, gaps))
    return rows


def measured_score(store: Store, *, slow: bool) -> tuple[int, bool, int, float]:
    """Score in a process of its own, and say what it took."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        read = FileArray._read  # noqa: SLF001 - a disk is to be slow

        def slowly(self: FileArray, start: int, stop: int) -> Any:
            found = read(self, start, stop)
            time.sleep(0.05 + (0 if found is None else found.nbytes / 1e8))
            return found

        if slow:
            FileArray._read = slowly  # type: ignore[method-assign]  # noqa: SLF001
        before, peak, at, longest, words = held(), 0, time.monotonic(), 0.0, 0

        def tell(*_: Any) -> None:
            nonlocal peak, at, longest, words
            now = time.monotonic()
            peak, longest, at = max(peak, held() - before), max(longest, now - at), now
            words += 1

        ensize.score(store.read(), n=[1, 2, 4, 8], progress=tell)
        os.write(writing, f"{peak} {longest} {words}".encode())
        os._exit(0)
    code = ended(child)
    os.close(writing)
    peak, longest, words = os.read(reading, 1000).split()
    return int(peak), not code, int(words), float(longest)


def main() -> None:
    """Run all of it, and print the table."""
    parts = ("kills", "writers", "disks", "damage", "clock", "large")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--flips", type=int, default=400)
    parser.add_argument("--objects", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=[*parts, *KILLS])
    given = parser.parse_args()
    watch()
    chance, rows = random.Random(given.seed), []

    def show(some: list[Row]) -> None:
        rows.extend(some)
        for each in some:
            print(f"| {each.fault} | {each.times} | {each.seen} |", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        print("| fault | times | what was seen |\n|---|---:|---|")
        for name, share in KILLS.items():
            if given.only in (None, "kills", name):
                place = root / f"kills-{name[:9]}"
                place.mkdir()
                show([killed(name, given.kills * share // 100, place, chance)])
        if given.only in (None, "writers"):
            (root / "writers").mkdir()
            show(many_writers(root / "writers"))
        if given.only in (None, "disks"):
            show(disks(root / "disks"))
        if given.only in (None, "damage"):
            show(damage(root / "damage", given.flips, chance))
        if given.only in (None, "clock"):
            show([clock(root / "clock")])
        if given.only in (None, "large"):
            show(large(root / "large", given.objects))
    sys.exit(not all(each.sound for each in rows))


if __name__ == "__main__":
    main()
