import threading

import pytest
import torch

from ensize.train.committees import Way
from ensize.train.cores import at_work

CPU = torch.device("cpu")


@pytest.fixture
def four():
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("four")
@pytest.mark.parametrize("tasks", [0, 1, 3, 4, 11])
def test_side_by_side_each_core_is_one_thread(tasks):
    """Answers come in the order of the tasks, from as many threads as there are."""
    with at_work(CPU, Way("products", 2)) as cores:
        assert cores.side_by_side == 4
        found = cores.map(
            lambda i: (i, torch.get_num_threads(), threading.get_ident()), range(tasks)
        )
    assert [i for i, _, _ in found] == list(range(tasks))
    assert {threads for _, threads, _ in found} <= {1}
    here = threading.get_ident()
    assert all(thread == here for i, _, thread in found if i % 4 == 0)
    assert all(thread != here for i, _, thread in found if i % 4)
    assert torch.get_num_threads() == 4


@pytest.mark.usefixtures("four")
def test_shared_passes_go_one_after_another():
    with at_work(CPU, Way("products", 2, shared=True)) as cores:
        assert cores.side_by_side == 1
        found = cores.map(
            lambda i: (i, torch.get_num_threads(), threading.get_ident()), range(3)
        )
    assert found == [(i, 4, threading.get_ident()) for i in range(3)]


@pytest.mark.usefixtures("four")
@pytest.mark.parametrize("bad", [0, 2])
def test_what_fails_in_any_thread_fails(bad):
    def work(i):
        if i == bad:
            raise ValueError(i)

    with (
        at_work(CPU, Way("products", 2)) as cores,
        pytest.raises(ValueError, match=str(bad)),
    ):
        cores.map(work, range(4))
    assert torch.get_num_threads() == 4
