import numpy as np
import pytest

from ensize import InputError
from ensize.train.images import load_data, normalization, outline

RANDOM = np.random.default_rng(0)


def arrays(shape=(5,), dtype=np.float64, trained=20, tested=12, classes=3):
    def some(objects):
        if np.dtype(dtype) == np.uint8:
            return RANDOM.integers(0, 256, (objects, *shape), np.uint8)
        return RANDOM.normal(size=(objects, *shape)).astype(dtype)

    return {
        "x_train": some(trained),
        "y_train": np.arange(trained) % classes,
        "x_test": some(tested),
        "y_test": np.arange(tested) % classes,
    }


@pytest.fixture
def written(tmp_path):
    def write(**changes):
        path = tmp_path / "mine.npz"
        held = {key: each for key, each in changes.items() if each is not None}
        np.savez(path, **held)
        return path

    return write


@pytest.mark.parametrize(("name", "trained"), [("digits", 1280), ("few-digits", 128)])
def test_the_digits_are_those_of_scikit_learn(name, trained):
    from sklearn.datasets import load_digits

    data = load_data(name)
    truth = load_digits()
    assert (len(data.y_train), len(data.y_test)) == (trained, 1797 - trained)
    assert (data.classes, data.shape, data.pictures) == (10, (64,), False)
    ours = np.vstack([data.x_train, data.x_test]), np.r_[data.y_train, data.y_test]
    order = np.random.default_rng(0).permutation(1797)
    assert np.array_equal(ours[0], truth.data[order])
    assert np.array_equal(ours[1], truth.target[order])


def test_a_validation_subset_is_apart_from_what_is_trained_on():
    data = load_data("digits")
    subset = data.validation(200, seed=3)
    assert (len(subset.y_train), len(subset.y_test)) == (1080, 200)
    assert subset.name == "digits-validation"
    both = np.vstack([subset.x_train, subset.x_test])
    assert np.array_equal(np.sort(both, 0), np.sort(data.x_train, 0))
    rows = {tuple(row) for row in subset.x_test}
    assert not rows & {tuple(row) for row in subset.x_train}
    again, other = data.validation(200, seed=3), data.validation(200, seed=4)
    assert np.array_equal(subset.x_test, again.x_test)
    assert subset.fingerprint == again.fingerprint != other.fingerprint
    with pytest.raises(InputError, match="objects is 1280"):
        data.validation(1280)


def test_anybodys_arrays_become_float32(written):
    given = arrays((2, 3))
    data = load_data(str(written(**given)))
    assert (data.name, data.shape, data.classes) == ("mine", (2, 3), 3)
    assert data.x_train.dtype == np.float32
    assert np.array_equal(data.x_test, given["x_test"].astype(np.float32))
    assert np.array_equal(data.y_test, given["y_test"])


def test_a_file_of_arrays_is_looked_for_in_the_folder(written):
    path = written(**arrays())
    assert load_data("mine.npz", folder=path.parent).shape == (5,)


@pytest.mark.parametrize(
    ("shape", "kept"),
    [
        ((8, 9), (1, 8, 9)),
        ((8, 9, 3), (3, 8, 9)),
        ((3, 8, 9), (3, 8, 9)),
        ((8, 9, 1), (1, 8, 9)),
    ],
)
def test_pictures_come_with_channels_first(written, shape, kept):
    given = arrays(shape, np.uint8)
    data = load_data(str(written(**given)))
    assert data.pictures
    assert data.shape == data.x_train.shape[1:] == kept
    total = given["x_train"].sum(axis=(1, 2) if shape[-1] < 4 else None)
    if shape[-1] == 3:
        assert np.array_equal(data.x_train.sum(axis=(2, 3)), total)


def test_inputs_are_shifted_and_scaled(written):
    digits = load_data("digits")
    mean, deviation = normalization(digits, "mlp")
    assert np.allclose(mean, digits.x_train.mean(0), atol=1e-5)
    varied = digits.x_train.std(0) > 1
    assert varied.sum() > 40
    assert np.allclose(deviation[varied], digits.x_train.std(0)[varied], rtol=1e-5)
    assert deviation.min() == pytest.approx(0.1 * deviation.max())
    pictures = load_data(str(written(**arrays((2, 8, 9), np.uint8))))
    mean, deviation = normalization(pictures, "mlp")
    channels = pictures.x_train.swapaxes(0, 1).reshape(2, -1)
    assert np.allclose(mean, channels.mean(1), rtol=1e-5)
    assert np.allclose(deviation, channels.std(1), rtol=1e-5)
    colored = load_data(str(written(**arrays((3, 8, 8), np.uint8))))
    mean, deviation = normalization(colored, "wideresnet28")
    assert np.allclose(mean / 255, (0.4914, 0.4822, 0.4465))
    assert np.allclose(deviation / 255, (0.2023, 0.1994, 0.2010))


def test_what_never_varies_is_not_divided_by_zero(written):
    given = arrays()
    given["x_train"][:] = 7.0
    assert np.array_equal(
        normalization(load_data(str(written(**given))), "mlp")[1], np.ones(5)
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"y_test": None}, "has no array y_test, but x_train, y_train, x_test; write"),
        ({"x_train": np.ones((19, 5))}, "has 19 objects in x_train and 20 classes"),
        ({"x_test": np.ones((12, 6))}, r"tests on float32 of shape \(6,\)"),
        ({"x_train": np.ones((20, 8, 8), np.uint8)}, "trains on uint8 of shape"),
        ({"y_test": np.full(12, 3)}, "has the class 3 in y_test, and y_train ends"),
        ({"y_train": np.full(20, -1)}, "negative class -1"),
        ({"y_train": np.full(20, 0.5)}, "targets are integers"),
        ({"x_train": np.ones(20)}, "give one row of numbers"),
        ({"x_train": np.full((20, 5), np.nan)}, "not finite in float32 at object 0"),
        ({"x_train": np.full((20, 5), 1e300)}, "not finite in float32 at object 0"),
        ({"x_train": np.full((20, 5), "a")}, "holds <U1; save an array of numbers"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_arrays_that_do_not_fit_get_a_sentence(written, changes, sentence):
    path = written(**{**arrays(), **changes})
    with pytest.raises(InputError, match=sentence) as told:
        load_data(str(path))
    assert "mine.npz" in str(told.value)


def test_a_data_set_that_is_not_there_gets_a_sentence(tmp_path):
    with pytest.raises(InputError, match="did you mean 'cifar10'"):
        load_data("cifar-10")
    with pytest.raises(InputError, match=r"mine\.npz does not exist"):
        load_data(str(tmp_path / "mine.npz"))
    (tmp_path / "bad.npz").write_bytes(b"PK\3\4 and no more")
    with pytest.raises(InputError, match=r"bad\.npz is truncated"):
        load_data(str(tmp_path / "bad.npz"))


@pytest.mark.parametrize(("name", "classes"), [("cifar10", 10), ("cifar100", 100)])
def test_what_is_known_of_cifar_needs_no_files(name, classes):
    known = outline(name)
    assert (known.classes, known.shape, known.pictures) == (classes, (3, 32, 32), True)
    assert known.x_train.shape == (len(known.y_train), *known.shape)
    assert (len(known.y_train), len(known.y_test)) == (50_000, 10_000)


def test_what_is_there_is_read(tmp_path):
    assert outline("digits").fingerprint == load_data("digits").fingerprint
    with pytest.raises(InputError, match="is no folder"):
        outline("cifar10", folder=tmp_path / "none")
