"""Hand hostile input to every reader, and count what becomes of it.

Each input is made from a number, so ``--only npz --from 17 --inputs 1`` makes one
again. An input is accepted, or refused with a sentence; everything else is a fault:
another exception or a warning (a traceback), more than 10 seconds (a hang), or the end
of the process. Each process may take 1 GiB more memory than it began with; what it took
at most is printed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

os.environ["OMP_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from hostile import judging

# Of 100 inputs, those that each reader gets.
SHARES = {"npy": 20, "npz": 15, "safetensors": 20, "csv": 14, "text": 4}
SHARES |= {"toml": 14, "store": 8, "terminal": 5}
COLUMNS = {"accepted": "accepted", "refused": "refused", "traceback": "tracebacks"}
COLUMNS |= {"hang": "hangs", "died": "died"}
# Inputs handed to a process, and how often one is started again.
CHUNK, DEATHS = 2000, 10
# An input that nothing can interrupt is given up after so many seconds.
PATIENCE = 60


class Job(NamedTuple):
    """Inputs for one process."""

    reader: str
    seed: int
    first: int
    stop: int


class Found(NamedTuple):
    """What became of them."""

    reader: str
    counts: Counter[str]
    faults: list[tuple[int, str, str]]  # number, outcome, why
    peak: int


def judge_some(job: Job, at: Any, told: Any) -> None:
    """Judge some inputs, in a process of their own."""
    counts: Counter[str] = Counter()
    faults = []

    def random(index: int) -> Any:
        return judging.number(job.seed, job.reader, index)

    with judging.prepared(job.reader) as reader:
        judging.judge(reader, random(-1))  # loads what it needs
        judging.bound_memory()
        before = judging.forget_peak()
        for index in range(job.first, job.stop):
            at.value = index
            outcome, why = judging.judge(reader, random(index))
            counts[outcome] += 1
            if why:
                faults.append((index, outcome, f"{getattr(reader, 'line', '')}\n{why}"))
        told.put(Found(job.reader, counts, faults, judging.peak() - before))


def run(job: Job) -> Found:
    """Run a process; where it ends early, name the input and go on behind it."""
    context = multiprocessing.get_context("spawn")
    counts: Counter[str] = Counter()
    faults: list[tuple[int, str, str]] = []
    while job.first < job.stop and counts["died"] < DEATHS:
        at, told = context.Value("q", job.first), context.SimpleQueue()
        process = context.Process(target=judge_some, args=(job, at, told))
        process.start()
        seen, since = at.value, time.monotonic()
        while told.empty() and process.is_alive():
            process.join(0.1)
            if at.value != seen:
                seen, since = at.value, time.monotonic()
            elif time.monotonic() - since > PATIENCE:
                process.kill()
        if not told.empty():
            found = told.get()
            process.join()
            return found._replace(
                counts=counts + found.counts, faults=faults + found.faults
            )
        process.join()
        counts["died"] += 1
        faults.append((seen, "died", f"exit code {process.exitcode}"))
        job = job._replace(first=seen + 1)
    return Found(job.reader, counts, faults, 0)


def table(found: list[Found]) -> str:
    """Lay out the counts, reader by reader, and in all."""
    heads = ["reader", "inputs", *COLUMNS.values(), "peak memory"]
    lines = [heads, ["---"] + ["---:"] * (len(heads) - 1)]
    for reader in [*dict.fromkeys(each.reader for each in found), "all"]:
        mine = [each for each in found if reader in (each.reader, "all")]
        counts = sum((each.counts for each in mine), Counter[str]())
        numbers = [counts.total(), *(counts[key] for key in COLUMNS)]
        peak = max(each.peak for each in mine) / 2**20
        lines.append([reader, *(f"{n:,}" for n in numbers), f"{peak:.0f} MiB"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Run all of it, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=SHARES, help="one reader gets all inputs")
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--faults", type=int, default=5, help="shown of each reader")
    given = parser.parse_args()
    jobs = []
    for reader, share in SHARES.items():
        inputs = given.inputs if given.only else given.inputs * share // 100
        stop = given.first + inputs
        if given.only in (None, reader):
            jobs += [
                Job(reader, given.seed, first, min(first + CHUNK, stop))
                for first in range(given.first, stop, CHUNK)
            ]
    began = time.monotonic()
    found = []
    with ThreadPoolExecutor(given.processes) as threads:
        for done, each in enumerate(threads.map(run, jobs), 1):
            found.append(each)
            if sys.stderr.isatty():
                print(f"\r{done} of {len(jobs)}", end=" ", file=sys.stderr)
    print(table(found))
    for reader in SHARES:
        faults = [fault for each in found if each.reader == reader for fault in each[2]]
        for index, outcome, why in faults[: given.faults]:
            print(f"\n{reader} {index}, {outcome}: {why}")
    print(f"seed {given.seed}, {time.monotonic() - began:.0f} s", file=sys.stderr)
    sys.exit(any(each.faults for each in found))


if __name__ == "__main__":
    main()
