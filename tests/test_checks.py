import numpy as np
import pytest

from ensize import InputError
from ensize.checks import class_labels, one_of, positive, viewed, whole


def test_an_input_error_is_a_value_error():
    assert issubclass(InputError, ValueError)


@pytest.mark.parametrize("value", [3, 3.0, np.int8(3), np.float32(3)])
def test_whole_numbers_come_in_many_guises(value):
    assert whole("n", value, least=1, most=3) == 3


@pytest.mark.parametrize("value", [2.5, -1, 9, True, None, "x", np.nan, np.inf, [1]])
def test_what_is_no_whole_number_in_range_is_named(value):
    with pytest.raises(InputError, match=r"^n is .*; give a whole number from 0 to 8$"):
        whole("n", value, most=8)


@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, "x", None])
def test_what_is_not_positive_is_named(value):
    with pytest.raises(InputError, match=r"^τ is .*; give a number above 0$"):
        positive("τ", value)


def test_the_nearest_choice_is_offered():
    with pytest.raises(InputError, match="did you mean 'disjoint'"):
        one_of("ensembles", "disjont", ["all", "disjoint"])
    with pytest.raises(InputError, match="choose one of them"):
        one_of("ensembles", "zzz", ["all", "disjoint"])


def test_booleans_are_classes_and_unsigned_ones_too():
    assert class_labels("t", [True, False]).tolist() == [1, 0]
    assert class_labels("t", np.array([3], np.uint8)).dtype == np.int64


def test_text_is_no_array_of_numbers():
    with pytest.raises(InputError, match="not numbers"):
        viewed("x", "text")
