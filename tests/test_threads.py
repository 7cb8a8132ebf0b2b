import threading
import time

import numpy as np
import pytest

from ensize.threads import _blas_controls, in_threads, one_blas_thread, workspace


def test_results_come_in_the_order_of_the_tasks():
    def slow_first(i):
        time.sleep(0.02 if i == 0 else 0)
        return i

    assert list(in_threads(slow_first, range(50))) == list(range(50))


def test_results_do_not_pile_up():
    begun = []

    def work(i):
        begun.append(i)
        return i

    results = in_threads(work, range(10_000))
    next(results)
    time.sleep(0.05)
    assert len(begun) < 1000
    results.close()


def test_an_error_in_a_task_is_raised_and_ends_the_work():
    done = []

    def work(i):
        if i == 3:
            raise ValueError("three")
        done.append(i)

    with pytest.raises(ValueError, match="three"):
        list(in_threads(work, range(100_000)))
    assert len(done) < 100_000


def test_blas_gets_its_threads_back():
    controls = _blas_controls()
    if controls is None:
        pytest.skip("NumPy's BLAS has no threads that we know of")
    get, put = controls
    before = get()
    put(2)
    with one_blas_thread():
        assert get() == 1
        with one_blas_thread():
            assert get() == 1
        assert get() == 1
    assert get() == 2
    put(before)


def test_each_thread_has_a_workspace_of_its_own():
    spaces = []

    def borrow():
        space = workspace("test", (10, 10), np.float32)
        space[:] = threading.get_ident()
        spaces.append(space)

    threads = [threading.Thread(target=borrow) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not np.shares_memory(*spaces)
    again = workspace("test", (5, 4), np.float32)
    assert np.shares_memory(workspace("test", (4, 5), np.float32), again)
    assert not np.shares_memory(workspace("other", (5, 4), np.float32), again)
