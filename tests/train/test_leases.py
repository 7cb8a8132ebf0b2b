import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ensize import InputError
from ensize.train.studies import leases
from ensize.train.studies.leases import PATIENCE, Worker, clear

POOL = "mlp-w8"
# The room is read by itself: it needs none of the seconds that torch takes to begin.
HOLD = """
import runpy, sys
from pathlib import Path
Worker = runpy.run_path(sys.argv[3])["Worker"]
with Worker(Path(sys.argv[1])) as worker:
    print(worker.take("mlp-w8", range(int(sys.argv[2]))), flush=True)
    sys.stdin.read()
"""


def begin(folder, seeds):
    """Start a process that takes some networks, and holds them until it is told."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, folder, str(seeds), leases.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    return process, json.loads(process.stdout.readline())


def kill(process):
    process.kill()
    process.communicate()


def files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def far_away(folder, monkeypatch, age):
    """Let another machine's worker, last seen some seconds ago, hold network 0."""
    with monkeypatch.context() as there:
        there.setattr(leases, "_machine", lambda: "another machine")
        worker = Worker(folder).__enter__()
        assert worker.take(POOL, [0]) == [0]
    worker._ended.set()
    worker._file.close()
    seen = time.time() - age
    os.utime(worker.path, (seen, seen))
    return worker


def test_a_network_is_taken_once_and_free_again_afterwards(tmp_path):
    with Worker(tmp_path) as one, Worker(tmp_path) as other:
        assert one.take(POOL, [0, 1]) == [0, 1]
        assert other.take(POOL, [0, 1, 2]) == [2]
        assert other.take("mlp-w16", [0]) == [0]
        one.release()
        assert other.take(POOL, [0, 1]) == [0, 1]
    assert files(tmp_path) == []


def test_a_live_process_keeps_its_networks_and_a_killed_one_loses_them(tmp_path):
    process, taken = begin(tmp_path, 3)
    assert taken == [0, 1, 2]
    with Worker(tmp_path) as worker:
        assert worker.take(POOL, [0, 1, 2, 3]) == [3]
        kill(process)
        assert worker.take(POOL, [0, 1, 2, 3]) == [0, 1, 2]
    # Only the dead process's own file stays, until the next one begins.
    assert [Path(each).suffix for each in files(tmp_path)] == [".worker"]
    with Worker(tmp_path):
        pass
    assert files(tmp_path) == []


def test_a_worker_that_is_just_beginning_is_not_tidied_away(tmp_path):
    beginning, dead = tmp_path / "a.worker", tmp_path / "b.worker"
    beginning.touch()
    dead.touch()
    seen = time.time() - PATIENCE - 60
    os.utime(dead, (seen, seen))
    with Worker(tmp_path):
        assert beginning.exists()
        assert not dead.exists()


def test_only_one_takes_over_from_the_dead(tmp_path):
    process, _ = begin(tmp_path, 1)
    kill(process)
    with Worker(tmp_path) as one, Worker(tmp_path) as other:
        assert one.take(POOL, [0]) == [0]
        assert other.take(POOL, [0]) == []
        assert one.take(POOL, [0]) == []
    assert list(tmp_path.glob(f"{POOL}/*")) == []


def test_of_two_successors_of_the_dead_the_lower_generation_stays(
    tmp_path, monkeypatch
):
    """One listed the leases when there was a dead one; then it went, and came anew."""
    with Worker(tmp_path) as one, Worker(tmp_path) as other:
        assert one.take(POOL, [0]) == [0]
        listings = [{0: [0]}, {0: [0, 1]}]
        dead_before = iter([False, True])
        with monkeypatch.context() as race:
            race.setattr(leases, "_leases", lambda _: listings.pop(0))
            race.setattr(other, "_alive", lambda _: next(dead_before))
            assert other.take(POOL, [0]) == []
        assert [path.name for path in (tmp_path / POOL).iterdir()] == ["0.0"]


def test_many_processes_share_the_networks_out_among_them(tmp_path):
    running = [begin(tmp_path, 40) for _ in range(4)]
    taken = [seed for _, seeds in running for seed in seeds]
    for process, _ in running:
        process.communicate("")
    assert sorted(taken) == list(range(40))
    assert files(tmp_path) == []


def test_another_machine_is_alive_while_its_file_is_touched(tmp_path, monkeypatch):
    far_away(tmp_path, monkeypatch, PATIENCE - 60)
    with Worker(tmp_path) as worker:
        assert worker.take(POOL, [0]) == []


def test_another_machine_is_dead_when_its_file_is_old(tmp_path, monkeypatch):
    held = far_away(tmp_path, monkeypatch, PATIENCE + 60)
    with Worker(tmp_path) as worker:
        assert not held.path.exists()  # tidied away; its lease is still there
        assert worker.take(POOL, [0]) == [0]


def test_a_worker_goes_on_showing_that_it_lives(tmp_path, monkeypatch):
    monkeypatch.setattr(leases, "BEAT", 0.02)
    with Worker(tmp_path) as worker:
        os.utime(worker.path, (0, 0))
        end = time.monotonic() + 10
        while worker.path.stat().st_mtime < 1 and time.monotonic() < end:
            time.sleep(0.01)
        assert worker.path.stat().st_mtime > 1


def test_what_no_worker_wrote_holds_nothing(tmp_path):
    (tmp_path / POOL).mkdir(parents=True)
    (tmp_path / POOL / "0.0").write_text("[]")
    (tmp_path / POOL / "1.0").write_text("no JSON")
    (tmp_path / POOL / "0-1.checkpoint").write_text("of a committee")
    with Worker(tmp_path) as worker:
        assert worker.take(POOL, [0, 1]) == [0, 1]
    assert files(tmp_path) == [f"{POOL}/0-1.checkpoint"]


def test_a_link_whose_answer_was_lost_counts(tmp_path, monkeypatch):
    link = os.link

    def lost(source, target):
        link(source, target)
        raise FileExistsError(17, "File exists")

    monkeypatch.setattr(os, "link", lost)
    with Worker(tmp_path) as worker:
        assert worker.take(POOL, [0]) == [0]


def test_a_folder_that_the_last_one_there_removes_is_made_again(tmp_path, monkeypatch):
    link, times = os.link, iter(range(3))

    def late(source, target):
        if next(times, None) is not None:
            Path(target).parent.rmdir()
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    with Worker(tmp_path / "unfinished") as worker:
        assert worker.take(POOL, [0]) == [0]


def test_a_worker_whose_file_was_removed_says_so(tmp_path):
    with Worker(tmp_path) as worker:
        worker.path.unlink()
        with pytest.raises(InputError, match="worker's file was removed"):
            worker.take(POOL, [0])


def test_a_filesystem_without_hard_links_is_named(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with (
        Worker(tmp_path) as worker,
        pytest.raises(InputError, match="where hard links can be made"),
    ):
        worker.take(POOL, [0])


def test_a_folder_where_a_file_lies_is_named(tmp_path):
    (tmp_path / "unfinished").write_text("")
    with pytest.raises(InputError, match="unfinished"), Worker(tmp_path / "unfinished"):
        pass


def test_leases_of_networks_that_are_there_are_cleared(tmp_path):
    """Found: a study whose last process was killed just before its end kept them."""
    (tmp_path / POOL).mkdir()
    for name in ("0.0", "0.1", "2.0", "2.checkpoint"):
        (tmp_path / POOL / name).touch()
    clear(tmp_path / POOL, [0, 1])
    assert files(tmp_path) == [f"{POOL}/2.0", f"{POOL}/2.checkpoint"]
    clear(tmp_path / "none", [0])
