import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from ensize import InputError, Predictions, score
from reference import make_pool


class Tensor:
    """What NumPy can view without being told: as PyTorch and JAX tensors."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.array, dtype)


class Unviewable:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("The array was deleted.")


def test_tensors_of_torch_are_taken_as_they_come():
    torch = pytest.importorskip("torch")
    logits, targets = make_pool(2, 40, 4)
    # Numbers that bfloat16 holds, which NumPy lacks.
    tensor = torch.tensor(logits).bfloat16()
    truth = score(Predictions.of(tensor.double().numpy(), targets))
    for given in (
        tensor,
        tensor.float(),
        tensor.float().requires_grad_(),
        [tensor[0].requires_grad_(), tensor[1].double()],
    ):
        pool = Predictions.of(given, torch.tensor(targets))
        np.testing.assert_allclose(score(pool).cnll, truth.cnll, rtol=1e-6)


def test_arrays_of_two_and_three_dimensions_and_lists_are_networks():
    logits, targets = make_pool(3, 20, 4)
    for given, count in (
        (logits, 3),
        (list(logits), 3),
        (logits[0], 1),
        (Tensor(logits), 3),
        ([Tensor(each) for each in logits], 3),
        (logits.tolist(), 3),
    ):
        pool = Predictions.of(given, targets)
        assert (pool.networks, pool.objects, pool.classes) == (count, 20, 4)
        np.testing.assert_array_equal(pool.logits(0, 3, 9), logits[0, 3:9])


def test_the_kinds_give_the_same_scores():
    logits, targets = make_pool(3, 60, 4)
    truth = score(Predictions.of(logits, targets))
    for kind, given in (
        ("log-probabilities", log_softmax(logits, axis=2)),
        ("probabilities", softmax(logits, axis=2)),
    ):
        curve = score(Predictions.of(given, targets, kind=kind))
        np.testing.assert_allclose(curve.nll, truth.nll, atol=1e-9)
        np.testing.assert_allclose(curve.cnll, truth.cnll, atol=1e-5)


def test_probabilities_of_zero_are_the_smallest_number_of_their_type():
    for dtype, smallest in ((np.float16, 2.0**-24), (np.float32, 2.0**-149)):
        given = np.array([[[0, 1], [1, 0]]], dtype)
        pool = Predictions.of(given, [0, 0], kind="probabilities")
        assert pool.logits(0, 0, 2)[0, 0] == pytest.approx(np.log(smallest), rel=1e-6)
        assert np.isfinite(score(pool).nll).all()


def test_precision_follows_what_was_handed_in():
    logits, targets = make_pool(2, 10, 3)
    for given, used in (
        (np.float16, np.float32),
        (np.float32, np.float32),
        (np.float64, np.float64),
        (">f4", np.float32),
    ):
        block = Predictions.of(logits.astype(given), targets).logits(0, 0, 5)
        assert block.dtype == used


def test_nothing_is_copied():
    logits, targets = make_pool(2, 10, 3)
    assert np.shares_memory(Predictions.of(logits, targets).rows[1], logits)


def test_choosing_keeps_labels():
    logits, targets = make_pool(4, 10, 3)
    pool = Predictions.of(logits, targets, labels=["a", "b", "c", "d"])
    chosen = pool.choose([3, 1])
    assert chosen.labels == ("d", "b")
    np.testing.assert_array_equal(chosen.rows[0], logits[3])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_named(bad):
    logits, targets = make_pool(3, 50, 4)
    logits[1, 37, 2] = bad
    with pytest.raises(InputError, match=r"network 1 has -?(nan|inf) at object 37, cl"):
        score(Predictions.of(logits, targets))


def test_huge_logits_are_good_input():
    logits, targets = make_pool(3, 50, 4)
    for factor in (1e4, 1e30):
        curve = score(Predictions.of((factor * logits).astype(np.float32), targets))
        assert np.isfinite(curve.nll).all()
        assert np.isfinite(curve.cnll_whole).all()


LOGITS, TARGETS = make_pool(2, 20, 4)


@pytest.mark.parametrize(
    ("networks", "targets", "options", "message"),
    [
        (softmax(LOGITS, axis=2), TARGETS, {}, "holds probabilities .* say kind='prob"),
        (LOGITS, TARGETS, {"kind": "probabilities"}, "does not hold prob.* at object"),
        (LOGITS, TARGETS, {"kind": "log-probabilities"}, "does not hold log-prob"),
        (LOGITS, TARGETS, {"kind": "logit"}, "did you mean 'logits'"),
        (LOGITS, TARGETS[:-1], {}, "speaks of 20 objects, but targets of 19;"),
        (LOGITS, TARGETS + 1, {}, r"targets has class 4 at object \d+, but net"),
        (LOGITS, TARGETS - 1, {}, r"targets has the negative class -1 at object \d+"),
        (LOGITS, TARGETS + 0.5, {}, r"\(entry 0 is"),
        (LOGITS, TARGETS.astype(float), {}, "targets are integers"),
        (LOGITS, [], {}, "targets is empty"),
        (LOGITS, TARGETS[None], {}, "targets has 2 dimensions"),
        (LOGITS, ["cat"] * 20, {}, "targets holds values of type <U3, not numbers"),
        ([LOGITS[0], LOGITS[1, :19]], TARGETS, {}, "network 1 speaks of 19 objects"),
        ([LOGITS[0], LOGITS[1, :, :3]], TARGETS, {}, "network 1 has 3 classes, but"),
        (LOGITS[:, :, :1], TARGETS * 0, {}, "has 1 classes; a classifier has at least"),
        (LOGITS[0, 0], TARGETS, {}, "predictions have 1 dimensions"),
        (LOGITS[None], TARGETS, {}, "predictions have 4 dimensions"),
        ([LOGITS], TARGETS, {}, r"network 0 has shape \(2, 20, 4\)"),
        ([], TARGETS, {}, "there are no predictions"),
        (np.zeros((2, 20, 4), object), TARGETS, {}, "type object, not numbers"),
        (Unviewable(), TARGETS, {}, "cannot be viewed as a NumPy array .* hand in an"),
        ([[1, 2], [3]], TARGETS, {}, "predictions cannot be viewed as a NumPy array"),
        (LOGITS.astype(complex), TARGETS, {}, "type complex128, not numbers"),
    ],
)
def test_a_mistake_gets_a_sentence(networks, targets, options, message):
    with pytest.raises(InputError, match=message):
        Predictions.of(networks, targets, **options)


def test_probabilities_further_down_are_checked_as_they_are_read():
    p = softmax(make_pool(1, 2000, 4)[0], axis=2)
    p[0, 1500] *= 2
    pool = Predictions.of(p, np.zeros(2000, int), kind="probabilities")
    with pytest.raises(InputError, match="at object 1500"):
        score(pool)


def test_float16_probabilities_may_round():
    logits, targets = make_pool(2, 300, 100)
    p = softmax(logits, axis=2).astype(np.float16)
    assert np.isfinite(
        score(Predictions.of(p, targets, kind="probabilities")).nll
    ).all()
    logs = log_softmax(logits, axis=2).astype(np.float16)
    pool = Predictions.of(logs, targets, kind="log-probabilities")
    assert np.isfinite(score(pool).nll).all()
